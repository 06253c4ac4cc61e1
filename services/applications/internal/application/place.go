package application

import (
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/dnsname"
)

// maxSegments bounds the segments of a service's path.
const maxSegments = 30

// place is where a URL leads, in the one form in which places are compared: without query, default port and a slash at
// the end. ok is false for a URL that browsers could take for another place than this parser does.
func place(text string) (normal string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		strings.Contains(text, `\`) {
		return "", false
	}
	path := u.EscapedPath()
	lower := strings.ToLower(path)
	for _, hidden := range []string{"%2e", "%2f", "%5c"} {
		if strings.Contains(lower, hidden) {
			return "", false
		}
	}
	segments := strings.Split(path, "/")
	for _, segment := range segments {
		if segment == "." || segment == ".." {
			return "", false
		}
	}
	host := dnsname.HostKey(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	return u.Scheme + "://" + host + strings.TrimRight(path, "/"), len(segments) <= maxSegments
}

// places are the URLs below which services of CAS lie: those to return to, if they have no query.
func (a *Application) places() (list []string) {
	for _, text := range a.redirects() {
		if normal, ok := place(text); ok && !strings.Contains(text, "?") {
			list = append(list, normal)
		}
	}
	return list
}

// origins are those of the URLs to return to.
func (a *Application) origins() (list []string) {
	for _, text := range a.redirects() {
		if origin, ok := dnsname.Origin(text); ok && !slices.Contains(list, origin) {
			list = append(list, origin)
		}
	}
	return list
}

// above lists a place and all that it lies below, by whole segments of the path, the nearest first.
func above(place string) []string {
	list := []string{place}
	root := strings.Index(place, "://") + len("://")
	for {
		i := strings.LastIndexByte(place, '/')
		if i < root {
			return list
		}
		place = place[:i]
		list = append(list, place)
	}
}

// redirects are the URLs of redirect_url.
func (a *Application) redirects() []string {
	list := []string{}
	for text := range strings.SplitSeq(a.RedirectURL, ",") {
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, text)
		}
	}
	return list
}
