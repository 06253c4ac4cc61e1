package oidc_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

func TestMain(m *testing.M) { basic.Main(m) }

const (
	tenant   = "acme"
	issuer   = "https://idp.test/sign-in/acme"
	callback = "https://shop.test/callback"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
)

// world is a provider with applications and a person who is signed in.
type world struct {
	*oidc.Provider
	t     testing.TB
	clock *basic.Clock
	store *docstore.Store

	mu      sync.Mutex
	apps    map[string]questions.Client // by client id
	person  protocol.Person
	groups  []string // nil: the organization service does not answer
	refused error    // what Person answers
	barred  error    // what MayUse answers
	away    error    // what Of answers
	ended   map[string]bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: basic.NewClock(), ended: map[string]bool{}}
	w.store = basic.Store(t, w.clock, oidc.Collections()...)
	ring, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, w.store.SealWith(t.Context(), ring))
	w.apps = map[string]questions.Client{}
	for _, app := range []questions.Client{shop(), spa(), backend()} {
		w.apps[app.ClientID] = app
	}
	w.person, w.groups = li(w), []string{"company", "company/rd"}
	w.Provider = w.replica()
	return w
}

// replica makes another provider on the same store.
func (w *world) replica() *oidc.Provider {
	return oidc.New(oidc.Deps{
		Store: w.store, Keys: keys.New(w.store), Clients: w, Seed: []byte(strings.Repeat("s", 32)),
		PublicURL: "https://idp.test", HTTP: http.DefaultClient, Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
		Person: func(_ context.Context, userID, sessionID string) (protocol.Person, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if userID != w.person.UserID || w.ended[sessionID] {
				return protocol.Person{}, apperr.Missing("session")
			}
			return w.person, w.refused
		},
		Groups: func(_ context.Context, userID string) ([]string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			require.Equal(w.t, w.person.UserID, userID)
			if w.groups == nil {
				return nil, apperr.Away("the organization service", nil)
			}
			return w.groups, nil
		},
		Exist:   func(context.Context, string, []proof.Proof) (bool, error) { return true, nil },
		MayUse:  func(context.Context, string, string) error { return w.barred },
		Consent: func(context.Context, string, string, []string) (string, error) { return "1", nil },
		Holds: func(_ context.Context, _, _ string, scopes []string) ([]string, error) {
			return []string{"users:read", "events:read"}, nil
		},
	})
}

// Of implements oidc.Clients.
func (w *world) Of(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away != nil {
		return questions.Client{}, w.away
	}
	for _, app := range w.apps {
		if request.Tenant(ctx) == tenant && (app.ClientID == name.ClientID || app.AppID == name.AppID) {
			return app, nil
		}
	}
	return questions.Client{}, apperr.Missing("application")
}

// change changes an application.
func (w *world) change(clientID string, edit func(*questions.Client)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	app := w.apps[clientID]
	edit(&app)
	w.apps[clientID] = app
}

// ctx is the context of a request.
func (w *world) ctx() context.Context { return request.System(w.t.Context(), tenant) }

func hashed(text string) questions.HashedSecret {
	sum := sha256.Sum256([]byte(text))
	return questions.HashedSecret{SHA256: hex.EncodeToString(sum[:])}
}

// shop is an application with a secret.
func shop() questions.Client {
	return questions.Client{
		AppID: "2001", ClientID: "shop", Name: "Shop", Category: "1", Enabled: true,
		RedirectURLs: []string{callback, "https://shop.test/other?x=1", "http://127.0.0.1:8080/cb"},
		LogoutURL:    "https://shop.test/bye",
		Scopes:       []string{"users:read", "kv:read"},
		OIDC:         &questions.OIDCSettings{SignatureAlgorithm: "ES256", LifetimeInSeconds: 3600},
		SignIn: questions.SignInSettings{
			Audiences:             []string{"https://api.test", "https://other.test"},
			PostLogoutURLs:        []string{"https://shop.test/out?a=b"},
			FrontchannelLogoutURL: "https://shop.test/front",
		},
		Secrets: []questions.HashedSecret{hashed("old secret"), hashed("shop secret")},
	}
}

// spa is an application without a secret.
func spa() questions.Client {
	return questions.Client{
		AppID: "2002", ClientID: "spa", Name: "SPA", Category: "2", Enabled: true,
		RedirectURLs: []string{"https://spa.test/callback"},
		OIDC:         &questions.OIDCSettings{SignatureAlgorithm: "ES256", LifetimeInSeconds: 3600},
	}
}

func backend() questions.Client {
	return questions.Client{
		AppID: "2004", ClientID: "backend", Category: "4", Enabled: true, RedirectURLs: []string{callback},
		OIDC: &questions.OIDCSettings{}, Secrets: []questions.HashedSecret{hashed("backend secret")},
	}
}

func li(w *world) protocol.Person {
	return protocol.Person{
		UserID: "1001", SessionID: "s-1",
		User: json.RawMessage(`{"id":"1001","username":"li.wei","display_name":"李伟","email":"li@acme.test",` +
			`"email_verified":true,"mobile":"+8613800000000","mobile_verified":false,"gender":"male","locale":"zh-CN",` +
			`"zoneinfo":"Asia/Shanghai","avatar_url":"/v1/users/1001/avatar","time_modified":"2026-01-31T09:30:00.000Z"}`),
		AuthTime: w.clock.Now(), ACR: "urn:idplatform:aal:1",
		AMR: []string{"pwd"}, SessionEnds: w.clock.Now().Add(24 * time.Hour),
	}
}

func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// form makes parameters from pairs; later ones replace earlier ones, and an empty value removes one.
func form(base url.Values, pairs ...string) url.Values {
	v := url.Values{}
	for name, values := range base {
		v[name] = values
	}
	for i := 0; i < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	return v
}

