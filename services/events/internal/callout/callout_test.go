package callout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events/internal/callout"
)

// startNATS runs a server with the production configuration, and returns the seed of its callout issuer.
func startNATS(t *testing.T) (url string, seed secret.String) {
	t.Helper()
	key, err := nkeys.CreateAccount()
	require.NoError(t, err)
	issuer, err := key.PublicKey()
	require.NoError(t, err)
	text, err := key.Seed()
	require.NoError(t, err)
	t.Setenv("NATS_PASSWORD", "services")
	t.Setenv("NATS_EVENTS_PASSWORD", "reader")
	t.Setenv("NATS_STORE_DIR", t.TempDir())
	t.Setenv("NATS_CALLOUT_ISSUER", issuer)
	options := &server.Options{}
	require.NoError(t, options.ProcessConfigFile("../../../../deploy/nats/nats-callout.conf"))
	options.Host, options.Port, options.HTTPPort = "127.0.0.1", server.RANDOM_PORT, 0
	options.NoLog, options.NoSigs = true, true
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(wait.Long))
	return s.ClientURL(), secret.New(string(text))
}

// The NATS user of a subscription can read its own events, and nothing else.
func TestUsersOfSubscriptions(t *testing.T) {
	url, seed := startNATS(t)
	services, err := nats.Connect(url, nats.UserInfo("services", "services"))
	require.NoError(t, err)
	t.Cleanup(services.Close)
	require.NoError(t, callout.Answer(services, seed, "SUBSCRIBERS", callout.Session,
		func(ctx context.Context, id, password string) (bool, error) {
			return request.Tenant(ctx) == "acme" && (id == "7" || id == "8") && password == "secret-"+id, nil
		}))
	require.NoError(t, services.Flush())
	js, err := jetstream.New(services)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Long)
	defer cancel()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: bus.SubscriptionStream,
		Subjects: []string{"idp.subscriptions.>"}})
	require.NoError(t, err)
	for _, id := range []string{"7", "8"} {
		_, err = js.CreateConsumer(ctx, bus.SubscriptionStream, jetstream.ConsumerConfig{
			Durable: bus.SubscriptionConsumer(id), FilterSubject: bus.SubscriptionSubject("acme", id),
			AckPolicy: jetstream.AckExplicitPolicy,
		})
		require.NoError(t, err)
		_, err = js.Publish(ctx, bus.SubscriptionSubject("acme", id), []byte("for "+id))
		require.NoError(t, err)
	}

	refused := make(chan error, 16)
	connect := func(user, password string) (*nats.Conn, error) {
		return nats.Connect(url, nats.UserInfo(user, password), nats.CustomInboxPrefix("_INBOX.7"),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	}
	for user, password := range map[string]string{
		"acme.7": "secret-8", "globex.7": "secret-7", "acme.9": "secret-9", "acme": "", "nobody": "services",
	} {
		_, err := connect(user, password)
		require.ErrorIs(t, err, nats.ErrAuthorization, user)
	}
	seven, err := connect("acme.7", "secret-7")
	require.NoError(t, err)
	t.Cleanup(seven.Close)
	own, err := jetstream.New(seven)
	require.NoError(t, err)
	consumer, err := own.Consumer(ctx, bus.SubscriptionStream, bus.SubscriptionConsumer("7"))
	require.NoError(t, err)
	m, err := consumer.Next()
	require.NoError(t, err)
	require.Equal(t, "for 7", string(m.Data()))
	require.NoError(t, m.DoubleAck(ctx))

	for _, subject := range []string{
		bus.SubscriptionSubject("acme", "8"), "idp.subscriptions.>", "idp.events.>", "_INBOX.8.>", "_INBOX.>",
	} {
		sub, err := seven.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, seven.Flush())
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
		_ = sub.Unsubscribe()
	}
	for _, subject := range []string{
		"$JS.API.CONSUMER.MSG.NEXT.IDP_SUBSCRIPTIONS." + bus.SubscriptionConsumer("8"), "idp.check.users.existing",
		"idp.events.acme.user.created", "$JS.API.CONSUMER.CREATE.IDP_SUBSCRIPTIONS.x",
		"$JS.API.STREAM.PURGE.IDP_SUBSCRIPTIONS",
	} {
		require.NoError(t, seven.PublishRequest(subject, "_INBOX.7.x", nil))
		require.NoError(t, seven.Flush())
		require.ErrorIs(t, <-refused, nats.ErrPermissionViolation, subject)
	}
	tricks(t, js, seven)
	eight, err := nats.Connect(url, nats.UserInfo("acme.8", "secret-8"), nats.CustomInboxPrefix("_INBOX.8"))
	require.NoError(t, err)
	t.Cleanup(eight.Close)
	others, err := jetstream.New(eight)
	require.NoError(t, err)
	consumer, err = others.Consumer(ctx, bus.SubscriptionStream, bus.SubscriptionConsumer("8"))
	require.NoError(t, err)
	m, err = consumer.Next()
	require.NoError(t, err)
	require.Equal(t, "for 8", string(m.Data()), "nobody has taken, acknowledged or removed it")
}

