package cas

import (
	"context"
	"net/url"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Version is the version of a validation.
type Version int

// The versions: /validate, /serviceValidate, /p3/serviceValidate. Only the last tells attributes.
const (
	V1 Version = 1
	V2 Version = 2
	V3 Version = 3
)

// The codes of a failed validation (§2.5.3).
const (
	invalidRequest = "INVALID_REQUEST"
	invalidTicket  = "INVALID_TICKET"
	invalidService = "INVALID_SERVICE"
	noProxy        = "UNAUTHORIZED_SERVICE_PROXY"
	internalError  = "INTERNAL_ERROR"
)

var descriptions = map[string]string{
	invalidRequest: "the parameters service and ticket are required, once each",
	invalidTicket:  "the ticket is not known, has expired, was used, or does not come from a new sign-in",
	invalidService: "the ticket is not for this service",
	noProxy:        "no service may get proxy tickets here",
	internalError:  "the ticket cannot be validated now",
}

// Answer is the answer to a validation. Its status is always 200.
type Answer struct {
	ContentType string
	Body        []byte
	Err         error // why the code is INTERNAL_ERROR, for the log; else nil
}

// result is a ticket as validated, or the code of a failure.
type result struct {
	ticket *Ticket
	code   string
}

// Validate uses a ticket up and answers who signed in (§2.4, §2.5, §2.8). The ticket is used up even if the service is
// not its own.
func (s *Server) Validate(ctx context.Context, version Version, v url.Values) Answer {
	res, err := s.validate(ctx, version, v)
	if err != nil {
		res = result{code: internalError}
	}
	a := Answer{Err: err}
	switch {
	case version == V1:
		a.ContentType, a.Body = "text/plain; charset=utf-8", plain(res)
	case strings.EqualFold(v.Get("format"), "JSON"):
		a.ContentType, a.Body = "application/json; charset=utf-8", asJSON(version, res)
	default:
		a.ContentType, a.Body = "application/xml; charset=utf-8", asXML(version, res)
	}
	return a
}

func (s *Server) validate(ctx context.Context, version Version, v url.Values) (result, error) {
	service, name := v["service"], v["ticket"]
	if len(service) != 1 || len(name) != 1 || service[0] == "" || name[0] == "" {
		return result{code: invalidRequest}, nil
	}
	if version != V1 && v.Has("pgtUrl") {
		return result{code: noProxy}, nil
	}
	renew := isSet(v, "renew")
	res, err := docstore.Write(ctx, s.store, func(tx *docstore.Tx) (result, error) {
		return use(ctx, tx, name[0], withoutSession(service[0]), renew)
	})
	if kind := apperr.KindOf(err); err != nil && (kind == apperr.NotFound || kind == apperr.VersionMismatch) {
		return result{code: invalidTicket}, nil // unknown, or another validation was first
	}
	return res, err
}

// use marks a ticket as validated. A ticket that fails is removed.
func use(ctx context.Context, tx *docstore.Tx, name, service string, renew bool) (result, error) {
	t, err := tickets.Load(ctx, tx, idOf(name))
	if err != nil {
		return result{}, err
	}
	switch {
	case t.Name != "":
		return result{code: invalidTicket}, nil // its session stays known, for the logout
	case !same(t.Service, service):
		_, err = tickets.Delete(ctx, tx, t)
		return result{code: invalidService}, err
	case !tx.Now.Before(t.TimeExpires), renew && !t.Attributes.FromNewLogin:
		_, err = tickets.Delete(ctx, tx, t)
		return result{code: invalidTicket}, err
	}
	valid := *t
	t.Name, t.Attributes, t.TimeExpires = name, Attributes{}, t.SessionEnds
	_, err = tickets.Replace(ctx, tx, t)
	return result{ticket: &valid}, err
}
