package embedded

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// The connection of a subscription's user ends soon after its password does: it is asked for again.
func TestSessionsOfSubscribersEnd(t *testing.T) {
	t.Parallel()
	s := start(t, Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", User: "events", Password: "reader",
		SubscriberSession: 200 * time.Millisecond})
	var rotated atomic.Bool
	s.AdmitSubscribers(func(string, string) (publish, subscribe []string, ok bool) {
		return nil, []string{"idp.subscriptions.acme.7"}, !rotated.Load()
	})
	again, closed := make(chan struct{}, 100), make(chan struct{})
	user, err := nats.Connect(s.ClientURL(), nats.UserInfo("acme.7", "secret"), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	t.Cleanup(user.Close)
	arrives := func(from <-chan struct{}) {
		select {
		case <-from:
		case <-time.After(time.Minute):
			t.Fatal("nothing came")
		}
	}
	for range 3 { // a client that is admitted goes on
		arrives(again)
	}
	rotated.Store(true)
	arrives(closed)
}
