package rest

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// Sender is the sender of a request to an open operation, for which the server checks no credential. Embed it in the
// input.
type Sender struct {
	Authorization []string   `json:"-"` // every Authorization header
	Address       netip.Addr `json:"-"` // the client's: see Config.Forwarded
}

// Resolve is called by huma.
func (s *Sender) Resolve(hc huma.Context) []error {
	r := humagin.Unwrap(hc).Request
	call := r.Context().Value(callKey{}).(*call)
	s.Authorization, s.Address = r.Header.Values("Authorization"), call.forwarded.Client(r)
	return nil
}

// OAuthFault is the body of an OAuth error response (RFC 6749 §5.2).
type OAuthFault struct {
	Error       string `json:"error,omitempty" required:"true" doc:"RFC 6749 §5.2" example:"invalid_client"`
	Description string `json:"error_description,omitempty" doc:"What is wrong, for the client's developer"`
}

// oauthCodes are the codes for errors that do not name one themselves.
var oauthCodes = map[apperr.Kind]string{
	apperr.InvalidParameters:    "invalid_request",
	apperr.UnsupportedMediaType: "invalid_request",
	apperr.TooLarge:             "invalid_request",
	apperr.Unauthenticated:      "invalid_client",
	apperr.Forbidden:            "access_denied",
	apperr.RateLimited:          "temporarily_unavailable",
	apperr.Unavailable:          "temporarily_unavailable",
}

// oauthFault makes the body for err. It contains nothing of an error that is not an *apperr.Error.
func oauthFault(err error) OAuthFault {
	doc := problem.Of(err, "")
	code := apperr.OAuthCode(err)
	if code == "" {
		code = oauthCodes[apperr.Kind(doc.Code)]
	}
	switch code {
	case "":
		code = "server_error"
	case NoToken:
		code = ""
	}
	return OAuthFault{code, describable(doc.Detail)}
}

// describable replaces the characters that error_description must not have.
func describable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '…':
			return '-'
		case c == '"' || c == '\\':
			return '\''
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, text)
}

// The errors for bearer tokens (RFC 6750 §3.1).
const (
	InvalidToken = "invalid_token"
	// NoToken is for a request without a token: the answer has a challenge and no error code.
	NoToken = "no_token"
)

// oauthHeaders sets the headers for err. If the client has sent an Authorization header, a challenge tells it what is
// expected there: Basic, or a valid token if a token would have been accepted.
func oauthHeaders(h http.Header, err error, authorization string) {
	problem.Headers(h, err)
	h.Set("Content-Type", jsonType)
	h.Set("Pragma", "no-cache")
	if apperr.KindOf(err) != apperr.Unauthenticated {
		return
	}
	h.Del("WWW-Authenticate")
	switch {
	case apperr.OAuthCode(err) == NoToken:
		h.Set("WWW-Authenticate", "Bearer")
	case apperr.OAuthCode(err) == InvalidToken:
		h.Set("WWW-Authenticate", `Bearer error="`+InvalidToken+`"`)
	case authorization != "":
		h.Set("WWW-Authenticate", `Basic realm="idplatform"`)
	}
}

func writeOAuth(w http.ResponseWriter, err error, authorization string) {
	oauthHeaders(w.Header(), err, authorization)
	w.WriteHeader(problem.Status(apperr.KindOf(err)))
	_ = json.NewEncoder(w).Encode(oauthFault(err)) // the client may have disconnected
}

// oauthRefusal is an OAuth error in the form that huma expects of errors.
type oauthRefusal struct {
	OAuthFault
	err error
}

func (r *oauthRefusal) Error() string             { return r.err.Error() }
func (r *oauthRefusal) GetStatus() int            { return problem.Status(apperr.KindOf(r.err)) }
func (r *oauthRefusal) ContentType(string) string { return jsonType }
