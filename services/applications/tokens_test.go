package applications_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/applications"
)

// machine is an application that gets tokens, with its credential.
type machine struct {
	t              testing.TB
	s              *testkit.Service
	ID             string `json:"id"`
	ClientID       string `json:"client_id"`
	ClientSecret   string `json:"client_secret"`
	admin          *testkit.Client
	TimeExpiresOld string `json:"time_expires_old"`
}

func newMachine(t testing.TB, s *testkit.Service) *machine {
	t.Helper()
	m := &machine{t: t, s: s, admin: s.As("acme", auth.PlatformAdmin)}
	m.admin.Post("/v1/applications",
		map[string]any{"name": "Billing", "category": "4", "scopes": []string{"users:read"}}).OK(m)
	require.NotEmpty(t, m.ClientSecret)
	return m
}

// post makes a request about the application as an administrator.
func (m *machine) post(path string) *testkit.Answer {
	m.t.Helper()
	return m.admin.Post("/v1/applications/"+m.ID+path, nil)
}

// ask asks for a token with a secret.
func (m *machine) ask(secret string) *testkit.Answer {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {m.ClientID}, "client_secret": {secret}}
	return m.s.Stranger().With("Content-Type", rest.FormType).Post("/v1/oauth2/token", form.Encode())
}

// token gets a token, which must be valid.
func (m *machine) token() string {
	m.t.Helper()
	var given struct {
		AccessToken string `json:"access_token"`
		Scope       string `json:"scope"`
	}
	m.ask(m.ClientSecret).OK(&given)
	require.Equal(m.t, "users:read", given.Scope)
	require.True(m.t, m.good(given.AccessToken))
	principal, err := m.s.Deps.Verifier.Verify(m.t.Context(), given.AccessToken)
	require.NoError(m.t, err)
	require.Equal(m.t, m.ID, principal.ApplicationID)
	return given.AccessToken
}

// good reports whether this service accepts a token.
func (m *machine) good(token string) bool {
	_, err := m.s.Deps.Verifier.Verify(m.t.Context(), token)
	return err == nil
}

// requireEnds waits until tokens are not accepted any more.
func (m *machine) requireEnds(tokens ...string) {
	m.t.Helper()
	for _, token := range tokens {
		wait.Until(m.t, func() bool { return !m.good(token) })
	}
}

func (m *machine) requireRefused(answer *testkit.Answer) {
	m.t.Helper()
	require.Equal(m.t, http.StatusUnauthorized, answer.Status, "%s", answer.Body)
}

func TestADisabledApplicationsTokensEnd(t *testing.T) {
	t.Parallel()
	m := newMachine(t, start(t))
	first := m.token()
	m.post("/disable").OK(nil)
	m.requireRefused(m.ask(m.ClientSecret))
	m.requireEnds(first)
	m.post("/enable").OK(nil)
	m.token()
	require.False(t, m.good(first), "enabling the application does not make it valid again")
}

func TestARefreshedSecretEndsTokens(t *testing.T) {
	t.Parallel()
	m := newMachine(t, start(t))
	first, old := m.token(), m.ClientSecret
	m.post("/secrets?dry_run=true").OK(nil)
	require.True(t, m.good(first))

	m.post("/secrets?grace_seconds=60").OK(m)
	second := m.token() // at the time of the refresh: the clock stands still
	m.requireEnds(first)
	require.True(t, m.good(second))
	m.ask(old).OK(nil)
	m.s.Clock.Advance(61 * time.Second)
	m.requireRefused(m.ask(old))
	require.True(t, m.good(second), "the expiry of a secret does not end tokens of another")

	old = m.ClientSecret
	m.post("/secrets").OK(m)
	m.requireRefused(m.ask(old))
	m.requireEnds(second)
	m.token()
}

func TestADeletedApplicationsTokensEnd(t *testing.T) {
	t.Parallel()
	m := newMachine(t, start(t))
	m.requireRefused(m.ask("wrong")) // the count of failures is deleted, too
	token := m.token()
	m.admin.Delete("/v1/applications/"+m.ID, nil).OK(nil)
	m.requireRefused(m.ask(m.ClientSecret))
	m.requireEnds(token)
}

func TestRotationOperation(t *testing.T) {
	t.Parallel()
	m := newMachine(t, start(t))
	token := m.token()
	type keys struct {
		Keys []struct{ ID string }
	}
	var one, two, kept, now keys
	m.admin.Get("/v1/oauth2/keys").OK(&one)
	require.Len(t, one.Keys, 1)
	m.admin.Post("/v1/oauth2/keys/rotate?dry_run=true", nil).OK(&kept)
	require.Len(t, kept.Keys, 2)
	m.admin.Get("/v1/oauth2/keys").OK(&kept)
	require.Equal(t, one, kept)
	rotate := m.admin.With("Idempotency-Key", "k")
	rotate.Post("/v1/oauth2/keys/rotate", nil).OK(&two)
	require.Len(t, two.Keys, 2)
	replayed := rotate.Post("/v1/oauth2/keys/rotate", nil).OK(nil)
	require.Equal(t, "true", replayed.Header.Get("Idempotent-Replayed"))
	var published keys
	m.s.Stranger().Get("/v1/oauth2/jwks").OK(&published)
	require.Len(t, published.Keys, 2)
	require.True(t, m.good(token))

	m.admin.Post("/v1/oauth2/keys/rotate?at_once=true", nil).OK(&now)
	require.Len(t, now.Keys, 1)
	require.False(t, m.good(token), "this service knows it before it answers")
	m.token()
	m.s.As("acme", auth.ApplicationsWrite).Post("/v1/oauth2/keys/rotate", nil).Problem(http.StatusForbidden,
		"forbidden")
}

