// Package notice tells applications of SAML and CAS that a session has ended, from server to server; see package post.
package notice

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/post"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// notice is the end of a session that one application has to hear of: by SAML or by CAS.
type notice struct {
	work.Item
	Issuer string       `json:"issuer"`
	SAML   *saml.Notice `json:"saml,omitempty"`
	CAS    *cas.Notice  `json:"cas,omitempty"`
}

func (n *notice) appID() string {
	if n.SAML != nil {
		return n.SAML.AppID
	}
	return n.CAS.AppID
}

var notices = work.Define(docstore.Schema[notice]{Name: "notices", Noun: post.Noun})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{notices.Def()} }

// Deps are what a sender needs. All are required.
type Deps struct {
	Store   *docstore.Store
	SAML    *saml.Provider
	CAS     *cas.Server
	HTTP    *http.Client // for requests that leave the platform
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Sender sends notices, for one replica.
type Sender struct {
	*work.Queue[notice, *notice]
	Deps
}

// New makes a sender.
func New(d Deps) *Sender {
	s := &Sender{Deps: d}
	s.Queue = work.NewQueue[notice](post.Config[notice]{
		Store: d.Store, HTTP: d.HTTP, Log: d.Log, Metrics: d.Metrics, Name: "send logout requests", Notices: notices,
		AppID: (*notice).appID, Message: s.message,
	}.Work())
	return s
}

// Tell stores the notices of a session, in the transaction that ends it. Its tickets and participants are gone then.
func (s *Sender) Tell(ctx context.Context, tx *docstore.Tx, issuer, sessionID string) error {
	bySAML, err := s.SAML.Take(ctx, tx, sessionID)
	if err != nil {
		return err
	}
	byCAS, err := s.CAS.Take(ctx, tx, sessionID)
	if err != nil {
		return err
	}
	for i := range byCAS {
		if err := insert(ctx, tx, issuer, notice{CAS: &byCAS[i]}); err != nil {
			return err
		}
	}
	return s.TellSAML(ctx, tx, issuer, bySAML)
}

// TellSAML stores notices of applications of SAML.
func (s *Sender) TellSAML(ctx context.Context, tx *docstore.Tx, issuer string, all []saml.Notice) error {
	for i := range all {
		if err := insert(ctx, tx, issuer, notice{SAML: &all[i]}); err != nil {
			return err
		}
	}
	return nil
}

func insert(ctx context.Context, tx *docstore.Tx, issuer string, n notice) error {
	n.Item, n.Issuer = work.New(tx.Now), issuer
	_, err := notices.Insert(ctx, tx, &n)
	return err
}

func (s *Sender) message(ctx context.Context, n *notice) (m post.Message, err error) {
	if n.SAML != nil {
		m, err = s.SAML.BackRequest(ctx, n.Issuer, *n.SAML)
	} else {
		var a protocol.Answer
		a, err = s.CAS.LogoutPost(ctx, *n.CAS)
		m = post.Message{To: a.URL, Form: a.Post}
	}
	if errors.Is(err, protocol.ErrUnknown) {
		err = post.ErrNobody
	}
	return m, err
}
