package token_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/ended"
	"github.com/idplatform/idplatform/services/applications/internal/httpapi"
	"github.com/idplatform/idplatform/services/applications/internal/signing"
	"github.com/idplatform/idplatform/services/applications/internal/token"
)

func TestMain(m *testing.M) { basic.Main(m) }

const (
	tokenPath      = "/v1/oauth2/token"
	revokePath     = "/v1/oauth2/revoke"
	introspectPath = "/v1/oauth2/introspect"
	grant          = "grant_type=client_credentials"
)

// clients are applications without a store.
type clients struct {
	mu   sync.Mutex
	byID map[string]application.Client
}

func (c *clients) Client(_ context.Context, id string) (application.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.byID[id]; ok {
		return found, nil
	}
	return application.Client{}, apperr.Missing("application")
}

func (c *clients) set(client application.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[client.ClientID] = client
}

// machine is an application with a secret.
func machine(id, tenant, secret string, scopes ...string) application.Client {
	return application.Client{
		Tenant: tenant, AppID: "app-" + id, ClientID: id, Version: 1, Enabled: true, Category: "4", Scopes: scopes,
		Secrets: []application.ClientSecret{{Hash: application.HashSecret(secret)}},
	}
}

// chosenClient is the client whose secret somebody chose.
const chosenClient = "chosen"

// world is the OAuth part of the service, with clients that the test defines.
type world struct {
	*testkit.Service
	clients   *clients
	spec      service.Spec
	publicURL string // if not empty, instead of testkit's
}

func newWorld(t testing.TB, known ...application.Client) *world {
	return newWorldWith(t, token.Limits{TokensPerSecond: 1000, FailuresPerMinute: 1000}, known...)
}

func newWorldWith(t testing.TB, limits token.Limits, known ...application.Client) *world {
	w := &world{clients: &clients{byID: map[string]application.Client{}}}
	for _, c := range known {
		w.clients.set(c)
	}
	w.spec = service.Spec{
		Name:        "applications",
		Collections: append(append(signing.Collections(), ended.Collections()...), token.Collections()...),
		New: func(ctx context.Context, d service.Deps) (service.App, error) {
			if w.publicURL != "" {
				d.PublicURL = w.publicURL
			}
			keys, err := signing.Open(ctx,
				signing.Config{Store: d.Store, Issuer: d.PublicURL, Every: 24 * 365 * time.Hour, Log: d.Log,
					OnEnd: ended.Key})
			if err != nil {
				return service.App{}, err
			}
			if err := d.TrustPlatform(keys.Signer()); err != nil {
				return service.App{}, err
			}
			server := d.Server("applications")
			httpapi.RegisterOAuth(server, token.New(token.Deps{
				Store: d.Store, Clients: w.clients, Signer: keys.Signer(), Verifier: d.Verifier, TTL: time.Hour,
				Limits:     limits,
				Chosen:     func(clientID string) bool { return clientID == chosenClient },
				Assertions: clientauth.NewAssertions(d.Store, d.Outbound, d.Log),
			}), keys)
			refresh := func(ctx context.Context) error {
				_, err := keys.Refresh(ctx)
				return err
			}
			return service.App{
				Handler: server, Followers: []stream.FollowerConfig{ended.Follower(d.Verifier, d.Store, refresh)},
				Answer: func(b *bus.Bus) error { return ended.Answer(b, d.Store) },
			}, nil
		},
	}
	w.Service = testkit.Start(t, w.spec)
	return w
}

// form sends a form body.
func (w *world) form(path, body string, headers ...string) *testkit.Answer {
	c := w.Stranger().With("Content-Type", rest.FormType)
	for i := 0; i < len(headers); i += 2 {
		c = c.With(headers[i], headers[i+1])
	}
	return c.Post(path, body)
}