// ofShop and ofSPA are good requests.
func ofShop(pairs ...string) url.Values {
	return form(url.Values{
		"client_id": {"shop"}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid profile"},
		"state": {"st"}, "nonce": {"n-1"},
	}, pairs...)
}

func ofSPA(pairs ...string) url.Values {
	return ofShop(append([]string{"client_id", "spa", "redirect_uri", "https://spa.test/callback",
		"code_challenge", s256(verifier), "code_challenge_method", "S256"}, pairs...)...)
}

// answered are the members of an answer to an application.
func answered(t testing.TB, answer protocol.Answer) url.Values {
	t.Helper()
	if answer.Post != nil {
		return answer.Post
	}
	u, err := url.Parse(answer.URL)
	require.NoError(t, err)
	return u.Query()
}

// code lets the person sign in for a request, and returns the code.
func (w *world) code(v url.Values) string {
	w.t.Helper()
	r, err := w.Authorize(w.ctx(), issuer, v)
	require.NoError(w.t, err)
	answer, err := w.Grant(w.ctx(), issuer, r, w.person)
	require.NoError(w.t, err)
	members := answered(w.t, answer)
	require.Equal(w.t, issuer, members.Get("iss"))
	require.Equal(w.t, v.Get("state"), members.Get("state"))
	require.NotEmpty(w.t, members.Get("code"), members)
	return members.Get("code")
}

func shopAuth() []string { return []string{basicAuth("shop", "shop secret")} }

func basicAuth(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// byCode is the token request of the shop.
func byCode(code string, pairs ...string) oidc.TokenRequest {
	return oidc.TokenRequest{Authorization: shopAuth(), Form: form(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback},
	}, pairs...)}
}

// bySPA is the token request of the application without a secret.
func bySPA(code string, pairs ...string) oidc.TokenRequest {
	return oidc.TokenRequest{Form: form(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {"https://spa.test/callback"},
		"client_id": {"spa"}, "code_verifier": {verifier},
	}, pairs...)}
}

func refresh(auth []string, token string, pairs ...string) oidc.TokenRequest {
	return oidc.TokenRequest{Authorization: auth, Address: "192.0.2.7", Browser: "Firefox", Form: form(url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {token},
	}, pairs...)}
}

func (w *world) tokens(r oidc.TokenRequest) oidc.TokenAnswer {
	w.t.Helper()
	answer, err := w.Token(w.ctx(), issuer, r)
	require.NoError(w.t, err)
	return answer
}

// refusedAs requires an error of an endpoint that applications call.
func refusedAs(t testing.TB, err error, status int, code string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, status, problem.Status(apperr.KindOf(err)), err)
	if found := apperr.OAuthCode(err); found != "" {
		require.Equal(t, code, found, err)
		return
	}
	require.Equal(t, code, map[apperr.Kind]string{ // as package rest writes it
		apperr.InvalidParameters: "invalid_request", apperr.Unauthenticated: "invalid_client",
		apperr.Unavailable: "temporarily_unavailable", apperr.TooLarge: "invalid_request",
		apperr.RateLimited: "temporarily_unavailable",
	}[apperr.KindOf(err)], err)
}

// claimsOf decodes a JWT without verifying it.
func claimsOf(t testing.TB, token string) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	for i, into := range []*map[string]any{&header, &claims} {
		body, err := base64.RawURLEncoding.DecodeString(parts[i])
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, into))
	}
	return header, claims
}

// serve mounts the provider as httpapi does, with a person who signs in at once.
func (w *world) serve() (issuer string, client *http.Client) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	w.t.Cleanup(server.Close)
	issuer = server.URL + "/sign-in/acme"
	write := func(rw http.ResponseWriter, body any, err error) {
		rw.Header().Set("Content-Type", "application/json")
		if err != nil {
			rw.WriteHeader(problem.Status(apperr.KindOf(err)))
			body = map[string]string{"error": apperr.OAuthCode(err)}
		}
		_ = json.NewEncoder(rw).Encode(body)
	}
	of := func(r *http.Request) oidc.TokenRequest {
		_ = r.ParseForm()
		return oidc.TokenRequest{Form: r.PostForm, Authorization: r.Header.Values("Authorization")}
	}
	mux.HandleFunc("/sign-in/acme/authorize", func(rw http.ResponseWriter, r *http.Request) {
		asked, err := w.Authorize(w.ctx(), issuer, r.URL.Query())
		var answer protocol.Answer
		if refusal, ok := errors.AsType[*protocol.AnswerError](err); ok {
			answer, err = refusal.Answer, nil
		} else if err == nil {
			answer, err = w.Grant(w.ctx(), issuer, asked, w.person)
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(rw, r, answer.URL, http.StatusSeeOther)
	})
	mux.HandleFunc("/sign-in/acme/token", func(rw http.ResponseWriter, r *http.Request) {
		answer, err := w.Token(w.ctx(), issuer, of(r))
		write(rw, answer, err)
	})
	mux.HandleFunc("/sign-in/acme/userinfo", func(rw http.ResponseWriter, r *http.Request) {
		answer, err := w.UserInfo(w.ctx(), issuer, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		write(rw, answer, err)
	})
	mux.HandleFunc("/sign-in/acme/jwks", func(rw http.ResponseWriter, _ *http.Request) {
		set, err := w.Keys.JWKS(w.ctx())
		write(rw, set, err)
	})
	mux.HandleFunc("/sign-in/acme/.well-known/openid-configuration", func(rw http.ResponseWriter, _ *http.Request) {
		write(rw, oidc.Discovery(issuer), nil)
	})
	return issuer, server.Client()
}
