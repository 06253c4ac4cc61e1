package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idplatform/idplatform/console/internal/issuer"
	"github.com/idplatform/idplatform/console/internal/proxy"
	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
)

const (
	oidcPath     = "/console/~/oidc"
	callbackPath = "/console/~/oidc/callback"
	whoamiPath   = "/v1/oauth2/whoami"

	// Longer tokens are refused by the services; longer ones of the other kinds do not fit into cookies.
	maxRefresh = 4 << 10
	maxIDToken = 4 << 10
	maxReturn  = 1 << 10 // bytes of a path to return to
)

// failure tells the page why nobody was signed in at the issuer.
type failure struct {
	Code   string   `json:"code"`
	Issuer string   `json:"issuer,omitempty"` // the issuer's error code
	Claims []string `json:"claims,omitempty"` // names of the token's claims
	Return string   `json:"return,omitempty"` // where the person wanted to go
}

// The codes of a failure. The page has a text for each.
const (
	issuerAway     = "issuer_away"     // the issuer does not answer
	platformAway   = "platform_away"   // the platform does not answer
	issuerRefused  = "issuer_refused"  // the issuer sent an error
	flowUnknown    = "flow_unknown"    // another browser's, used, or too old
	answerInvalid  = "answer_invalid"  // what the issuer sent proves nothing
	notFresh       = "not_fresh"       // the issuer did not ask the person again
	tokenUntrusted = "token_untrusted" // the services do not accept the access token
	tokenNoScopes  = "token_no_scopes" // it has no scope of the platform
	tokenTooLarge  = "token_too_large"
	notSecure      = "not_secure" // the browser would not keep a session
)

// serveOIDC has both ends of a sign-in at the issuer.
func (c *Console) serveOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET"))
	case r.URL.Path == callbackPath:
		c.comeBack(w, r)
	default:
		c.sendAway(w, r)
	}
}

// sendAway sends the browser to the issuer. It is a link, since a form that leads to another host would need a weaker
// policy for all pages; other sites' links lead to the sign-in page, so none can begin a sign-in that nobody asked for.
func (c *Console) sendAway(w http.ResponseWriter, r *http.Request) {
	if from := r.Header.Get("Sec-Fetch-Site"); from == "cross-site" || from == "same-site" {
		http.Redirect(w, r, signInPath, http.StatusSeeOther)
		return
	}
	query := r.URL.Query()
	back := returnPath(query.Get("return"))
	if !session.Secure(r) {
		c.fail(w, r, failure{Code: notSecure, Return: back})
		return
	}
	f, err := c.cookies.Begin(w, r, issuer.NewFlow(back, query.Has("fresh")))
	if err != nil {
		problem.Write(w, err)
		return
	}
	target, err := c.issuer.SignInURL(r.Context(), f, callbackURL(r))
	if err != nil {
		c.fail(w, r, failure{Code: issuerAway, Return: back})
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// comeBack is where the browser comes back from the issuer.
func (c *Console) comeBack(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	f, ok := c.cookies.Take(w, r, query.Get("state"))
	if !ok {
		c.fail(w, r, failure{Code: flowUnknown})
		return
	}
	failed := failure{Return: f.Return}
	if text := query.Get("error"); text != "" {
		failed.Code, failed.Issuer = issuerRefused, issuer.Code(text)
		c.fail(w, r, failed)
		return
	}
	if name := query.Get("iss"); name != "" && name != c.issuer.Name() { // RFC 9207
		failed.Code = answerInvalid
		c.fail(w, r, failed)
		return
	}
	person, err := c.issuer.Finish(r.Context(), f, callbackURL(r), query.Get("code"))
	if err != nil {
		c.log.Warn("nobody was signed in at the issuer", "error", err)
		failed.Code = codeOf(err)
		c.fail(w, r, failed)
		return
	}
	s, code := c.personSession(r, person)
	if code == "" && !c.cookies.Write(w, r, s) {
		code = tokenTooLarge
	}
	if code != "" {
		c.endTokens(r, c.personTokens(person)) // nobody has them
		failed.Code, failed.Claims = code, issuer.Claims(person.Access)
		c.fail(w, r, failed)
		return
	}
	http.Redirect(w, r, f.Return, http.StatusSeeOther)
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, issuer.ErrNotFresh):
		return notFresh
	case errors.Is(err, issuer.ErrAnswer):
		return answerInvalid
	case errors.Is(err, issuer.ErrRefused):
		return issuerRefused
	}
	return issuerAway
}

