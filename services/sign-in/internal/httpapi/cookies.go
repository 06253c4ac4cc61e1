package httpapi

import (
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// cookies are the names and attributes of the service's cookies. They have the prefix __Host- (RFC 6265bis §4.1.3.2),
// so that no other host can set them, except on plain http, which only a platform on this machine has.
type cookies struct{ secure bool }

const (
	browserCookie  = "idp_browser" // recognizes the browser
	languageCookie = "idp_lang"
	sessionCookie  = "idp_session_" // and the tenant: __Host- cookies have no path that could tell them apart
	trustCookie    = "idp_trust_"   // and the tenant: of the last sign-in with two factors

	browserBytes = 32
	// rememberedFor is the longest that browsers keep a cookie.
	rememberedFor = 400 * 24 * time.Hour
)

func (c cookies) name(name string) string {
	if c.secure {
		return "__Host-" + name
	}
	return name
}

func (c cookies) get(r *http.Request, name string) string {
	if cookie, err := r.Cookie(c.name(name)); err == nil {
		return cookie.Value
	}
	return ""
}

// make makes a cookie. Lax: it comes with links from applications, and not with their forms.
func (c cookies) make(name, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: c.name(name), Value: value, Path: "/", HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteLaxMode,
		MaxAge: int(age.Seconds()),
	}
}

// drop removes a cookie.
func (c cookies) drop(name string) *http.Cookie {
	cookie := c.make(name, "", 0)
	cookie.MaxAge = -1
	return cookie
}

// browser returns the hash of the browser's cookie; without one, of a new cookie, which the answer sets.
func (c cookies) browser(r *http.Request) (hash string, made *http.Cookie) {
	if value := c.get(r, browserCookie); len(value) >= browserBytes && len(value) <= 4*browserBytes {
		return session.Hash(value), nil
	}
	value := secret.Token(browserBytes)
	return session.Hash(value), c.make(browserCookie, value, rememberedFor)
}
