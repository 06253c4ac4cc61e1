package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	sessionPath = "/console/~/session"
	linksPath   = "/console/~/links"
	signInPath  = "/console/sign-in"
	tokenPath   = "/v1/oauth2/token"
	revokePath  = "/v1/oauth2/revoke"

	maxSignIn = 16 << 10 // bytes of a sign-in's body
)

// about is what the page knows about the session, and about the console itself.
type about struct {
	SignedIn    bool   `json:"signed_in"`
	Actor       string `json:"actor,omitempty"`
	ClientID    string `json:"client_id,omitempty"`
	Name        string `json:"name,omitempty"`
	Tenant      string `json:"tenant_id,omitempty"`
	Scope       string `json:"scope,omitempty"`
	TimeSigned  string `json:"time_signed_in,omitempty"`
	TimeExpires string `json:"time_expires,omitempty"`

	Banner       string `json:"banner,omitempty"`
	ClientSignIn bool   `json:"client_sign_in"`
	OIDC         string `json:"oidc,omitempty"` // names the issuer at which people may sign in
	Secure       bool   `json:"secure"`         // false: browsers would not keep the session, see session.Secure

	Failure    *failure `json:"failure,omitempty"`
	SignOutURL string   `json:"sign_out_url,omitempty"` // where the page goes on to sign out at the issuer
}

func (c *Console) about(r *http.Request) about {
	s, ok := c.cookies.Read(r)
	return c.aboutSession(r, s, ok)
}

func (c *Console) aboutSession(r *http.Request, s session.Session, ok bool) about {
	a := about{Banner: c.config.Banner, ClientSignIn: c.config.ClientSignIn, Secure: session.Secure(r)}
	if c.issuer != nil {
		a.OIDC = c.config.OIDC.label()
	}
	if ok {
		a.SignedIn, a.Actor, a.ClientID, a.Name = true, s.Actor, s.ClientID, s.Name
		a.Tenant, a.Scope = s.Tenant, s.Scope
		a.TimeSigned = time.Unix(s.SignedIn, 0).UTC().Format(time.RFC3339)
		a.TimeExpires = s.Ends().UTC().Format(time.RFC3339)
	}
	return a
}

