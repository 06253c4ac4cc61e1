package cas

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxService bounds the URL of a service, in bytes.
const maxService = 2048

// parse reads the URL of a service. It refuses what browsers and servers read in different ways: other schemes,
// credentials, control characters, backslashes, and segments . and .. in any encoding.
func parse(service string) (*url.URL, bool) {
	if len(service) > maxService || strings.ContainsFunc(service, strange) {
		return nil, false
	}
	u, err := url.Parse(service)
	if err != nil || u.Opaque != "" || u.User != nil || u.Hostname() == "" {
		return nil, false
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	if lower := strings.ToLower(u.EscapedPath()); strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c") {
		return nil, false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		segment, _, _ = strings.Cut(segment, ";") // servers drop parameters of a segment before they resolve dots
		if segment == "." || segment == ".." {
			return nil, false
		}
	}
	return u, true
}

// withoutSession drops the id of a session that Java servers put into the path of their URLs: the same service has
// another one each time.
func withoutSession(service string) string {
	at := strings.Index(lowerASCII(service), ";jsessionid=")
	if at < 0 || strings.ContainsAny(service[:at], "?#") {
		return service
	}
	rest := strings.IndexAny(service[at:], "/?#")
	if rest < 0 {
		return service[:at]
	}
	return service[:at] + service[at+rest:]
}

// lowerASCII keeps the positions of characters, which strings.ToLower may move.
func lowerASCII(s string) string {
	b := []byte(s) // strings.Map would make three bytes of one that is no UTF-8
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// strange is true for what has no place in a URL, although url.Parse lets some of it pass.
func strange(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }

// covers reports whether a service lies at or below one of an application's redirect URLs, by whole segments of the
// path. A redirect URL with a query covers only services whose query begins with it.
func covers(redirectURLs []string, service *url.URL) bool {
	plain, ok := parse(withoutSession(service.String()))
	if !ok {
		return false
	}
	for _, text := range redirectURLs {
		if base, ok := parse(text); ok && below(base, plain) {
			return true
		}
	}
	return false
}

func below(base, service *url.URL) bool {
	if base.Scheme != service.Scheme || !strings.EqualFold(base.Hostname(), service.Hostname()) ||
		port(base) != port(service) {
		return false
	}
	if base.RawQuery != "" && service.RawQuery != base.RawQuery &&
		!strings.HasPrefix(service.RawQuery, base.RawQuery+"&") {
		return false
	}
	root, path := strings.TrimSuffix(base.Path, "/"), service.Path
	return path == root || strings.HasPrefix(path, root+"/")
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// withTicket adds the ticket to the query as the last parameter. The rest of the URL stays as the application wrote it.
func withTicket(service *url.URL, name string) string {
	u := *service
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "ticket=" + url.QueryEscape(name)
	return u.String()
}

// same reports whether two URLs name the same service. Clients make the second one again from the request that brought
// them the ticket, so the encoding may differ: a+b, a%20b.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, ok := parse(a)
	y, okay := parse(b)
	return ok && okay && x.Scheme == y.Scheme && strings.EqualFold(x.Hostname(), y.Hostname()) && port(x) == port(y) &&
		cmp.Or(x.Path, "/") == cmp.Or(y.Path, "/") && x.Fragment == y.Fragment &&
		slices.Equal(parameters(x), parameters(y))
}

// parameters lists the names and values of a query in their order.
func parameters(u *url.URL) (all []string) {
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, has := strings.Cut(part, "=")
		all = append(all, strconv.FormatBool(has))
		for _, text := range []string{name, value} {
			plain, err := url.QueryUnescape(text)
			if err != nil {
				plain = text
			}
			all = append(all, strconv.FormatBool(err == nil), plain)
		}
	}
	return all
}
