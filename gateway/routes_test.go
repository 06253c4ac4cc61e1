package gateway

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// routeCases are paths and the services that they belong to.
var routeCases = map[string]string{
	"/v1/users":                                    Users,
	"/v1/users/1048577/lock":                       Users,
	"/v1/users/":                                   Users,
	"/v1/users/1048577/invite":                     SignIn,
	"/v1/users/%31/invite":                         SignIn,
	"/v1/users/1048577/invite/x":                   SignIn,
	"/v1/users/1048577/invited":                    Users,
	"/v1/users//invite":                            Users,
	"/v1/users/1/2/invite":                         Users,
	"/v1/users/1%2F2/invite":                       Users,
	"/v1/batch/users/invite":                       SignIn,
	"/v1/batch/users/1/invite":                     Users,
	"/v1/invitations/1048577/resend":               SignIn,
	"/v1/users-exist":                              Users,
	"/v1/users-login-name-check":                   Users,
	"/v1/user-stored-credentials/7":                Users,
	"/v1/batch/users":                              Users,
	"/v1/batch/users-lock":                         Users,
	"/v1/batch/users-reset-password":               Users,
	"/v1/thin/login-verification":                  Users,
	"/v1/applications/2001/protocols/saml":         Applications,
	"/v1/application?domain=a.example":             Applications,
	"/v1/application-templates?name=":              Applications,
	"/v1/batch/applications/2001/accounts":         Applications,
	"/v1/oauth2/jwks":                              Applications,
	"/.well-known/oauth-authorization-server":      Applications,
	"/.well-known/oauth-authorization-server/acme": Applications,
	"/v1/resources/5":                              Permissions,
	"/v1/batch/resources":                          Permissions,
	"/v1/resource-sets/1/members/2":                Permissions,
	"/v1/auth-units/1/rules":                       Permissions,
	"/v1/auth-rules":                               Permissions,
	"/v1/batch/auth-unit-rules":                    Permissions,
	"/v1/privileges":                               Permissions,
	"/v1/auth-check/objects":                       Permissions,
	"/v1/auth-impact":                              Permissions,
	"/v1/batch/auth-check":                         Permissions,
	"/v1/authorized-applications":                  Permissions,
	"/v1/application-authorizations":               Permissions,
	"/access/v1/evaluation":                        Permissions,
	"/.well-known/authzen-configuration":           Permissions,
	"/v1/core-objects/1":                           Organization,
	"/v1/tree-nodes/1/parent":                      Organization,
	"/v1/batch/tree-nodes":                         Organization,
	"/v1/batch/tree-nodes-check":                   Organization,
	"/v1/batch/tree-users":                         Organization,
	"/v1/tree-users":                               Organization,
	"/v1/tree-associations":                        Organization,
	"/v1/idp/connections/3/test":                   IdentitySources,
	"/v1/idp/providers":                            IdentitySources,
	"/v1/auth-methods":                             IdentitySources,
	"/v1/auth-templates/1/default":                 IdentitySources,
	"/v1/event-subscriptions/1/events/2/redeliver": Events,
	"/v1/event-types":                              Events,
	"/v1/audit-logs":                               Events,
	"/v1/kv/buckets/b/objects/a%2Fb":               Automation,
	"/v1/kv/buckets/b/objects/a//b":                Automation,
	"/v1/kv/buckets/b/objects/.hidden":             Automation,
	"/v1/kv/buckets/b/objects/a..b":                Automation,
	"/v1/kv/buckets/b/objects/李伟":                  Automation,
	"/v1/jobs/1/sub-jobs/2/logs":                   Automation,
	"/v1/batch/jobs-suspend":                       Automation,
	"/v1/functions/1/invoke":                       Automation,
	"/v1/components":                               Automation,
	"/v1/provisioning/connections/1/held":          Provisioning,
	"/scim/v2/Users/1":                             Provisioning,
	"/scim/v2/Users/.search":                       Provisioning,
	"/v1/tenants":                                  Users,
	"/v1/accounts?user_id=7":                       Applications,
	"/console":                                     Console,
	"/console/":                                    Console,
	"/console/acme/users?q=li":                     Console,
	"/console/api/v1/users/1":                      Console,
	// The same paths with percent-encoded letters (RFC 3986 §6.2.2.2).
	"/v1/%75sers/1":       Users,
	"/v1/user%73-exist":   Users,
	"/v1/batch/%75sers-x": Users,
}

func TestRouteFindsTheServiceOfEveryPath(t *testing.T) {
	t.Parallel()
	for target, service := range routeCases {
		u, err := url.ParseRequestURI(target)
		require.NoError(t, err, target)
		got, err := route(u)
		require.NoError(t, err, target)
		require.Equal(t, service, got, target)
	}
}

