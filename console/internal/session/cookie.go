package session

import (
	"net"
	"net/http"
	"strconv"
	"strings"
)

const (
	name     = "idp_console"
	hostName = "__Host-" + name
	// partBytes is less than the 4096 bytes that browsers keep of a cookie together with its name and attributes.
	partBytes = 3800
	// maxParts bounds the Cookie header to some 23 KiB: the gateway refuses headers above 64 KiB.
	maxParts = 6
)

// Secure reports whether the browser reached the console in a way that keeps cookies secret: by HTTPS, or on this
// machine. Where a gateway or balancer is in front, it says how in X-Forwarded headers. They are believed here without
// a proof: whoever forges them changes only the attributes of their own cookies.
func Secure(r *http.Request) bool { return byHTTPS(r) || Loopback(Host(r)) }

// Host is the host that the browser asked for.
func Host(r *http.Request) string {
	if sent := r.Header.Get("X-Forwarded-Host"); sent != "" {
		return sent
	}
	return r.Host
}

// Base is the console's address as the browser knows it: scheme and host.
func Base(r *http.Request) string {
	if byHTTPS(r) {
		return "https://" + Host(r)
	}
	return "http://" + Host(r)
}

func byHTTPS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// Loopback reports whether a host, with or without a port, is this machine.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// plain reports whether cookies have their plain name: browsers refuse __Host- names without Secure, and some refuse
// Secure cookies of http pages on this machine.
func plain(r *http.Request) bool { return !byHTTPS(r) && Loopback(Host(r)) }

// baseName is the name of the session's first cookie, and what the names of all others begin with.
func baseName(r *http.Request) string {
	if plain(r) {
		return name
	}
	return hostName
}

func partName(r *http.Request, part int) string {
	if part == 0 {
		return baseName(r)
	}
	return baseName(r) + "_" + strconv.Itoa(part)
}

// split divides a sealed text. The first part begins with the number of parts, so that a remnant of a longer session
// is not read.
func split(sealed string) (parts []string) {
	for len(sealed) > partBytes {
		parts, sealed = append(parts, sealed[:partBytes]), sealed[partBytes:]
	}
	parts = append(parts, sealed)
	parts[0] = strconv.Itoa(len(parts)) + "." + parts[0]
	return parts
}

func join(r *http.Request) (sealed string, ok bool) {
	first, err := r.Cookie(partName(r, 0))
	if err != nil {
		return "", false
	}
	count, head, _ := strings.Cut(first.Value, ".")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxParts {
		return "", false
	}
	var text strings.Builder
	text.WriteString(head)
	for i := 1; i < n; i++ {
		part, err := r.Cookie(partName(r, i))
		if err != nil {
			return "", false
		}
		text.WriteString(part.Value)
	}
	return text.String(), true
}

// clearFrom removes the cookies from a part on, if the browser has them.
func clearFrom(w http.ResponseWriter, r *http.Request, part int) {
	for ; part < maxParts; part++ {
		remove(w, r, partName(r, part))
	}
}

// remove deletes a cookie, if the browser has it.
func remove(w http.ResponseWriter, r *http.Request, name string) {
	if _, err := r.Cookie(name); err == nil {
		set(w, r, http.Cookie{Name: name, MaxAge: -1, SameSite: http.SameSiteStrictMode})
	}
}

// set completes a cookie and sends it.
func set(w http.ResponseWriter, r *http.Request, c http.Cookie) {
	c.Path, c.Secure, c.HttpOnly = "/", !plain(r), true
	http.SetCookie(w, &c)
}
