// Package notice tells applications of SAML and CAS that a session has ended, from server to server; see package post.
package notice

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/post"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// notice is the end of a session that one application has to hear of: by SAML or by CAS.
type notice struct {
	post.Stored
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

var notices = post.Define[notice]("notices")

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{notices.Def()} }

// Deps are what a sender needs. All are required.
type Deps struct {
	Store *docstore.Store
	SAML  *saml.Provider
	CAS   *cas.Server
	HTTP  *http.Client // for requests that leave the platform
	Log   *slog.Logger
}

// Sender sends notices, for one replica.
type Sender struct {
	*post.Sender[notice, *notice]
	Deps
}

// New makes a sender.
func New(d Deps) *Sender {
	s := &Sender{Deps: d}
	s.Sender = post.NewSender[notice](post.Config[notice]{
		Store: d.Store, HTTP: d.HTTP, Log: d.Log, Name: "send logout requests", Notices: notices,
		AppID: (*notice).appID, Form: s.form,
	})
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
	var all []notice
	for i := range bySAML {
		all = append(all, notice{SAML: &bySAML[i]})
	}
	for i := range byCAS {
		all = append(all, notice{CAS: &byCAS[i]})
	}
	for i := range all {
		n := &all[i]
		n.Stored, n.Issuer = post.New(tx.Now), issuer
		if _, err := notices.Insert(ctx, tx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sender) form(ctx context.Context, n *notice) (to string, form url.Values, err error) {
	var message protocol.Answer
	if n.SAML != nil {
		message, err = s.SAML.LogoutRequest(ctx, n.Issuer, *n.SAML, "", true)
	} else {
		message, err = s.CAS.LogoutPost(ctx, *n.CAS)
	}
	if errors.Is(err, protocol.ErrUnknown) {
		err = post.ErrNobody
	}
	return message.URL, message.Post, err
}
