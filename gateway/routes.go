package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// The services behind the gateway, by the names that configuration, metrics and messages use.
const (
	Users           = "users"
	Applications    = "applications"
	Permissions     = "permissions"
	Organization    = "organization"
	IdentitySources = "identity-sources"
	Events          = "events"
	Automation      = "automation"
	SignIn          = "sign-in"
	Provisioning    = "provisioning"
	Console         = "console" // the web console: it has no operations, and calls those of the others
)

// prefixes says which service answers which paths. A prefix covers itself and all paths below it, by whole segments:
// /v1/application does not cover /v1/application-templates. A trailing star covers every segment that begins with the
// text before it, and all paths below: /v1/users-* covers /v1/users-exist. A segment that is a star covers any one
// segment. The longest prefix that covers a path decides; of two with the same number of segments, the one without a
// star.
var prefixes = map[string][]string{
	Users: {
		"/v1/users", "/v1/users-*", "/v1/batch/users*", "/v1/user-stored-credentials", "/v1/thin",
		"/v1/tenants",
	},
	Applications: {
		"/v1/applications", "/v1/batch/applications*", "/v1/application", "/v1/application-templates", "/v1/accounts",
		"/v1/oauth2", "/.well-known/oauth-authorization-server",
	},
	Permissions: {
		"/v1/resources", "/v1/batch/resources", "/v1/resource-sets", "/v1/auth-units", "/v1/auth-rules",
		"/v1/batch/auth-unit-rules",
		"/v1/privileges", "/v1/auth-check", "/v1/batch/auth-check", "/v1/auth-impact", "/v1/authorized-applications",
		"/v1/application-authorizations",
		"/access", "/.well-known/authzen-configuration",
	},
	Organization: {
		"/v1/core-objects", "/v1/tree-nodes", "/v1/batch/tree-*", "/v1/tree-users", "/v1/tree-associations",
	},
	IdentitySources: {
		"/v1/idp", "/v1/auth-methods", "/v1/auth-templates",
	},
	Events: {
		"/v1/events", "/v1/event-subscriptions", "/v1/event-types", "/v1/audit-logs", "/v1/dead-letters",
	},
	Automation: {
		"/v1/kv", "/v1/jobs", "/v1/batch/jobs*", "/v1/functions", "/v1/components",
	},
	SignIn: {
		signInPath, signInMetadataPath, "/v1/sign-in", "/v1/sessions", "/v1/consents",
		"/v1/grants", "/v1/invitations", "/v1/users/*/invite", "/v1/batch/users/invite",
		"/v1/factors", "/v1/users/*/recovery-codes",
	},
	Provisioning: {
		"/v1/provisioning", "/scim/v2",
	},
	Console: {consolePath},
}

// kind says which limits a request has.
type kind int

const (
	ordinary    kind = iota
	transfer         // a body without a size or total time limit: only one that stands still is ended
	eventStream      // Server-Sent Events: like a transfer, but it ends when the gateway drains; see max_streams
)

// transfers are the operations (path → method) that are transfers.
var transfers = map[string]string{
	"/v1/users/import":      http.MethodPost,
	"/v1/users/export":      http.MethodGet,
	"/v1/audit-logs/export": http.MethodGet,
}

// eventStreams are the paths at which GET answers with an event stream where Accept asks for one.
var eventStreams = map[string]bool{
	"/v1/events":     true,
	"/v1/audit-logs": true,
}

func kindOf(r *http.Request) kind {
	path := r.URL.Path
	if call, ok := consoleCall(path); ok {
		path = call
	}
	switch {
	case transfers[path] == r.Method:
		return transfer
	case eventStreams[path] && r.Method == http.MethodGet && request.WantsEvents(r.Header.Get("Accept")):
		return eventStream
	}
	return ordinary
}

// maxSegments is how many segments the longest prefix has.
const maxSegments = 4

var routes = newRouteTable(prefixes)

type routeTable struct {
	exact  map[string]string // prefix → service
	stars  []star            // longest first
	inside []inside
}

// star is a prefix whose last segment ends in a star.
type star struct{ prefix, service string }

// inside is a prefix in which a segment is a star: what stands before it and after it, with their slashes.
type inside struct{ before, after, service string }

func (p inside) covers(head string) bool {
	rest, ok := strings.CutPrefix(head, p.before)
	segment, found := strings.CutSuffix(rest, p.after)
	return ok && found && segment != "" && !strings.Contains(segment, "/")
}

func newRouteTable(prefixes map[string][]string) routeTable {
	t := routeTable{exact: map[string]string{}}
	for service, list := range prefixes {
		for _, p := range list {
			if before, after, ok := strings.Cut(p, "/*/"); ok {
				t.inside = append(t.inside, inside{before + "/", "/" + after, service})
			} else if s, ok := strings.CutSuffix(p, "*"); ok {
				t.stars = append(t.stars, star{s, service})
			} else {
				t.exact[p] = service
			}
		}
	}
	slices.SortFunc(t.stars, func(a, b star) int { return len(b.prefix) - len(a.prefix) })
	return t
}

// find returns the service that answers a decoded path, and how many bytes of the path its prefix covers; "" if there
// is no such service.
func (t routeTable) find(path string) (service string, length int) {
	var ends [maxSegments]int
	n := 0
	for i := 1; i <= len(path) && n < maxSegments; i++ {
		if i == len(path) || path[i] == '/' {
			ends[n] = i
			n++
		}
	}
	for n--; n >= 0; n-- {
		head := path[:ends[n]]
		if service, ok := t.exact[head]; ok {
			return service, ends[n]
		}
		for _, p := range t.inside {
			if p.covers(head) {
				return p.service, ends[n]
			}
		}
		for _, s := range t.stars {
			// No slash in what the star stands for: it covers one segment.
			if rest, ok := strings.CutPrefix(head, s.prefix); ok && !strings.Contains(rest, "/") {
				return s.service, ends[n]
			}
		}
	}
	return "", 0
}

// route finds the service for a request's URL. It refuses every path that the gateway and a service could read
// differently: dot segments in any spelling, and an encoded slash within the prefix. All other paths are passed on
// unchanged. The error is apperr.NotFound or InvalidParameters.
func route(u *url.URL) (string, error) {
	if hasDotSegment(u.Path) {
		return "", apperr.Invalid("path", "must not have . or .. segments")
	}
	service, length := routes.find(u.Path)
	if service == "" || !sameSegments(u, length) {
		return "", apperr.New(apperr.NotFound, "no such path")
	}
	return service, nil
}

// hasDotSegment reports whether the decoded path has a segment . or .. A backslash counts as a slash, because some HTTP
// libraries treat it as one.
func hasDotSegment(path string) bool {
	if !strings.Contains(path, "/.") && !strings.Contains(path, `\`) {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }),
		func(s string) bool { return s == "." || s == ".." })
}

// sameSegments reports whether the first length bytes of the decoded path are whole segments of the path as it was
// sent: in /v1/users%2F1 the segment is "users/1", not users.
func sameSegments(u *url.URL, length int) bool {
	if u.RawPath == "" {
		return true
	}
	head, slashes := u.RawPath, strings.Count(u.Path[:length], "/")
	for i := 0; i < len(head); i++ {
		if head[i] != '/' {
			continue
		}
		if slashes == 0 {
			head = head[:i]
			break
		}
		slashes--
	}
	decoded, err := url.PathUnescape(head)
	return err == nil && slashes == 0 && decoded == u.Path[:length]
}
