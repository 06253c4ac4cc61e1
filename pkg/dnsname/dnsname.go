// Package dnsname compares domain names.
package dnsname

import (
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// lookup maps as for a lookup (UTS 46, non-transitional). Labels with an underscore are no host names, but exist.
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// Key is the form in which equal domain names are equal: A-labels in lower case (RFC 5890 §2.3.2.1), as browsers send
// them. A name that has no such form is compared as it is written, in lower case. Key(Key(s)) == Key(s).
func Key(name string) string {
	lower := strings.ToLower(name)
	for _, form := range []string{name, lower} { // some capitals have no such form, and their small letters have one
		if ascii, err := lookup.ToASCII(form); err == nil {
			return strings.ToLower(ascii)
		}
	}
	return lower
}

// HostKey is Key for a host with or without a port. Addresses stay as they are.
func HostKey(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return Key(hostport)
	}
	return net.JoinHostPort(Key(host), port)
}

// Origin is the origin of an http or https URL in the form in which equal origins are equal: as browsers write it
// (RFC 6454 §6.2). ok is false for other texts.
func Origin(address string) (origin string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		strings.Contains(address, `\`) {
		return "", false
	}
	host, ofScheme := strings.TrimSuffix(HostKey(u.Host), ":"), map[string]string{"https": ":443", "http": ":80"}
	return u.Scheme + "://" + strings.TrimSuffix(host, ofScheme[u.Scheme]), true
}

// EmailKey is Key for what follows the last @ of an address. A text without one stays as it is.
func EmailKey(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	return address[:at+1] + Key(address[at+1:])
}