// tricks are requests that a user may send, with replies to subjects that it may not use: the server does not check
// those. None of them gives it another's event.
func tricks(t *testing.T, js jetstream.JetStream, seven *nats.Conn) {
	t.Helper()
	got := make(chan *nats.Msg, 100)
	for _, subject := range []string{"_INBOX.7.>", bus.SubscriptionSubject("acme", "7")} {
		_, err := seven.ChanSubscribe(subject, got)
		require.NoError(t, err)
	}
	next := "$JS.API.CONSUMER.MSG.NEXT." + bus.SubscriptionStream + "."
	for _, asked := range []string{next + bus.SubscriptionConsumer("7"),
		"$JS.API.CONSUMER.INFO." + bus.SubscriptionStream + "." + bus.SubscriptionConsumer("7")} {
		for _, reply := range []string{
			next + bus.SubscriptionConsumer("8"), bus.SubscriptionSubject("acme", "8"), "_INBOX.8.x",
			"$JS.API.STREAM.PURGE." + bus.SubscriptionStream, "$JS.API.STREAM.MSG.GET." + bus.SubscriptionStream,
			"$JS.API.CONSUMER.DELETE." + bus.SubscriptionStream + "." + bus.SubscriptionConsumer("8"),
			"$JS.ACK." + bus.SubscriptionStream + "." + bus.SubscriptionConsumer("8") + ".1.2.1.1.1",
			"idp.check.users.existing", "$JS.FC." + bus.SubscriptionStream + ".x",
		} {
			_, err := js.Publish(t.Context(), bus.SubscriptionSubject("acme", "7"), []byte("for 7"))
			require.NoError(t, err)
			require.NoError(t, seven.PublishRequest(asked, reply, []byte(`{"batch":1,"no_wait":true}`)))
		}
	}
	require.NoError(t, seven.PublishRequest("$JS.API.CONSUMER.INFO."+bus.SubscriptionStream+"."+
		bus.SubscriptionConsumer("7"), "_INBOX.7.last", nil))
	require.NoError(t, seven.Flush())
	for last := false; !last; {
		select {
		case m := <-got:
			require.NotContains(t, string(m.Data), "for 8")
			last = m.Subject == "_INBOX.7.last"
		case <-time.After(wait.Long):
			t.Fatal("the last request was not answered")
		}
	}
}

// A connection ends soon after its password does, on every server: the client cannot connect again.
func TestConnectionsEndWithTheirPassword(t *testing.T) {
	url, seed := startNATS(t)
	services, err := nats.Connect(url, nats.UserInfo("services", "services"))
	require.NoError(t, err)
	t.Cleanup(services.Close)
	var rotated atomic.Bool
	require.NoError(t, callout.Answer(services, seed, "SUBSCRIBERS", 2*time.Second,
		func(context.Context, string, string) (bool, error) { return !rotated.Load(), nil }))
	require.NoError(t, services.Flush())
	again, closed := make(chan struct{}, 100), make(chan struct{})
	user, err := nats.Connect(url, nats.UserInfo("acme.7", "secret"), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	t.Cleanup(user.Close)
	for range 3 { // a client whose password holds goes on
		receive(t, again)
	}
	rotated.Store(true)
	receive(t, closed)
}

func receive(t *testing.T, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(wait.Long):
		t.Fatal("nothing came")
	}
}
