package callout_test

import (
	"context"
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
	require.True(t, s.ReadyForConnections(10*time.Second))
	return s.ClientURL(), secret.New(string(text))
}

// The NATS user of a subscription can read its own events, and nothing else.
func TestUsersOfSubscriptions(t *testing.T) {
	url, seed := startNATS(t)
	services, err := nats.Connect(url, nats.UserInfo("services", "services"))
	require.NoError(t, err)
	t.Cleanup(services.Close)
	require.NoError(t, callout.Answer(services, seed, "SUBSCRIBERS",
		func(ctx context.Context, id, password string) (bool, error) {
			return request.Tenant(ctx) == "acme" && (id == "7" || id == "8") && password == "secret-"+id, nil
		}))
	require.NoError(t, services.Flush())
	js, err := jetstream.New(services)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
}
