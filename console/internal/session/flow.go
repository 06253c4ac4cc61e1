package session

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	// flowLife is how long a person may take to sign in at the issuer.
	flowLife = 10 * time.Minute
	// maxFlows bounds the sign-ins that one browser has begun, in tabs that were left.
	maxFlows = 4
	// stateTag is how many characters of a flow's state its cookie's name has.
	stateTag = 8
)

var flowPurpose = []byte("console sign-in flow")

// Flow is a sign-in at the issuer that has begun. Its cookie is Lax, because the browser comes back from the issuer's
// site; it binds the answer to the browser that asked for it.
type Flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // PKCE
	Return   string `json:"r"` // the path where the person goes on
	Fresh    bool   `json:"f"` // the issuer must ask again
	Until    int64  `json:"u"` // Unix seconds
}

// Begin completes a flow and stores it in the browser.
func (c Cookies) Begin(w http.ResponseWriter, r *http.Request, f Flow) (Flow, error) {
	f.State, f.Nonce, f.Until = secret.Token(24), secret.Token(24), c.Now().Add(flowLife).Unix()
	text, err := json.Marshal(f)
	if err != nil {
		return f, err
	}
	if old := flowNames(r); len(old) >= maxFlows {
		for _, name := range old {
			remove(w, r, name)
		}
	}
	set(w, r, http.Cookie{
		Name: flowName(r, f.State), Value: c.Keys.Seal(text, flowPurpose), SameSite: http.SameSiteLaxMode,
		MaxAge: int(flowLife / time.Second),
	})
	return f, nil
}

// Take returns the flow that this browser began with a state, and removes it.
func (c Cookies) Take(w http.ResponseWriter, r *http.Request, state string) (f Flow, ok bool) {
	if len(state) < stateTag {
		return f, false
	}
	cookie, err := r.Cookie(flowName(r, state))
	if err != nil {
		return f, false
	}
	remove(w, r, cookie.Name)
	text, err := c.Keys.Open(cookie.Value, flowPurpose)
	if err != nil || json.Unmarshal(text, &f) != nil || !secret.Equal(f.State, state) ||
		c.Now().Unix() >= f.Until {
		return Flow{}, false
	}
	return f, true
}

func flowPrefix(r *http.Request) string { return baseName(r) + "_flow_" }

func flowName(r *http.Request, state string) string { return flowPrefix(r) + state[:stateTag] }

func flowNames(r *http.Request) (names []string) {
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, flowPrefix(r)) {
			names = append(names, cookie.Name)
		}
	}
	return names
}
