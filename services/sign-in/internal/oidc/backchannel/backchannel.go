// Package backchannel tells applications that a session has ended (OpenID Connect Back-Channel Logout 1.0). A notice is
// stored in the transaction that ends the session, so that none is lost, and sent until the application answers: five
// times within an hour.
package backchannel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/clientauth"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

// pauses are how long to wait after each try without an answer. After the last one the notice is given up.
var pauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 39 * time.Minute}

const (
	tokenTTL = 2 * time.Minute // §2.4 recommends it
	patience = 5 * time.Second // with an application that does not answer
	atEnd    = 2 * time.Second // for requests that are on their way at the end
	atOnce   = 32              // notices on their way from one replica
	maxBody  = 4 << 10         // bytes of an answer that are read, so that the connection can be used again
)

// Ended is the end of a session, or of its part in some applications.
type Ended struct {
	Issuer    string
	SessionID string // sid
	UserID    string
	AppIDs    []string // the applications that people signed in to in it
}

// notice is the end of a session that one application has to hear of.
type notice struct {
	docstore.Meta
	Issuer    string     `json:"issuer"`
	AppID     string     `json:"app_id"`
	SessionID string     `json:"session_id"`
	UserID    string     `json:"user_id"`
	Tries     int        `json:"tries"`
	Next      clock.Time `json:"next"`
}

var notices = docstore.Define(docstore.Schema[notice]{
	Name: "oidc_notices", Noun: "notice of a logout",
	Due: func(n *notice) clock.Time { return n.Next },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{notices.Def()} }

// Tell stores the notices of an ended session, in the transaction that ends it. It may be called again for a session in
// which people have signed in to more applications.
func Tell(ctx context.Context, tx *docstore.Tx, e Ended) error {
	for _, appID := range e.AppIDs {
		_, err := notices.Insert(ctx, tx, &notice{
			Meta: docstore.Meta{ID: secret.Token(16)}, Issuer: e.Issuer, AppID: appID, SessionID: e.SessionID,
			UserID: e.UserID, Next: tx.Now,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Deps are what a sender needs. All are required.
type Deps struct {
	Store   *docstore.Store
	Keys    *keys.Keys
	Clients clientauth.Clients
	HTTP    *http.Client // for requests that leave the platform
	Log     *slog.Logger
	// Algorithm is the signature algorithm of an application's logout tokens.
	Algorithm func(questions.Client) string
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

// Close waits a moment for the requests that are on their way, and then ends them: their notices are sent again later.
func (s *Sender) Close() {
	late := time.AfterFunc(atEnd, s.cancel)
	s.sending.Wait()
	late.Stop()
	s.cancel()
}

// Work sends the notices that are due.
func (s *Sender) Work() service.DueWork {
	return service.DueWork{Name: "send logout tokens", Every: time.Second, Due: notices.Due, Page: atOnce, Do: s.begin}
}

// begin takes a notice, so that no other replica sends it, and sends it beside the others: an application that is slow
// to answer keeps nobody waiting.
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
	answered, err := s.try(ctx, n)
	if err != nil {
		s.Log.WarnContext(ctx, "an application does not take a logout token", "app_id", n.AppID, "try", n.Tries,
			"error", outbound.Cause(err))
	}
	if !answered && n.Tries <= len(pauses) {
		return
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		n, err := notices.Load(ctx, tx, n.ID)
		if err == nil {
			_, err = notices.Delete(ctx, tx, n)
		}
		return err
	})
	if err != nil && !apperr.IsNotFound(err) {
		s.Log.WarnContext(ctx, "a notice of a logout is sent once more", "app_id", n.AppID, "error", err)
	}
}

// try sends a notice once. answered is true if the application has answered, or has nothing to hear.
func (s *Sender) try(ctx context.Context, n *notice) (answered bool, err error) {
	client, err := s.Clients.Of(ctx, questions.ClientName{AppID: n.AppID})
	if apperr.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if client.OIDC == nil || client.SignIn.BackchannelLogoutURL == "" {
		return true, nil
	}
	token, err := s.token(ctx, client, n)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, client.SignIn.BackchannelLogoutURL,
		strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	if err != nil {
		return true, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := s.HTTP.Do(r)
	if errors.Is(err, outbound.ErrRefused) {
		return true, err // no later try may go there either
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	switch status := answer.StatusCode; {
	case status < http.StatusMultipleChoices:
		return true, nil
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return false, errors.New("status " + answer.Status)
	default:
		return true, errors.New("status " + answer.Status)
	}
}

// logoutEvent is the one event that a logout token is about (§2.4).
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// token makes a logout token (§2.4).
func (s *Sender) token(ctx context.Context, client questions.Client, n *notice) (string, error) {
	now := s.Store.Now()
	return s.Keys.Sign(ctx, s.Algorithm(client), "logout+jwt", jwt.MapClaims{
		"iss": n.Issuer, "sub": n.UserID, "aud": client.ClientID, "sid": n.SessionID, "jti": secret.Token(16),
		"iat": now.Millis() / 1000, "exp": now.Add(tokenTTL).Millis() / 1000,
		"events": map[string]any{logoutEvent: map[string]any{}},
	})
}
