// Package backchannel tells applications that a session has ended (OpenID Connect Back-Channel Logout 1.0); see package
// post.
package backchannel

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/post"
)

const tokenTTL = 2 * time.Minute // §2.4 recommends it

// Ended is the end of a session, or of its part in some applications.
type Ended struct {
	Issuer    string
	SessionID string // sid
	UserID    string
	AppIDs    []string // the applications that people signed in to in it
}

// notice is the end of a session that one application has to hear of.
type notice struct {
	work.Item
	Issuer    string `json:"issuer"`
	AppID     string `json:"app_id"`
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
}

var notices = work.Define(docstore.Schema[notice]{Name: "oidc_notices", Noun: post.Noun})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{notices.Def()} }

// Tell stores the notices of an ended session, in the transaction that ends it. It may be called again for a session in
// which people have signed in to more applications.
func Tell(ctx context.Context, tx *docstore.Tx, e Ended) error {
	for _, appID := range e.AppIDs {
		_, err := notices.Insert(ctx, tx, &notice{
			Item: work.New(tx.Now), Issuer: e.Issuer, AppID: appID, SessionID: e.SessionID, UserID: e.UserID,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Clients finds applications of the context's tenant.
type Clients interface {
	// Of returns an application. The error is apperr.NotFound or Unavailable.
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// Deps are what a sender needs. All are required.
type Deps struct {
	Store   *docstore.Store
	Keys    *keys.Keys
	Clients Clients
	HTTP    *http.Client // for requests that leave the platform
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Algorithm is the signature algorithm of an application's logout tokens.
	Algorithm func(questions.Client) string
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
		Store: d.Store, HTTP: d.HTTP, Log: d.Log, Metrics: d.Metrics, Name: "send logout tokens", Notices: notices,
		AppID: func(n *notice) string { return n.AppID }, Message: s.message,
	}.Work())
	return s
}

func (s *Sender) message(ctx context.Context, n *notice) (post.Message, error) {
	client, err := s.Clients.Of(ctx, questions.ClientName{AppID: n.AppID})
	if apperr.IsNotFound(err) || err == nil && (client.OIDC == nil || client.SignIn.BackchannelLogoutURL == "") {
		return post.Message{}, post.ErrNobody
	}
	if err != nil {
		return post.Message{}, err
	}
	token, err := s.token(ctx, client, n)
	return post.Message{To: client.SignIn.BackchannelLogoutURL, Form: url.Values{"logout_token": {token}}}, err
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