// basicAuth is the Authorization header of client_secret_basic (RFC 6749 §2.3.1).
func basicAuth(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// token gets a token by client_secret_basic.
func (w *world) token(t testing.TB, id, secret string, more ...string) string {
	t.Helper()
	var answer token.Token
	w.form(tokenPath, strings.Join(append([]string{grant}, more...), "&"), "Authorization",
		basicAuth(id, secret)).OK(&answer)
	return answer.AccessToken
}

// requireFault checks an OAuth error (RFC 6749 §5.2).
func requireFault(t *testing.T, answer *testkit.Answer, status int, code string) {
	t.Helper()
	require.Equal(t, status, answer.Status, "%s", answer.Body)
	var fault rest.OAuthFault
	require.NoError(t, json.Unmarshal(answer.Body, &fault))
	require.Equal(t, code, fault.Error, "%s", answer.Body)
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
}

func TestTokenEndpoint(t *testing.T) {
	t.Parallel()
	const odd = "a b+c%&:=é\"\\/" // characters that form encoding changes
	people := machine("people", "acme", "s3cret", "users:read", "users:write")
	people.Category = "1"
	off := machine("off", "acme", "s3cret", "users:read")
	off.Enabled = false
	expired := machine("expired", "acme", "s3cret", "users:read")
	expired.Secrets[0].Expires = basic.NewClock().Now().Add(-time.Minute)
	w := newWorld(t, machine("c1", "acme", "s3cret", "users:read", "users:write"),
		machine(odd, "acme", odd, "users:read"),
		machine("none", "acme", "s3cret"), people, off, expired)
	good := basicAuth("c1", "s3cret")
	for name, c := range map[string]struct {
		authorization, body string
		status              int
		want                string // the scope given, or the error
	}{
		"basic": {good, grant, 200, "users:read users:write"},
		"basic in lower case": {"basic" + strings.TrimPrefix(good, "Basic"), grant, 200,
			"users:read users:write"},
		"basic, percent-encoded": {basicAuth(odd, odd), grant, 200, "users:read"},
		"post": {"", grant + "&client_id=c1&client_secret=s3cret", 200,
			"users:read users:write"},
		"post, percent-encoded": {"", grant + "&client_id=" + url.QueryEscape(odd) + "&client_secret=" +
			url.QueryEscape(odd), 200, "users:read"},
		"basic and the same client_id": {good, grant + "&client_id=c1", 200, "users:read users:write"},
		"a part of the scopes":         {good, grant + "&scope=users:write", 200, "users:write"},
		"no scopes":                    {basicAuth("none", "s3cret"), grant, 200, ""},
		"unknown parameters":           {good, grant + "&resource=x&resource=y", 200, "users:read users:write"},
		"an empty scope":               {good, grant + "&scope=", 200, "users:read users:write"},
		"more scopes":                  {good, grant + "&scope=users:read+kv:read", 400, "invalid_scope"},
		"an unknown scope":             {good, grant + "&scope=users:fly", 400, "invalid_scope"},
		"no grant type":                {good, "scope=users:read", 400, "invalid_request"},
		"another grant type": {good, "grant_type=password&username=x&password=y", 400,
			"unsupported_grant_type"},
		"grant type twice":        {good, grant + "&" + grant, 400, "invalid_request"},
		"another category":        {basicAuth("people", "s3cret"), grant, 400, "unauthorized_client"},
		"no credential":           {"", grant, 401, "invalid_client"},
		"client id alone":         {"", grant + "&client_id=c1", 401, "invalid_client"},
		"secret alone":            {"", grant + "&client_secret=s3cret", 400, "invalid_request"},
		"a wrong secret":          {basicAuth("c1", "s3creT"), grant, 401, "invalid_client"},
		"an empty secret":         {basicAuth("c1", ""), grant, 401, "invalid_client"},
		"the hash for the secret": {basicAuth("c1", application.HashSecret("s3cret")), grant, 401, "invalid_client"},
		"an unknown client":       {basicAuth("c9", "s3cret"), grant, 401, "invalid_client"},
		"a disabled client":       {basicAuth("off", "s3cret"), grant, 401, "invalid_client"},
		"an expired secret":       {basicAuth("expired", "s3cret"), grant, 401, "invalid_client"},
		"basic, not encoded": {"Basic " + base64.StdEncoding.EncodeToString([]byte("c1:100%")), grant, 401,
			"invalid_client"},
		"basic, no base64": {"Basic c1:s3cret", grant, 401, "invalid_client"},
		"basic, no colon": {"Basic " + base64.StdEncoding.EncodeToString([]byte("c1")), grant, 401,
			"invalid_client"},
		"bearer": {"Bearer x", grant, 401, "invalid_client"},
		"basic and post, the same": {good, grant + "&client_id=c1&client_secret=s3cret", 200,
			"users:read users:write"},
		"basic and another secret":      {good, grant + "&client_id=c1&client_secret=x", 400, "invalid_request"},
		"basic and a secret alone":      {good, grant + "&client_secret=s3cret", 400, "invalid_request"},
		"basic and another client_id":   {good, grant + "&client_id=c2", 400, "invalid_request"},
		"basic and an assertion's type": {good, grant + "&client_assertion_type=x", 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := w.form(tokenPath, c.body, "Authorization", c.authorization)
			if c.authorization == "" {
				answer = w.form(tokenPath, c.body)
			}
			if c.status != http.StatusOK {
				requireFault(t, answer, c.status, c.want)
				if c.status == http.StatusUnauthorized && c.authorization != "" {
					require.Contains(t, answer.Header.Get("WWW-Authenticate"), "Basic realm=")
				}
				return
			}
			var given token.Token
			answer.OK(&given)
			require.Equal(t, "Bearer", given.TokenType)
			require.EqualValues(t, 3600, given.ExpiresIn)
			require.Equal(t, c.want, given.Scope)
			require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
			require.Equal(t, "no-cache", answer.Header.Get("Pragma"), "RFC 6749 §5.1")
			p, err := w.Deps.Verifier.Verify(t.Context(), given.AccessToken)
			require.NoError(t, err)
			require.Equal(t, "acme", p.Tenant)
			require.Equal(t, p.ClientID, p.Subject)
			require.Equal(t, c.want, p.Scopes.String())
			require.Equal(t, w.Clock.Now().Add(time.Hour).Millis()/1000, p.Expires.Millis()/1000)
		})
	}
}

func TestTwoAuthorizationHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("c1", "acme", "s3cret"))
	r, err := http.NewRequest(http.MethodPost, tokenPath, strings.NewReader(grant))
	require.NoError(t, err)
	r.Header["Authorization"] = []string{basicAuth("c1", "s3cret"), basicAuth("c1", "s3cret")}
	r.Header.Set("Content-Type", rest.FormType)
	requireFault(t, w.Send(r), http.StatusBadRequest, "invalid_request")
}

func TestTokenForAnotherTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("admin", "default", "s3cret", "platform:admin"),
		machine("c1", "acme", "s3cret", "users:read"))
	var given token.Token
	w.form(tokenPath, grant+"&scope=users:read", "Authorization", basicAuth("admin", "s3cret"), "X-Tenant-Id",
		"globex").OK(&given)
	p, err := w.Deps.Verifier.Verify(t.Context(), given.AccessToken)
	require.NoError(t, err)
	require.Equal(t, "globex", p.Tenant)
	require.Equal(t, "users:read", given.Scope, "an administrator may ask for less")
	requireFault(t, w.form(tokenPath, grant, "Authorization", basicAuth("c1", "s3cret"), "X-Tenant-Id", "globex"),
		http.StatusForbidden, "access_denied")
	requireFault(t, w.form(tokenPath, grant, "Authorization", basicAuth("admin", "s3cret"), "X-Tenant-Id", "No Tenant"),
		http.StatusBadRequest, "invalid_request")
	w.form(tokenPath, grant, "Authorization", basicAuth("c1", "s3cret"), "X-Tenant-Id", "acme").OK(nil)
}

// A dry run returns no token, but counts wrong secrets.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, token.Limits{TokensPerSecond: 1000, FailuresPerMinute: 3},
		machine("c1", "acme", "s3cret", "users:read"))
	answer := w.form(tokenPath+"?dry_run=true", grant, "Authorization", basicAuth("c1", "s3cret"))
	require.Equal(t, "true", answer.Header.Get("Dry-Run"))
	require.JSONEq(t, `{"access_token":"******","token_type":"Bearer","expires_in":3600,"scope":"users:read"}`,
		string(answer.OK(nil).Body))
	for range 3 {
		requireFault(t, w.form(tokenPath+"?dry_run=true", grant, "Authorization", basicAuth("c1", "x")),
			http.StatusUnauthorized, "invalid_client")
	}
	requireFault(t, w.form(tokenPath, grant, "Authorization", basicAuth("c1", "x")), http.StatusTooManyRequests,
		"temporarily_unavailable")
	require.Len(t, w.Events(3), 3)

	text := w.token(t, "c1", "s3cret")
	w.form(revokePath+"?dry_run=true", "token="+text, "Authorization", basicAuth("c1", "s3cret")).OK(nil)
	_, err := w.Deps.Verifier.Verify(t.Context(), text)
	require.NoError(t, err)
}

