// Package session keeps a signed-in person's tokens in sealed cookies: scripts never see them, and because there is no
// store any replica serves any request.
package session

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// MaxIdle is how long a session lasts without a request, MaxAge how long it lasts in all.
	MaxIdle = 30 * time.Minute
	MaxAge  = 8 * time.Hour
	// Fresh is how long after a sign-in the calls are allowed that want a fresh one.
	Fresh = 5 * time.Minute

	// touchAfter is the age from which the time of the last request is written again.
	touchAfter = time.Minute
	// renewBefore is how long before the end of a token another is asked for.
	renewBefore = 30 * time.Second
)

// purpose binds the sealed texts to this use of the keys.
var purpose = []byte("console session")

// Session is one sign-in. Times are Unix seconds.
type Session struct {
	ID       string `json:"k"` // random: names the session in the cookie that has the time of its last request
	Token    string `json:"t"`
	Expires  int64  `json:"e"` // of the token
	Tenant   string `json:"n"`
	Scope    string `json:"s"`
	Actor    string `json:"c"`           // as in events and audit entries
	ClientID string `json:"b,omitempty"` // of the application that signed in by its secret
	Name     string `json:"p,omitempty"` // of the person that signed in at the issuer
	SignedIn int64  `json:"i"`           // when the session began
	Proved   int64  `json:"a"`           // when somebody last proved who they are; 0: the issuer does not say
	Seen     int64  `json:"u"`           // when the session was last used

	Issuer  string `json:"o,omitempty"` // that gave the tokens, if that is not the platform
	Refresh string `json:"r,omitempty"` // the issuer's refresh token
	IDToken string `json:"d,omitempty"` // tells the issuer whom to sign out
}

// New begins a session.
func New(now time.Time) Session {
	return Session{ID: secret.Token(9), SignedIn: now.Unix(), Seen: now.Unix()}
}

// Ends is when the session ends at the latest.
func (s Session) Ends() time.Time {
	ends := s.SignedIn + int64(MaxAge/time.Second)
	if s.Refresh == "" {
		ends = min(ends, s.Expires)
	}
	return time.Unix(ends, 0)
}

// Usable reports whether the token can still be sent; otherwise the issuer must be asked for another.
func (s Session) Usable(now time.Time) bool { return now.Before(time.Unix(s.Expires, 0)) }

// Due reports whether it is time to ask for another token.
func (s Session) Due(now time.Time) bool { return !s.Usable(now.Add(renewBefore)) }

// IsFresh reports whether the sign-in is recent enough for what wants a fresh one.
func (s Session) IsFresh(now time.Time) bool { return now.Sub(time.Unix(s.Proved, 0)) <= Fresh }

func (s Session) ended(now time.Time) bool {
	return !now.Before(s.Ends()) || now.Sub(time.Unix(s.Seen, 0)) > MaxIdle
}

// Cookies reads and writes sessions. It is safe for concurrent use.
//
// The time of the last request has a cookie of its own. Many requests of a page run at once, and answers arrive in any
// order: one that only notes the time must not bring back tokens that another has replaced, or a session that has
// ended.
type Cookies struct {
	Keys *secret.Keyring
	Now  func() time.Time
}

// Read returns the session of a request; false if there is none, or it has ended, or was sealed under a key that is
// gone.
func (c Cookies) Read(r *http.Request) (s Session, ok bool) {
	sealed, ok := join(r)
	if !ok {
		return s, false
	}
	text, err := c.Keys.Open(sealed, purpose)
	if err != nil || json.Unmarshal(text, &s) != nil {
		return Session{}, false
	}
	s.Seen = max(s.Seen, c.seen(r, s))
	if s.ended(c.Now()) {
		return Session{}, false
	}
	return s, true
}

// Write stores a session in the browser. It returns false if the session is too large for cookies.
func (c Cookies) Write(w http.ResponseWriter, r *http.Request, s Session) bool {
	s.Seen = c.Now().Unix()
	text, err := json.Marshal(s)
	if err != nil {
		return false
	}
	parts := split(c.Keys.Seal(text, purpose))
	if len(parts) > maxParts {
		return false
	}
	for i, part := range parts {
		set(w, r, http.Cookie{Name: partName(r, i), Value: part, SameSite: http.SameSiteStrictMode})
	}
	clearFrom(w, r, len(parts))
	return true
}

// Touch notes that the session is used, so that it does not end meanwhile.
func (c Cookies) Touch(w http.ResponseWriter, r *http.Request, s Session) {
	now := c.Now()
	if now.Sub(time.Unix(s.Seen, 0)) < touchAfter {
		return
	}
	sealed := c.Keys.Seal([]byte(strconv.FormatInt(now.Unix(), 10)), seenPurpose(s))
	set(w, r, http.Cookie{Name: seenName(r), Value: sealed, SameSite: http.SameSiteStrictMode})
}

// seen returns the time that Touch wrote for the session; 0 if there is none.
func (c Cookies) seen(r *http.Request, s Session) int64 {
	cookie, err := r.Cookie(seenName(r))
	if err != nil {
		return 0
	}
	text, err := c.Keys.Open(cookie.Value, seenPurpose(s))
	if err != nil {
		return 0
	}
	at, _ := strconv.ParseInt(string(text), 10, 64)
	return at
}

func seenName(r *http.Request) string { return baseName(r) + "_seen" }

func seenPurpose(s Session) []byte { return []byte("console session seen " + s.ID) }

// Clear removes the session from the browser.
func (c Cookies) Clear(w http.ResponseWriter, r *http.Request) {
	clearFrom(w, r, 0)
	remove(w, r, seenName(r))
}
