// Package cas is the CAS protocol 3.0.3 for the applications of a tenant, without HTTP. The context of each call has
// the tenant (package request).
//
// An operation is mounted so, below <issuer>/cas:
//   - GET /login: Login with the query makes the request of the flow. ErrNoService means that the person signs in for
//     no application: show the own page. A *protocol.PageError and protocol.ErrUnknown are pages with status 400.
//     Then the flow calls Grant, or Refuse.
//   - GET /validate, /serviceValidate, /p3/serviceValidate: write what Validate returns, with status 200. Its Err, if
//     any, is for the log.
//   - GET /logout: Return tells where the browser goes once the session has ended; empty: a page of our own.
//   - When a session ends, Take gives, in the same transaction, what applications must be told; LogoutPost makes the
//     POST for each, which goes from server to server. CAS wants its failures to be ignored (§2.3.3.1).
//   - Due and Expire are the work of a service.DueTask, which removes tickets.
package cas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Clients finds the applications of the tenant. The error is apperr.NotFound, or Unavailable without an answer.
type Clients interface {
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// Server answers for all tenants. It implements protocol.Protocol.
type Server struct {
	store   *docstore.Store
	clients Clients
	groups  func(ctx context.Context, userID string) ([]string, error)
}

// New makes a server. The store has the Collections. groups returns the groups of a user, or apperr.Unavailable if
// nobody answers.
func New(
	store *docstore.Store, clients Clients, groups func(ctx context.Context, userID string) ([]string, error),
) *Server {
	return &Server{store, clients, groups}
}

// ErrNoService is the error for a login without a service: the person only signs in.
var ErrNoService = errors.New("no service is named")

// message is the request of an application, as the flow keeps it.
type message struct {
	Service string `json:"service"`
	Post    bool   `json:"post,omitempty"` // the ticket goes in a form
}

// Login reads the parameters of /login (§2.1.1). Its errors are ErrNoService, *protocol.PageError, protocol.ErrUnknown,
// and apperr.Unavailable.
func (s *Server) Login(ctx context.Context, v url.Values) (protocol.Request, error) {
	switch len(v["service"]) {
	case 0:
		return protocol.Request{}, ErrNoService
	case 1:
	default:
		return protocol.Request{}, &protocol.PageError{Message: "The address names more than one service."}
	}
	m := message{Service: v.Get("service"), Post: strings.EqualFold(v.Get("method"), "POST")}
	if m.Service == "" {
		return protocol.Request{}, ErrNoService
	}
	c, err := s.client(ctx, questions.ClientName{Service: withoutSession(m.Service)}, m.Service)
	if err != nil {
		return protocol.Request{}, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return protocol.Request{}, fmt.Errorf("the request of an application: %w", err)
	}
	fresh := isSet(v, "renew")
	return protocol.Request{
		Protocol: protocol.CAS, AppID: c.AppID, Message: body, Fresh: fresh, Passive: !fresh && isSet(v, "gateway"),
	}, nil
}

// isSet reads a flag of CAS: it is set by any value. Many clients write renew=false for no, which is taken as meant.
func isSet(v url.Values, name string) bool {
	return v.Has(name) && !strings.EqualFold(v.Get(name), "false")
}

// client returns an application that may use CAS with a service.
func (s *Server) client(ctx context.Context, name questions.ClientName, service string) (questions.Client, error) {
	u, ok := parse(service)
	if !ok {
		return questions.Client{}, protocol.ErrUnknown
	}
	c, err := s.clients.Of(ctx, name)
	if apperr.IsNotFound(err) || err == nil && (!c.Enabled || c.CAS == nil || !covers(c.RedirectURLs, u)) {
		err = protocol.ErrUnknown
	}
	return c, err
}

// Grant makes a ticket, which is good for 60 s, and leads the browser to the service with it (§2.2.4).
func (s *Server) Grant(ctx context.Context, _ string, r protocol.Request, p protocol.Person) (protocol.Answer, error) {
	m, u, err := s.read(ctx, r)
	if err != nil {
		return protocol.Answer{}, err
	}
	name, err := s.issue(ctx, r, m.Service, p)
	if err != nil {
		return protocol.Answer{}, err
	}
	if m.Post {
		return protocol.Answer{URL: m.Service, Post: url.Values{"ticket": {name}}}, nil
	}
	return protocol.Answer{URL: withTicket(u, name)}, nil
}

// Refuse leads the browser to the service without a ticket, which is all that CAS knows (§2.1.1, gateway).
func (s *Server) Refuse(
	ctx context.Context, _ string, r protocol.Request, _ protocol.Refusal,
) (protocol.Answer, error) {
	m, _, err := s.read(ctx, r)
	return protocol.Answer{URL: m.Service}, err
}

// read returns the message of a request, once its service is known to be still the application's.
func (s *Server) read(ctx context.Context, r protocol.Request) (message, *url.URL, error) {
	var m message
	if err := json.Unmarshal(r.Message, &m); err != nil {
		return message{}, nil, fmt.Errorf("the request of an application: %w", err)
	}
	if _, err := s.client(ctx, questions.ClientName{AppID: r.AppID}, m.Service); err != nil {
		return message{}, nil, err
	}
	u, _ := parse(m.Service)
	return m, u, nil
}
