package oidc

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Authorization is an authorization request that has been checked: the Message of a protocol.Request. It is stored with
// flows, so its JSON form is kept compatible.
type Authorization struct {
	ClientID     string   `json:"client_id"`
	RedirectURI  string   `json:"redirect_uri"`
	ResponseMode string   `json:"response_mode,omitempty"`
	State        string   `json:"state,omitempty"`
	Nonce        string   `json:"nonce,omitempty"`
	Scope        []string `json:"scope,omitempty"`
	Resources    []string `json:"resources,omitempty"`
	Challenge    string   `json:"code_challenge,omitempty"`
	Claims       *wanted  `json:"claims,omitempty"`
	// Subject is the user that it must be about (id_token_hint, or the value of the claim sub); "" for any.
	Subject string `json:"subject,omitempty"`
	// Device is the id of the device code, for a request that comes from no browser; "" for others.
	Device string `json:"device,omitempty"`
}

// The scopes that are not the platform's (OpenID Connect Core §5.4, §11).
const (
	openID        = "openid"
	offlineAccess = "offline_access"
)

// Scopes are the scopes that applications can ask for, besides those of the platform's API.
var Scopes = []string{openID, "profile", "email", "phone", "groups", offlineAccess}

// The classes of sign-in that applications can ask for. Their meaning is the flow's. Without passkeys, the last
// is not reached: who insists on it gets an error.
var classes = []string{"urn:idplatform:aal:1", "urn:idplatform:aal:2", "phr"}

const (
	maxParameter  = 8 << 10 // bytes of one parameter
	maxParameters = 32 << 10
	maxList       = 50 // words in a list
	maxResources  = 10
)

// fault is what is wrong with an authorization request, as its application is told.
type fault struct{ code, text string }

func invalid(text string) *fault { return &fault{"invalid_request", text} }

// repeated returns a parameter that is given more than once; RFC 6749 §3.1 forbids it, RFC 8707 §2 allows resource.
func repeated(v url.Values) string {
	for name, values := range v {
		if len(values) > 1 && name != "resource" {
			return name
		}
	}
	return ""
}

// tooLong reports whether the parameters are longer than any good request's.
func tooLong(v url.Values) bool {
	total := 0
	for name, values := range v {
		for _, value := range values {
			if len(value) > maxParameter {
				return true
			}
			total += len(name) + len(value)
		}
	}
	return total > maxParameters
}

// words splits a list of words separated by spaces.
func words(text string) []string { return strings.Fields(text) }

// parseChallenge checks the parameters of PKCE (RFC 7636 §4.3). Public clients must use it, and S256 is the only
// method: with plain, whoever sees the request could use the code.
func (a *Authorization) parseChallenge(v url.Values, public bool) *fault {
	a.Challenge = v.Get("code_challenge")
	method := v.Get("code_challenge_method")
	switch {
	case a.Challenge == "" && method != "":
		return invalid("code_challenge is missing")
	case a.Challenge == "" && public:
		return invalid("applications without a secret must use PKCE (code_challenge)")
	case a.Challenge == "":
		return nil
	case method != "S256":
		return invalid("code_challenge_method must be S256")
	}
	if sum, err := base64.RawURLEncoding.Strict().DecodeString(a.Challenge); err != nil || len(sum) != 32 {
		return invalid("code_challenge must be a SHA-256 in base64url")
	}
	return nil
}

// parsePrompt reads prompt (OpenID Connect Core §3.1.2.1). Unknown values are ignored.
func parsePrompt(v url.Values, r *protocol.Request) *fault {
	prompts := words(v.Get("prompt"))
	r.Passive = slices.Contains(prompts, "none")
	r.Fresh = slices.Contains(prompts, "login")
	r.AskConsent = slices.Contains(prompts, "consent")
	r.SelectAccount = slices.Contains(prompts, "select_account")
	if r.Passive && len(prompts) > 1 {
		return invalid("prompt=none must stand alone")
	}
	return nil
}

// parseMaxAge reads max_age, in seconds.
func parseMaxAge(v url.Values, r *protocol.Request) *fault {
	text := v.Get("max_age")
	if text == "" {
		return nil
	}
	age, err := strconv.ParseInt(text, 10, 64)
	if err != nil || age < 0 {
		return invalid("max_age must be a number of seconds")
	}
	r.MaxAge = &age
	return nil
}

// parseClasses reads acr_values, and the claim acr of the claims parameter, which can be essential.
func (a *Authorization) parseClasses(v url.Values, r *protocol.Request) *fault {
	known := func(list []string) (found []string) {
		for _, class := range list[:min(len(list), maxList)] {
			if slices.Contains(classes, class) && !slices.Contains(found, class) {
				found = append(found, class)
			}
		}
		return found
	}
	r.ACR = known(words(v.Get("acr_values")))
	if a.Claims == nil {
		return nil
	}
	asked, ok := a.Claims.IDToken["acr"]
	if !ok || asked == nil {
		return nil
	}
	values := asked.texts()
	if len(values) == 0 {
		return nil
	}
	r.ACR = known(values)
	r.ACREssential = asked.Essential
	if r.ACREssential && len(r.ACR) == 0 {
		return &fault{string(protocol.UnmetACR), "no such class of sign-in can be reached"}
	}
	return nil
}

// wanted are the claims that an application asks for one by one (OpenID Connect Core §5.5).
type wanted struct {
	UserInfo map[string]*wantedClaim `json:"userinfo,omitempty"`
	IDToken  map[string]*wantedClaim `json:"id_token,omitempty"`
}

// wantedClaim says how much a claim matters; nil: as all others.
type wantedClaim struct {
	Essential bool              `json:"essential,omitempty"`
	Value     json.RawMessage   `json:"value,omitempty"`
	Values    []json.RawMessage `json:"values,omitempty"`
}

// texts are the values that are acceptable, those that are texts.
func (c *wantedClaim) texts() (list []string) {
	for _, value := range append([]json.RawMessage{c.Value}, c.Values...) {
		var text string
		if len(value) > 0 && json.Unmarshal(value, &text) == nil && text != "" {
			list = append(list, text)
		}
	}
	return list
}

func (a *Authorization) parseClaims(v url.Values) *fault {
	text := v.Get("claims")
	if text == "" {
		return nil
	}
	a.Claims = &wanted{}
	if err := json.Unmarshal([]byte(text), a.Claims); err != nil || text[0] != '{' {
		return invalid("claims must be a JSON object (OpenID Connect Core 5.5)")
	}
	for _, list := range []map[string]*wantedClaim{a.Claims.IDToken, a.Claims.UserInfo} {
		if len(list) > maxList {
			return invalid("claims asks for too many claims")
		}
		if sub := list["sub"]; sub != nil && len(sub.texts()) > 0 {
			a.Subject = sub.texts()[0]
		}
	}
	return nil
}
