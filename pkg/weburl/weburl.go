// Package weburl reads the URLs that records have, by the same rules everywhere.
package weburl

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Parse reads an absolute URL (RFC 3986 §4.3) of one of the schemes. It has a host, no user or password and, if it has
// a port, one of 1…65535. Blanks, control and invisible characters are refused anywhere, because programs disagree
// about them. The error completes a sentence that begins with the member's name, and does not repeat the text.
func Parse(text string, schemes ...string) (*url.URL, error) {
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}) {
		return nil, errors.New("must not have blanks or control characters")
	}
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" {
		return nil, fmt.Errorf("must be an absolute %s URL", strings.Join(schemes, " or "))
	}
	if u.User != nil {
		return nil, errors.New("must not have a user or password")
	}
	if port := u.Port(); port != "" && !validPort(port) {
		return nil, errors.New("must have a port of 1…65535, or none")
	}
	return u, nil
}

// HTTP is Parse for http and https.
func HTTP(text string) (*url.URL, error) { return Parse(text, "http", "https") }

func validPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}
