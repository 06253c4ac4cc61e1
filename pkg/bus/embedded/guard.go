package embedded

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// guard decides what a connection may do: everything if it comes from this process, otherwise what readers may.
type guard struct {
	readers, workers credential

	// open is closed when reader is set: clients may connect before a restarting server is ready, and must not be
	// refused.
	open   chan struct{}
	reader *server.User // nil if no TCP client is admitted
	worker *server.User // nil if no worker is

	session     time.Duration   // how long users of subscriptions may stay connected
	subscribers *server.Account // the account of the users of subscriptions
	subscriber  *atomic.Pointer[Subscriber]
}

func newGuard(c Config, subscriber *atomic.Pointer[Subscriber]) *guard {
	return &guard{
		readers: credentialOf(c.User, c.Password), workers: credentialOf(c.Worker, c.WorkerPassword),
		subscriber: subscriber, open: make(chan struct{}),
	}
}

// credential is a user and a password, hashed so that their comparison always takes the same time.
type credential struct{ user, password [sha256.Size]byte }

func credentialOf(user, password string) credential {
	return credential{sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))}
}

func (c credential) equals(given credential) bool {
	return subtle.ConstantTimeCompare(c.user[:], given.user[:])&
		subtle.ConstantTimeCompare(c.password[:], given.password[:]) == 1
}

// Check implements server.Authentication. Only a pipe, which nobody outside the process can open, counts as this
// process.
func (g *guard) Check(c server.ClientAuthentication) bool {
	addr := c.RemoteAddress()
	if addr == nil {
		return false
	}
	if addr.Network() == "pipe" {
		c.RegisterUser(&server.User{Username: "platform"})
		return true
	}
	given := c.GetOpts()
	as := credentialOf(given.Username, given.Password)
	<-g.open
	switch {
	case g.reader != nil && g.readers.equals(as):
		c.RegisterUser(g.reader)
	case g.worker != nil && g.workers.equals(as):
		c.RegisterUser(g.worker)
	default:
		return g.admitSubscriber(c, given.Username, given.Password)
	}
	return true
}

// admitSubscriber admits the user of a subscription, with the permissions that Subscriber returns.
func (g *guard) admitSubscriber(c server.ClientAuthentication, user, password string) bool {
	decide := g.subscriber.Load()
	if decide == nil || g.subscribers == nil {
		return false
	}
	publish, subscribe, ok := (*decide)(user, password)
	if !ok {
		return false
	}
	// The client then connects again by itself if it is still admitted, as with an auth callout.
	deadline := time.Now().Add(g.session)
	permissions := &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
	}
	c.RegisterUser(&server.User{
		Username: user, Account: g.subscribers, ConnectionDeadline: deadline, Permissions: permissions,
	})
	return true
}

// validUser accepts names that are one token of a subject, without wildcards.
func validUser(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}
