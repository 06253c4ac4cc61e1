// Package issuertest is an OIDC issuer for tests, on this machine. It checks what it is asked as strictly as the
// strictest issuers do: PKCE, the client's secret, codes that are good once, refresh tokens that are good once and end
// all tokens of a person when they come twice. Everybody who comes is signed in at once.
package issuertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The client that the issuer knows.
const (
	ClientID     = "idp console"
	ClientSecret = "s:ecret/+"
)

// Issuer is a running issuer. Its exported members may be changed while nobody asks it.
type Issuer struct {
	URL     string
	Subject string
	Now     func() time.Time
	Life    time.Duration // of access tokens

	Access func(claims map[string]any) // changes the claims of access tokens
	ID     func(claims map[string]any) // changes those of ID tokens
	Away   bool                        // answers 503
	Opaque bool                        // access tokens are no JWTs
	Post   bool                        // the client proves itself in the body, not in a header
	Bare   bool                        // it can neither renew nor revoke, and has no page to sign out

	server *httptest.Server
	signer jose.Signer
	keys   jose.JSONWebKeySet

	mu       sync.Mutex
	count    int
	codes    map[string]url.Values // the authorization requests, by code
	refresh  map[string]url.Values // by refresh token; nil when it is used up
	discards bool                  // a refresh token came twice
	renewals int
	asked    url.Values
	revoked  []string
}

// Start starts an issuer.
func Start() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &Issuer{
		Subject: "may", Now: time.Now, Life: 5 * time.Minute,
		codes: map[string]url.Values{}, refresh: map[string]url.Values{},
		keys: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"},
		}},
	}
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, i.keys) })
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	mux.HandleFunc("GET /end", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("post_logout_redirect_uri"), http.StatusFound)
	})
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.Away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	i.URL = i.server.URL
	return i, nil
}

// Close stops the issuer.
func (i *Issuer) Close() { i.server.Close() }

// Asked is the last authorization request.
func (i *Issuer) Asked() url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Revoked are the tokens that were revoked.
func (i *Issuer) Revoked() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revoked
}

// Renewals is how often a refresh token was exchanged.
func (i *Issuer) Renewals() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.renewals
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	found := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
	}
	if i.Post {
		found["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt", "client_secret_post"}
	}
	if !i.Bare {
		found["revocation_endpoint"], found["end_session_endpoint"] = i.URL+"/revoke", i.URL+"/end"
	}
	write(w, http.StatusOK, found)
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	i.asked = q
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code := i.next("code")
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) next(kind string) string {
	i.count++
	return kind + strconv.Itoa(i.count)
}

// known reports whether the client has proved itself (RFC 6749 §2.3.1).
func (i *Issuer) known(r *http.Request) bool {
	id, password, inHeader := r.BasicAuth()
	if i.Post {
		return !inHeader && r.FormValue("client_id") == ClientID && r.FormValue("client_secret") == ClientSecret
	}
	return id == url.QueryEscape(ClientID) && password == url.QueryEscape(ClientSecret)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.known(r) {
		write(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	var request url.Values
	switch r.FormValue("grant_type") {
	case "authorization_code":
		request = i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != request.Get("code_challenge") ||
			request.Get("redirect_uri") != r.FormValue("redirect_uri") {
			request = nil
		}
	case "refresh_token":
		i.renewals++
		old := r.FormValue("refresh_token")
		var issued bool
		request, issued = i.refresh[old]
		i.discards = i.discards || issued && request == nil
		i.refresh[old] = nil
		if i.discards {
			request = nil
		}
	}
	if request == nil {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	i.answer(w, request)
}

func (i *Issuer) answer(w http.ResponseWriter, request url.Values) {
	now := i.Now().Unix()
	access := i.sign(i.Access, map[string]any{
		"iss": i.URL, "sub": i.Subject, "aud": "idplatform", "iat": now, "exp": now + int64(i.Life/time.Second),
		"jti": i.next("t"),
	})
	if i.Opaque {
		access = i.next("opaque")
	}
	refresh := ""
	if !i.Bare {
		refresh = i.next("refresh")
		i.refresh[refresh] = request
	}
	write(w, http.StatusOK, map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int64(i.Life / time.Second),
		"refresh_token": refresh,
		"id_token": i.sign(i.ID, map[string]any{
			"iss": i.URL, "sub": i.Subject, "aud": ClientID, "iat": now, "exp": now + 300, "auth_time": now,
			"nonce": request.Get("nonce"), "email": "may@example.com",
		}),
	})
}

func (i *Issuer) sign(change func(map[string]any), claims map[string]any) string {
	claims = maps.Clone(claims)
	if change != nil {
		change(claims)
	}
	text, err := jwt.Signed(i.signer).Claims(claims).Serialize()
	if err != nil {
		panic(err) // the claims are texts and numbers
	}
	return text
}

func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.known(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	i.revoked = append(i.revoked, r.FormValue("token"))
	delete(i.refresh, r.FormValue("token"))
}