// Wrong secrets are limited and emitted as events; the right secret, from the same address, is still accepted.
func TestFailuresAreLimitedAndEmitted(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, token.Limits{TokensPerSecond: 1000, FailuresPerMinute: 5}, machine("c1", "acme", "s3cret"),
		machine("c2", "acme", "s3cret"))
	try := func(client, secret, address string) *testkit.Answer {
		return w.form(tokenPath, grant, "Authorization", basicAuth(client, secret), "X-Forwarded-For", address)
	}
	for range 5 {
		requireFault(t, try("c1", "guess", "192.0.2.7"), http.StatusUnauthorized, "invalid_client")
	}
	for _, address := range []string{"192.0.2.7", "192.0.2.8"} { // the limit of the address and that of the client
		answer := try("c1", "guess", address)
		requireFault(t, answer, http.StatusTooManyRequests, "temporarily_unavailable")
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
		try("c1", "s3cret", address).OK(nil)
	}
	requireFault(t, try("unknown", "guess", "192.0.2.7"), http.StatusTooManyRequests, "temporarily_unavailable")
	requireFault(t, try("c2", "guess", "2001:db8::1"), http.StatusUnauthorized, "invalid_client")
	for range 4 {
		requireFault(t, try("unknown", "guess", "2001:db8::2"), http.StatusUnauthorized, "invalid_client")
	}
	requireFault(t, try("unknown", "guess", "2001:db8::3"), http.StatusTooManyRequests, "temporarily_unavailable")

	var told []token.Failures // of c1; failures over the limit have no event
	for _, e := range w.Events(6) {
		require.Equal(t, "idp.client.authentication_failed", e.Type)
		require.Equal(t, "acme", e.Tenant)
		require.NotContains(t, string(e.Data), "guess")
		var data struct{ Record token.Failures }
		require.NoError(t, json.Unmarshal(e.Data, &data))
		require.Equal(t, data.Record.ID, e.Subject)
		if e.Subject != "app-c1" {
			continue
		}
		told = append(told, data.Record)
		if len(told) == 2 {
			basic.Golden(t, "testdata/authentication_failed.json", basic.Since(t, w.Clock.Now(), e.Data))
		}
	}
	require.Len(t, told, 5)
	require.EqualValues(t, 5, told[4].Count)
	require.Equal(t, "192.0.2.7", told[4].Address)
}

func TestTokensAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, token.Limits{TokensPerSecond: 0.001, FailuresPerMinute: 5}, machine("c1", "acme", "s3cret"),
		machine("c2", "acme", "s3cret"))
	w.token(t, "c1", "s3cret")
	answer := w.form(tokenPath, grant, "Authorization", basicAuth("c1", "s3cret"))
	requireFault(t, answer, http.StatusTooManyRequests, "temporarily_unavailable")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	requireFault(t, w.form(tokenPath, grant, "Authorization", basicAuth("c2", "x")), http.StatusUnauthorized,
		"invalid_client")
	w.token(t, "c2", "s3cret") // each client has its own limit
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("c1", "acme", "s3cret", "users:read"), machine("c2", "acme", "s3cret"),
		machine("admin", "default", "s3cret", "platform:admin"))
	good := func(text string) bool {
		_, err := w.Deps.Verifier.Verify(t.Context(), text)
		return err == nil
	}
	one, second, third := w.token(t, "c1", "s3cret"), w.token(t, "c1", "s3cret"), w.token(t, "c1", "s3cret")

	answer := w.form(revokePath, "token="+one+"&token_type_hint=refresh_token", "Authorization",
		basicAuth("c1", "s3cret")).OK(nil)
	require.JSONEq(t, "{}", string(answer.Body))
	require.False(t, good(one), "this service knows it before it answers")
	w.form(revokePath, "token="+one, "Authorization", basicAuth("c1", "s3cret")).OK(nil) // again
	w.form(revokePath, "token=nonsense", "Authorization", basicAuth("c1", "s3cret")).OK(nil)

	requireFault(t, w.form(revokePath, "token="+second, "Authorization", basicAuth("c2", "s3cret")),
		http.StatusBadRequest, "unauthorized_client")
	requireFault(t, w.form(revokePath, "token="+second, "Authorization", basicAuth("c1", "x")), http.StatusUnauthorized,
		"invalid_client")
	requireFault(t, w.form(revokePath, "token="+second), http.StatusUnauthorized, "invalid_client")
	requireFault(t, w.form(revokePath, "", "Authorization", basicAuth("c1", "s3cret")), http.StatusBadRequest,
		"invalid_request")
	answer = w.form(revokePath, "token="+second, "Authorization", "Bearer "+one)
	requireFault(t, answer, http.StatusUnauthorized, "invalid_token")
	require.Equal(t, `Bearer error="invalid_token"`, answer.Header.Get("WWW-Authenticate"))
	requireFault(t, w.form(revokePath, "token="+w.Token("acme"), "Authorization", basicAuth("admin", "s3cret")),
		http.StatusBadRequest, "unsupported_token_type")
	require.True(t, good(second))

	w.form(revokePath, "token="+second, "Authorization", "Bearer "+second).OK(nil) // by itself
	w.form(revokePath, "token="+third, "Authorization", basicAuth("admin", "s3cret")).OK(nil)
	require.False(t, good(second))
	require.False(t, good(third))

	for _, e := range w.Events(4) {
		require.Equal(t, "acme", e.Tenant)
		require.NotContains(t, string(e.Data), strings.Split(one, ".")[2])
		if e.Type == "idp.client.authentication_failed" {
			continue
		}
		require.Equal(t, service.TokenEnded, e.Type)
		second := time.Duration(w.Clock.Now().Millis()%1000) * time.Millisecond
		record := basic.Since(t, w.Clock.Now().Add(-second), e.Data)
		basic.Golden(t, "testdata/token_ended.json", []byte(strings.ReplaceAll(string(record), e.Subject, "<jti>")))
	}
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, machine("c1", "acme", "s3cret", "users:read"), machine("c2", "acme", "s3cret"),
		machine("other", "globex", "s3cret"), machine("admin", "default", "s3cret", "platform:admin"))
	text := w.token(t, "c1", "s3cret")
	ask := func(text, authorization string) *testkit.Answer {
		return w.form(introspectPath, "token="+text, "Authorization", authorization)
	}
	var told token.Introspection
	for _, authorization := range []string{
		basicAuth("c1", "s3cret"), basicAuth("c2", "s3cret"), basicAuth("admin", "s3cret"), "Bearer " + text,
		"Bearer " + w.Token("acme"),
	} {
		ask(text, authorization).OK(&told)
		require.True(t, told.Active)
	}
	now := w.Clock.Now().Millis() / 1000
	require.NotEmpty(t, told.TokenID)
	require.Equal(t, token.Introspection{
		Active: true, Scope: "users:read", ClientID: "c1", TokenType: "Bearer", Expires: now + 3600, IssuedAt: now,
		Subject: "c1",
		Issuer:  "https://idp.test", TokenID: told.TokenID, Tenant: "acme",
	}, told)

	inactive := func(text, authorization string) {
		t.Helper()
		require.JSONEq(t, `{"active":false}`, string(ask(text, authorization).OK(nil).Body))
	}
	inactive(text, basicAuth("other", "s3cret"))
	inactive("nonsense", basicAuth("c1", "s3cret"))
	inactive(w.Token("acme"), basicAuth("admin", "s3cret")) // a token of another issuer
	requireFault(t, ask(text, basicAuth("c1", "x")), http.StatusUnauthorized, "invalid_client")
	requireFault(t, ask(text, "Bearer nonsense"), http.StatusUnauthorized, "invalid_token")
	requireFault(t, w.form(introspectPath, "token="+text), http.StatusUnauthorized, "invalid_client")

	// A caller's secret is cached until an event ends it, and at most as long as a verified token.
	ctx := request.System(t.Context(), "acme")
	changed := machine("c2", "acme", "another", "users:read")
	changed.Version = 2
	w.clients.set(changed)
	ask(text, basicAuth("c2", "s3cret")).OK(nil)
	require.NoError(t, docstore.Do(ctx, w.Deps.Store,
		func(tx *docstore.Tx) error { return ended.Client(ctx, tx, "c2", 2) }))
	wait.Until(t, func() bool { return ask(text, basicAuth("c2", "s3cret")).Status == http.StatusUnauthorized })
	ask(text, basicAuth("c2", "another")).OK(nil)
	w.clients.set(machine("c2", "acme", "a third"))
	w.Clock.Advance(auth.MaxCacheTTL)
	requireFault(t, ask(text, basicAuth("c2", "another")), http.StatusUnauthorized, "invalid_client")

	w.form(revokePath, "token="+text, "Authorization", basicAuth("c1", "s3cret")).OK(nil)
	inactive(text, basicAuth("c1", "s3cret"))
	second := w.token(t, "c1", "s3cret")
	ask(second, basicAuth("c1", "s3cret")).OK(&told)
	w.Clock.Advance(time.Hour + auth.Leeway + time.Second)
	inactive(second, basicAuth("c1", "s3cret"))
}
