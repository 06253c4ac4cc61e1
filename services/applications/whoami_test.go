package applications_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/testkit"
)

const whoami = "/v1/oauth2/whoami"

// Every valid token is told what it is good for: one without scopes, an administrator's, one of the platform, and one
// of another issuer.
func TestWhoami(t *testing.T) {
	t.Parallel()
	s := start(t)
	expires := func(in time.Duration) string { // tokens have whole seconds
		return clock.FromMillis(s.Clock.Now().Add(in).Millis() / 1000 * 1000).String()
	}
	ask := func(c *testkit.Client) object {
		t.Helper()
		answer := c.Get(whoami).Object()
		require.Contains(t, answer, "platform_version")
		delete(answer, "platform_version")
		return answer
	}
	require.Equal(t, object{
		"actor": "test#tester", "client_id": "tester", "tenant_id": "acme", "scopes": []any{},
		"time_expires": expires(time.Hour),
	}, ask(s.As("acme")))
	admin := s.As("acme", auth.PlatformAdmin)
	require.Equal(t, []any{"platform:admin"}, ask(admin)["scopes"])
	require.Equal(t, "acme", ask(admin.With("X-Tenant-Id", "globex"))["tenant_id"], "the credential's own")

	m := newMachine(t, s)
	require.Equal(t, object{
		"actor": "client:" + m.ClientID, "client_id": m.ClientID, "tenant_id": "acme",
		"scopes": []any{"users:read"}, "time_expires": expires(time.Hour),
	}, ask(s.Stranger().With("Authorization", "Bearer "+m.token())))

	const issuer = "https://login.acme.test"
	key, err := auth.GenerateKey()
	require.NoError(t, err)
	other, err := auth.NewSigner(issuer, auth.NewKeys(key), s.Clock)
	require.NoError(t, err)
	require.NoError(t, s.Deps.Verifier.Trust(auth.Issuer{
		Name: issuer, Keys: other, Tenant: "acme", Scopes: auth.NewScopes(auth.UsersRead),
	}))
	token, err := other.Mint(auth.Claims{
		Subject: "u-7", Tenant: "globex", Scopes: auth.NewScopes(auth.UsersRead, auth.UsersWrite), TTL: time.Minute,
	})
	require.NoError(t, err)
	require.Equal(t, object{
		"actor": issuer + "#u-7", "client_id": "", "tenant_id": "acme", "scopes": []any{"users:read"},
		"time_expires": expires(time.Minute),
	}, ask(s.Stranger().With("Authorization", "Bearer "+token)), "what the issuer may grant")
}

func TestWhoamiRefuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Stranger().Get(whoami).Problem(http.StatusUnauthorized, "unauthenticated")
	s.As("acme").With("X-Tenant-Id", "globex").Get(whoami).Problem(http.StatusForbidden, "forbidden")
	s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "Not A Tenant").Get(whoami).
		Problem(http.StatusBadRequest, "invalid_parameters", "header.X-Tenant-Id")
	s.As("acme").Post(whoami, nil).Problem(http.StatusMethodNotAllowed, "method_not_allowed")
	m := newMachine(t, s)
	token := m.token()
	m.post("/disable").OK(nil)
	m.requireEnds(token)
	s.Stranger().With("Authorization", "Bearer "+token).Get(whoami).
		Problem(http.StatusUnauthorized, "unauthenticated")
}