func TestBootstrapAdministrator(t *testing.T) {
	t.Parallel()
	const clientID, clientSecret = "bootstrap", "operator-8Qx2vT5mZr7Lk1pWcN4sYb3"
	c := applications.DefaultConfig()
	c.Bootstrap.ClientID, c.Bootstrap.ClientSecret = clientID, secret.New(clientSecret)
	spec := applications.Spec(c)
	s := testkit.Start(t, spec)
	s.Replica(spec) // makes no second administrator
	m := &machine{t: t, s: s, ClientID: clientID, admin: s.As("default", auth.PlatformAdmin)}
	var given struct {
		AccessToken string `json:"access_token"`
		Scope       string `json:"scope"`
	}
	m.ask(clientSecret).OK(&given)
	require.Equal(t, "platform:admin", given.Scope)
	var list struct{ Items []machine }
	admin := s.Stranger().With("Authorization", "Bearer "+given.AccessToken)
	body := admin.Get("/v1/applications").OK(&list).Body
	require.Len(t, list.Items, 1)
	require.NotContains(t, string(body), clientSecret)
	require.Equal(t, clientID, list.Items[0].ClientID)
	admin.With("X-Tenant-Id", "acme").Get("/v1/applications").OK(nil)

	// Its secret can be refreshed, and a later start does not restore the old one.
	m.ID = list.Items[0].ID
	m.post("/secrets").OK(m)
	s.Replica(spec)
	m.requireRefused(m.ask(clientSecret))
	m.ask(m.ClientSecret).OK(nil)
}

func TestBootstrapSettings(t *testing.T) {
	t.Parallel()
	long := secret.New("operator-8Qx2vT5mZr7Lk1pWcN4sYb3")
	for name, b := range map[string]applications.Bootstrap{
		"no secret": {ClientID: "a"}, "no id": {ClientSecret: long}, "a bad id": {ClientID: "a b", ClientSecret: long},
		"a secret that can be guessed": {ClientID: "a", ClientSecret: secret.New("please-change-me-please-change-me")},
		"a bad tenant":                 {ClientID: "a", ClientSecret: long, Tenant: "A"},
	} {
		require.Error(t, b.Validate(), name)
	}
	require.NoError(t, applications.Bootstrap{ClientID: "a", ClientSecret: long, Tenant: "acme"}.Validate())
	require.NoError(t, applications.Bootstrap{}.Validate())
}

func TestTokenSettings(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, change := range map[string]func(*applications.TokenConfig){
		"too short":      func(c *applications.TokenConfig) { c.TTL = time.Second },
		"too long":       func(c *applications.TokenConfig) { c.TTL = 25 * time.Hour },
		"keys too often": func(c *applications.TokenConfig) { c.RotateEvery = time.Minute },
		"no tokens":      func(c *applications.TokenConfig) { c.PerSecond = 0 },
		"no failures":    func(c *applications.TokenConfig) { c.FailuresPerMinute = 0 },
	} {
		c := applications.DefaultConfig()
		change(&c.Tokens)
		_, err := applications.Spec(c).New(context.Background(), s.Deps)
		require.ErrorContains(t, err, "tokens.", name)
	}
}

// An unknown client is refused with the same reads and writes as a known one with a wrong secret, and after as many
// attempts with 429, so that nobody learns which clients exist.
func TestUnknownClientsAreRefusedAsKnownOnes(t *testing.T) {
	t.Parallel()
	ledger := &testkit.Ledger{}
	config := applications.DefaultConfig()
	config.Tokens.FailuresPerMinute = 5
	s := testkit.Start(t, applications.Spec(config), testkit.Options{Engine: ledger.Over})
	known := newMachine(t, s)
	address := 0
	try := func(client string) (status int, steps string) {
		address++
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {"a guess"}}
		ledger.Start()
		answer := s.Stranger().With("Content-Type", rest.FormType).With("X-Request-Id", testkit.LedgerID).
			With("X-Forwarded-For", fmt.Sprint("192.0.2.", address)).Post("/v1/oauth2/token", form.Encode())
		return answer.Status, ledger.Steps()
	}
	for attempt := range 7 {
		for _, client := range []string{known.ClientID, "unknown"} {
			status, steps := try(client)
			if attempt < 5 {
				require.Equal(t, http.StatusUnauthorized, status, client)
				require.Equal(t, "read read read begin read write write", steps, client)
			} else {
				require.Equal(t, http.StatusTooManyRequests, status, client)
				require.Equal(t, "read read read", steps, client)
			}
		}
	}
}
