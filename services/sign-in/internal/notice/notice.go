// Package notice tells applications of SAML and CAS that a session has ended, from server to server. A notice is stored
// in the transaction that ends the session, so that none is lost. It is sent up to five times within an hour.
package notice

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// pauses are how long to wait after each try without an answer. After the last one the notice is given up.
var pauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 39 * time.Minute}

const (
	patience = 5 * time.Second // with an application that does not answer
	atOnce   = 32              // notices on their way from one replica
	maxBody  = 4 << 10         // bytes of an answer that are read, so that the connection can be used again
)

// notice is the end of a session that one application has to hear of: by SAML or by CAS.
type notice struct {
	docstore.Meta
	Issuer string       `json:"issuer"`
	SAML   *saml.Notice `json:"saml,omitempty"`
	CAS    *cas.Notice  `json:"cas,omitempty"`
	Tries  int          `json:"tries"`
	Next   clock.Time   `json:"next"`
}

func (n *notice) appID() string {
	if n.SAML != nil {
		return n.SAML.AppID
	}
	return n.CAS.AppID
}

var notices = docstore.Define(docstore.Schema[notice]{
	Name: "notices", Noun: "notice of a logout",
	Due: func(n *notice) clock.Time { return n.Next },
})

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
	Deps
	room    chan struct{}
	sending sync.WaitGroup
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
}

// New makes a sender.
func New(d Deps) *Sender {
	s := &Sender{Deps: d, room: make(chan struct{}, atOnce)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends the requests that are on their way, which are sent again later.
func (s *Sender) Close() {
	s.cancel()
	s.sending.Wait()
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
		n.Meta, n.Issuer, n.Next = docstore.Meta{ID: secret.Token(16)}, issuer, tx.Now
		if _, err := notices.Insert(ctx, tx, n); err != nil {
			return err
		}
	}
	return nil
}

// Work sends the notices that are due.
func (s *Sender) Work() service.DueWork {
	return service.DueWork{Name: "send logout requests", Every: time.Second, Due: notices.Due, Page: atOnce,
		Do: s.begin}
}

// begin takes a notice, so that no other replica sends it, and sends it beside the others.
func (s *Sender) begin(ctx context.Context, id string) error {
	n, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*notice, error) {
		n, err := notices.Load(ctx, tx, id)
		if err != nil || n.Next.After(tx.Now) {
			return nil, err
		}
		if n.Tries > len(pauses) {
			_, err := notices.Delete(ctx, tx, n)
			return nil, err
		}
		n.Next = tx.Now.Add(pauses[min(n.Tries, len(pauses)-1)])
		n.Tries++
		_, err = notices.Touch(ctx, tx, n)
		return n, err
	})
	if err != nil || n == nil {
		return err
	}
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return nil // it is due again later
	}
	s.sending.Go(func() {
		defer func() { <-s.room }()
		s.send(request.System(s.ctx, n.TenantID), n)
	})
	return nil
}

// send sends a notice, and deletes it once it is answered or given up.
func (s *Sender) send(ctx context.Context, n *notice) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	again, err := s.try(ctx, n)
	if err != nil {
		s.Log.WarnContext(ctx, "an application does not take a logout request", "app_id", n.appID(), "try", n.Tries,
			"error", outbound.Cause(err))
	}
	if again && n.Tries <= len(pauses) {
		return
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		n, err := notices.Load(ctx, tx, n.ID)
		if err == nil {
			_, err = notices.Delete(ctx, tx, n)
		}
		return err
	})
	if err != nil {
		s.Log.WarnContext(ctx, "a notice of a logout may be sent once more", "app_id", n.appID(), "error", err)
	}
}

// try sends a notice once. again says that a later try may help.
func (s *Sender) try(ctx context.Context, n *notice) (again bool, err error) {
	var message protocol.Answer
	if n.SAML != nil {
		message, err = s.SAML.LogoutRequest(ctx, n.Issuer, *n.SAML, "", true)
	} else {
		message, err = s.CAS.LogoutPost(ctx, *n.CAS)
	}
	if errors.Is(err, protocol.ErrUnknown) { // nobody to tell
		return false, nil
	}
	if err != nil {
		return true, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, message.URL, strings.NewReader(message.Post.Encode()))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := s.HTTP.Do(r)
	if err != nil {
		return !errors.Is(err, outbound.ErrRefused), err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
		return true, errors.New("status " + answer.Status)
	}
	return false, nil
}