func TestRouteRefuses(t *testing.T) {
	t.Parallel()
	for target, kind := range map[string]apperr.Kind{
		"/":                              apperr.NotFound,
		"/v1":                            apperr.NotFound,
		"/v1/":                           apperr.NotFound,
		"/v2/users":                      apperr.NotFound,
		"/v1/usersx":                     apperr.NotFound,
		"/v1/Users":                      apperr.NotFound,
		"/v1/user":                       apperr.NotFound,
		"/v1/application-":               apperr.NotFound,
		"/v1/batch":                      apperr.NotFound,
		"/v1/batch/":                     apperr.NotFound,
		"/v1/batch/resources-x":          apperr.NotFound,
		"/v1/batch/tree":                 apperr.NotFound,
		"//v1/users":                     apperr.NotFound,
		"/v1//users":                     apperr.NotFound,
		"/v1/batch//users":               apperr.NotFound,
		"/v1/users%2F1":                  apperr.NotFound,
		"/v1/users/1%2Finvite":           apperr.NotFound,
		"/v1/batch/users%2Finvite":       apperr.NotFound,
		"/v1%2Fusers":                    apperr.NotFound,
		"/v1/batch%2Fusers":              apperr.NotFound,
		"/v1/batch/users%2Fx":            apperr.NotFound,
		"/v1/users-%2Fx":                 apperr.NotFound,
		"/%2Fv1/users":                   apperr.NotFound,
		"/.well-known":                   apperr.NotFound,
		"/access.v1":                     apperr.NotFound,
		"/consoles":                      apperr.NotFound,
		"/console%2Fapi":                 apperr.NotFound,
		"/console/..":                    apperr.InvalidParameters,
		"/v1/users/../kv":                apperr.InvalidParameters,
		"/v1/users/./kv":                 apperr.InvalidParameters,
		"/v1/users/..":                   apperr.InvalidParameters,
		"/v1/users/%2e%2e/kv":            apperr.InvalidParameters,
		"/v1/users/.%2E/kv":              apperr.InvalidParameters,
		"/v1/users/..%2Fkv":              apperr.InvalidParameters,
		"/v1/users/x%2F..%2F..%2Fkv":     apperr.InvalidParameters,
		`/v1/users/..%5Ckv`:              apperr.InvalidParameters,
		`/v1/users/x\..\..\kv`:           apperr.InvalidParameters,
		"/../v1/users":                   apperr.InvalidParameters,
		"/v1/kv/buckets/b/objects/a%2F.": apperr.InvalidParameters,
	} {
		u, err := url.ParseRequestURI(target)
		require.NoError(t, err, target)
		_, err = route(u)
		require.Error(t, err, target)
		require.Equal(t, kind, apperr.KindOf(err), target)
	}
}

func TestPrefixesDoNotOverlap(t *testing.T) {
	t.Parallel()
	owners := map[string]string{}
	for service, list := range prefixes {
		for _, p := range list {
			require.Empty(t, owners[p], p)
			owners[p] = service
			require.LessOrEqual(t, strings.Count(p, "/"), maxSegments, p)
			probe := strings.Replace(p, "*", "-x", 1)
			got, _ := routes.find(probe)
			require.Equal(t, service, got, p)
		}
	}
}

func TestKindsAreOneServicesPaths(t *testing.T) {
	t.Parallel()
	for _, p := range append(slices.Collect(maps.Keys(transfers)), slices.Collect(maps.Keys(eventStreams))...) {
		service, _ := routes.find(p)
		require.NotEmpty(t, service, p)
	}
	for call, want := range map[[3]string]kind{
		{http.MethodPost, "/v1/users/import?on_conflict=skip", ""}:       transfer,
		{http.MethodGet, "/v1/users/import", ""}:                         ordinary,
		{http.MethodPost, "/v1/users", ""}:                               ordinary,
		{http.MethodGet, "/v1/events?types=user.*", "text/event-stream"}: eventStream,
		{http.MethodGet, "/v1/events", "application/json"}:               ordinary,
		{http.MethodPost, "/v1/events", "text/event-stream"}:             ordinary,
		{http.MethodGet, "/v1/events/1", "text/event-stream"}:            ordinary,
		{http.MethodGet, "/v1/users", "text/event-stream"}:               ordinary,
		{http.MethodPost, "/console/api/v1/users/import", ""}:            transfer,
		{http.MethodGet, "/console/api/v1/events", "text/event-stream"}:  eventStream,
		{http.MethodGet, "/console/v1/events", "text/event-stream"}:      ordinary,
		{http.MethodGet, "/console/apiv1/events", "text/event-stream"}:   ordinary,
	} {
		r := httptest.NewRequest(call[0], call[1], nil)
		r.Header.Set("Accept", call[2])
		require.Equal(t, want, kindOf(r), call)
	}
}

// FuzzRoute checks that a service owns the path that it gets in every way of reading it: as sent, decoded, or decoded
// and cleaned.
func FuzzRoute(f *testing.F) {
	for _, seed := range []string{
		"/v1/users/1", "/v1/users-exist", "/v1/users/..%2f..%2fkv", "/v1/batch/users%2Fx", "/v1/%2e%2e/kv",
		"//v1/users", `/v1/users\..\kv`, "/v1/kv/buckets/b/objects/a%2Fb", "/v1/batch/tree-nodes/..;/x",
		"/.well-known/authzen-configuration", "/v1/users-%2F..", "/v1/%75sers", "http://other/v1/users",
		"/v1/users/%252e%252e/kv", "/v1/batch/tree-%2e%2e/users",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		service, err := route(u)
		if err != nil {
			return
		}
		unslashed := strings.ReplaceAll(u.Path, `\`, "/")
		for _, reading := range []string{u.Path, path.Clean(u.Path), path.Clean(unslashed)} {
			if got, _ := routes.find(reading); got != service {
				t.Fatalf("%q goes to %s, but reads as %q, which is %q's", target, service, reading, got)
			}
		}
		// As sent, segment by segment.
		segments := strings.Split(u.EscapedPath(), "/")
		for i, s := range segments {
			decoded, err := url.PathUnescape(s)
			if err != nil {
				t.Fatal(err)
			}
			segments[i] = strings.ReplaceAll(decoded, "/", "\x00")
		}
		if got, _ := routes.find(strings.Join(segments, "/")); got != service {
			t.Fatalf("%q goes to %s, but as sent it is %q's", target, service, got)
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	u, _ := url.ParseRequestURI("/v1/user-stored-credentials/1048577")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = route(u)
	}
}