// signIn is the body of a sign-in: a one-time code, or a client's id and secret.
type signIn struct {
	Code         string `json:"code"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// serveSession tells about the session, begins one, and ends it.
func (c *Console) serveSession(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		writeJSON(w, c.about(r))
	case http.MethodPost:
		c.begin(w, r)
	case http.MethodDelete:
		c.end(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST, DELETE")
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET, HEAD, POST and DELETE"))
	}
}

func (c *Console) begin(w http.ResponseWriter, r *http.Request) {
	if !session.Secure(r) {
		problem.Write(w, apperr.New(apperr.InvalidState,
			"the console needs HTTPS, except on the machine that it runs on"))
		return
	}
	var in signIn
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSignIn))
	if err != nil || json.Unmarshal(text, &in) != nil {
		problem.Write(w, apperr.Invalid("body", "must be a JSON object of at most %d bytes", maxSignIn))
		return
	}
	s, err := c.open(r, in)
	if err != nil {
		problem.Write(w, err)
		return
	}
	if old, ok := c.cookies.Read(r); ok { // is replaced: its tokens have no other owner
		c.endTokens(r, old)
	}
	if !c.cookies.Write(w, r, s) {
		problem.Write(w, apperr.New(apperr.TooLarge, "the token is too large for a session"))
		return
	}
	writeJSON(w, c.aboutSession(r, s, true))
}

// open makes the session of a sign-in.
func (c *Console) open(r *http.Request, in signIn) (s session.Session, err error) {
	switch {
	case in.Code != "":
		s, ok := c.links.Take(in.Code)
		if !ok {
			return s, apperr.New(apperr.Unauthenticated, "the link has been used, or is older than two minutes")
		}
		return s, nil
	case !c.config.ClientSignIn:
		return s, apperr.New(apperr.Forbidden, "signing in with a client's secret is turned off")
	case in.ClientID == "" || in.ClientSecret == "":
		return s, apperr.Invalid("body", "must have code, or client_id and client_secret")
	}
	return c.askToken(r.Context(), r, in.ClientID, in.ClientSecret)
}

// given is what the token endpoint answers.
type given struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// askToken gets a token with a client's credentials, which are not kept.
func (c *Console) askToken(ctx context.Context, r *http.Request, id, secret string) (s session.Session, err error) {
	header := http.Header{}
	basic := http.Request{Header: header}
	basic.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) // RFC 6749 §2.3.1
	status, body, err := c.gateway.PostForm(ctx, r, tokenPath,
		url.Values{"grant_type": {"client_credentials"}}, header)
	if err != nil {
		return s, err
	}
	var g given
	if err := json.Unmarshal(body, &g); err != nil {
		return s, apperr.Away("the applications service", errors.New("its answer is not JSON"))
	}
	switch {
	case status == http.StatusOK && g.AccessToken != "":
	case status == http.StatusUnauthorized || g.Error == "invalid_client":
		return s, apperr.New(apperr.Unauthenticated, "the client id or the secret is wrong")
	case status == http.StatusTooManyRequests:
		return s, &apperr.Error{Kind: apperr.RateLimited, Detail: "too many attempts", RetryAfter: time.Minute}
	case status >= http.StatusInternalServerError:
		return s, apperr.Away("the applications service", errors.New(g.Description))
	default:
		return s, apperr.New(apperr.Forbidden, "the application may not sign in: %s", g.Description)
	}
	s = session.New(c.now())
	s.Token, s.Tenant, s.Scope = g.AccessToken, tenantOf(g.AccessToken), g.Scope
	s.ClientID, s.Actor, s.Proved, s.Expires = id, auth.ClientActor(id), s.SignedIn, s.SignedIn+g.ExpiresIn
	return s, nil
}

// end signs out: the tokens end everywhere, whoever may have copied them.
func (c *Console) end(w http.ResponseWriter, r *http.Request) {
	s, ok := c.cookies.Read(r)
	if ok {
		c.endTokens(r, s)
	}
	c.cookies.Clear(w, r)
	a := c.aboutSession(r, session.Session{}, false)
	if ok && c.issuer != nil && s.Issuer == c.issuer.Name() {
		a.SignOutURL = c.issuer.SignOutURL(r.Context(), s.IDToken, session.Base(r)+signInPath)
	}
	writeJSON(w, a)
}

// endTokens ends the tokens of a session where they come from. A failure does not keep a person signed in.
func (c *Console) endTokens(r *http.Request, s session.Session) {
	if s.Issuer != "" {
		c.endAtIssuer(r, s)
		return
	}
	header := http.Header{"Authorization": {"Bearer " + s.Token}}
	status, _, err := c.gateway.PostForm(r.Context(), r, revokePath, url.Values{"token": {s.Token}}, header)
	if err != nil || status != http.StatusOK {
		c.log.Warn("a session's token was not revoked; it ends by itself", "actor", s.Actor, "status", status,
			"error", err)
	}
}

func (c *Console) endAtIssuer(r *http.Request, s session.Session) {
	if c.issuer == nil || s.Issuer != c.issuer.Name() {
		return // the console has another issuer now, whom these tokens do not concern
	}
	for _, t := range []struct{ token, kind string }{{s.Refresh, "refresh_token"}, {s.Token, "access_token"}} {
		if t.token == "" {
			continue
		}
		if err := c.issuer.Revoke(r.Context(), t.token, t.kind); err != nil {
			c.log.Warn("the issuer did not revoke a session's token; it ends by itself", "actor", s.Actor,
				"kind", t.kind, "error", err)
		}
	}
}

// Link returns the path of a one-time link that signs in as a client.
func (c *Console) Link(ctx context.Context, id, secret string) (path string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, linksPath, nil)
	if err != nil {
		return "", err
	}
	return c.link(ctx, r, id, secret)
}

// serveLinks makes a one-time link for a program that has a client's credentials, like `idp-standalone console`.
func (c *Console) serveLinks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only POST"))
		return
	}
	id, secret, ok := r.BasicAuth()
	id, err := url.QueryUnescape(id)
	secret, err2 := url.QueryUnescape(secret)
	if !ok || err != nil || err2 != nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="console"`)
		problem.Write(w, apperr.New(apperr.Unauthenticated, "a client's id and secret are needed"))
		return
	}
	path, err := c.link(r.Context(), r, id, secret)
	if err != nil {
		problem.Write(w, err)
		return
	}
	writeJSON(w, map[string]string{"path": path})
}

func (c *Console) link(ctx context.Context, r *http.Request, id, secret string) (path string, err error) {
	s, err := c.askToken(ctx, r, id, secret)
	if err != nil {
		return "", err
	}
	return signInPath + "#" + c.links.Add(s), nil
}

// tenantOf reads the tenant from the platform's own token, which the services verify; here it only chooses the first
// screen.
func tenantOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Tenant string `json:"tenant_id"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Tenant
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(body) // the client is gone, if anything
}
