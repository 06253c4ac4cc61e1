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

// Sender is who sends the request of an open operation, which admits nobody by itself. Embed it in the input.
type Sender struct {
	Authorization []string   `json:"-"` // every header of that name
	Address       netip.Addr `json:"-"` // the client's, as the gateway saw it; else whoever is connected
}

// Resolve is called by huma.
func (s *Sender) Resolve(hc huma.Context) []error {
	r := humagin.Unwrap(hc).Request
	s.Authorization = r.Header.Values("Authorization")
	var err error
	if s.Address, err = netip.ParseAddr(r.Header.Get("X-Forwarded-For")); err != nil {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			s.Address = peer.Addr()
		}
	}
	return nil
}

// OAuthFault is the body of an OAuth error answer (RFC 6749 §5.2).
type OAuthFault struct {
	Error       string `json:"error" doc:"RFC 6749 §5.2" example:"invalid_client"`
	Description string `json:"error_description,omitempty" doc:"What is wrong, for the client's developer"`
}

// oauthCodes are the codes of errors that do not name one themselves.
var oauthCodes = map[apperr.Kind]string{
	apperr.InvalidParameters:    "invalid_request",
	apperr.UnsupportedMediaType: "invalid_request",
	apperr.TooLarge:             "invalid_request",
	apperr.Unauthenticated:      "invalid_client",
	apperr.Forbidden:            "access_denied",
	apperr.RateLimited:          "temporarily_unavailable",
	apperr.Unavailable:          "temporarily_unavailable",
}

// oauthFault makes the body for err. Nothing of an error that is not an *apperr.Error is told.
func oauthFault(err error) OAuthFault {
	doc := problem.Of(err, "")
	code := apperr.OAuthCode(err)
	if code == "" {
		code = oauthCodes[apperr.Kind(doc.Code)]
	}
	if code == "" {
		code = "server_error"
	}
	return OAuthFault{code, describable(doc.Detail)}
}

// describable keeps to the characters that error_description may have.
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

// InvalidToken is the code for a bearer token that is not good (RFC 6750 §3.1).
const InvalidToken = "invalid_token"

// oauthHeaders sets what goes with err besides the body. A client that has sent an Authorization header is told what is
// wanted there in a challenge: Basic, or a good token where its token would have done.
func oauthHeaders(h http.Header, err error, authorization string) {
	problem.Headers(h, err)
	h.Set("Content-Type", jsonType)
	h.Set("Pragma", "no-cache")
	if apperr.KindOf(err) != apperr.Unauthenticated {
		return
	}
	h.Del("WWW-Authenticate")
	switch {
	case apperr.OAuthCode(err) == InvalidToken:
		h.Set("WWW-Authenticate", `Bearer error="`+InvalidToken+`"`)
	case authorization != "":
		h.Set("WWW-Authenticate", `Basic realm="idplatform"`)
	}
}

func writeOAuth(w http.ResponseWriter, err error, authorization string) {
	oauthHeaders(w.Header(), err, authorization)
	w.WriteHeader(problem.Status(apperr.KindOf(err)))
	_ = json.NewEncoder(w).Encode(oauthFault(err)) // a client that is gone hears nothing
}

// oauthRefusal is an OAuth error as huma wants its errors.
type oauthRefusal struct {
	OAuthFault
	err error
}

func (r *oauthRefusal) Error() string             { return r.err.Error() }
func (r *oauthRefusal) GetStatus() int            { return problem.Status(apperr.KindOf(r.err)) }
func (r *oauthRefusal) ContentType(string) string { return jsonType }