// fail answers with the page, which tells why and offers all ways to sign in.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, f failure) {
	a := c.about(r)
	a.Failure = &f
	c.pages.Page(w, r, a, "")
}

// callbackURL is the address that the issuer knows. A forged host does not help: it is not among those of the client.
func callbackURL(r *http.Request) string { return session.Base(r) + callbackPath }

// returnPath is a path of the console, whatever somebody has put into a link.
func returnPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxReturn || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		!isScreen(u.Path) {
		return "/console"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

func isScreen(path string) bool {
	return strings.HasPrefix(path, "/console/") && !strings.HasPrefix(path, "/console/~") &&
		!strings.HasPrefix(path, proxy.Prefix) && !strings.Contains(path, "/..") && !strings.ContainsAny(path, "\\\r\n")
}

// personTokens is a session that has the tokens alone, so that they can be ended.
func (c *Console) personTokens(p issuer.Person) session.Session {
	return session.Session{Issuer: c.issuer.Name(), Token: p.Access, Refresh: p.Refresh}
}

// personSession makes the session of somebody who has signed in at the issuer; else the code of the failure.
func (c *Console) personSession(r *http.Request, p issuer.Person) (s session.Session, code string) {
	s = session.New(c.now())
	s.Issuer, s.Name, s.Proved = c.issuer.Name(), p.Name, p.Proved
	if len(p.Access) > auth.MaxTokenSize {
		return s, tokenTooLarge
	}
	c.keep(&s, p.Tokens)
	if code := c.identify(r.Context(), r, &s); code != "" {
		return s, code
	}
	if s.Scope == "" {
		return s, tokenNoScopes
	}
	if len(p.IDToken) <= maxIDToken && c.issuer.EndsSessions(r.Context()) && !c.accepts(r, p.IDToken) {
		s.IDToken = p.IDToken
	}
	return s, ""
}

// accepts reports whether the services may take a token for an access token. An ID token that they take is a
// credential, and does not belong into the URL in which it tells the issuer whom to sign out.
func (c *Console) accepts(r *http.Request, token string) bool {
	status, _, err := c.gateway.Get(r.Context(), r, whoamiPath, token)
	return err != nil || status != http.StatusUnauthorized
}

// identity is what the platform reads from a token.
type identity struct {
	Actor   string    `json:"actor"`
	Tenant  string    `json:"tenant_id"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"time_expires"`
}

// keep puts an issuer's tokens into a session.
func (c *Console) keep(s *session.Session, t issuer.Tokens) {
	if len(t.Refresh) > maxRefresh {
		c.log.Warn("the issuer's refresh token is too large for a session, which ends with the access token",
			"bytes", len(t.Refresh))
		t.Refresh = ""
	}
	s.Token, s.Refresh, s.Expires = t.Access, t.Refresh, t.Expires
}

// identify puts into a session what the platform reads from its token; it returns the code of a failure.
func (c *Console) identify(ctx context.Context, r *http.Request, s *session.Session) (code string) {
	status, body, err := c.gateway.Get(ctx, r, whoamiPath, s.Token)
	if err != nil || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return platformAway
	}
	var who identity
	if status != http.StatusOK || json.Unmarshal(body, &who) != nil {
		return tokenUntrusted
	}
	s.Actor, s.Tenant, s.Scope = who.Actor, who.Tenant, strings.Join(who.Scopes, " ")
	s.Expires = who.Expires.Unix()
	return ""
}
