// Package callout answers the auth callout of a NATS server: it admits the users of subscriptions.
package callout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

const (
	subject = "$SYS.REQ.USER.AUTH"
	queue   = "events" // replicas share the requests
	timeout = 2 * time.Second
)

// Session is how long an admitted user may stay connected. The client then connects again by itself, if its password
// still holds: so rotation, deletion and a pause of its subscription end its connections on every server.
const Session = 30 * time.Second

// Check reports whether a text is the password of the NATS user of a subscription of the context's tenant.
type Check func(ctx context.Context, id, password string) (bool, error)

type responder struct {
	key     nkeys.KeyPair
	account string
	session time.Duration
	check   Check
}

// Answer answers all requests until the connection ends. seed is the seed of the server's auth_callout issuer, account
// the NATS account of admitted users, which may stay for session.
func Answer(conn *nats.Conn, seed secret.String, account string, session time.Duration, check Check) error {
	key, err := nkeys.FromSeed([]byte(seed.Reveal()))
	if err != nil {
		return errors.New("callout.seed is not the seed of an account key")
	}
	r := &responder{key, account, session, check}
	_, err = conn.QueueSubscribe(subject, queue, r.respond)
	return err
}

// respond refuses everybody but the users of subscriptions. The server itself decides about the users in its
// configuration.
func (r *responder) respond(m *nats.Msg) {
	asked, err := jwt.DecodeAuthorizationRequestClaims(string(m.Data))
	if err != nil {
		return // not from a server
	}
	answer := jwt.NewAuthorizationResponseClaims(asked.UserNkey)
	answer.Audience = asked.Server.ID
	if answer.Jwt, err = r.admit(asked); err != nil {
		answer.Error = "not a subscription's user and password"
	}
	if text, err := answer.Encode(r.key); err == nil {
		_ = m.Respond([]byte(text)) // the client tries again
	}
}

// admit returns the rights of a subscription's user.
func (r *responder) admit(asked *jwt.AuthorizationRequestClaims) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	given := asked.ConnectOptions
	tenant, id, ok := strings.Cut(given.Username, ".")
	if !ok || !auth.ValidTenant(tenant) {
		return "", fmt.Errorf("%q is not the user of a subscription", given.Username)
	}
	is, err := r.check(request.System(ctx, tenant), id, given.Password)
	if err != nil {
		return "", err
	}
	if !is {
		return "", errors.New("the password is not the subscription's")
	}
	user := jwt.NewUserClaims(asked.UserNkey)
	user.Name, user.Audience = given.Username, r.account
	user.Expires = time.Now().Add(r.session).Unix()
	publish, subscribe := bus.SubscriberPermissions(tenant, id)
	user.Pub.Allow.Add(publish...)
	user.Sub.Allow.Add(subscribe...)
	return user.Encode(r.key)
}
