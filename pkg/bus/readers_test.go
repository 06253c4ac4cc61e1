package bus

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// forReaders are the servers that readers can reach: the embedded one, and one with deploy/nats/nats.conf.
var forReaders = map[string]func(t *testing.T) (services Config, url string){
	"embedded": func(t *testing.T) (Config, string) {
		s, err := embedded.Start(embedded.Config{
			StoreDir: t.TempDir(), Listen: "127.0.0.1:0", User: "events", Password: "reader",
			Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		t.Cleanup(s.Stop)
		return Config{InProcess: s.Conn()}, s.ClientURL()
	},
	"nats.conf": func(t *testing.T) (Config, string) {
		url := startNATS(t, t.TempDir())
		return Config{URL: url, User: "services", Password: "services"}, url
	},
}

// startNATS runs a server with the configuration for production.
func startNATS(t *testing.T, dir string) (url string) {
	t.Helper()
	options := &server.Options{}
	require.NoError(t, options.ProcessConfigFile("../../deploy/nats/nats.conf"))
	require.True(t, options.SyncAlways, "an acknowledgement means that the event is on the disk")
	require.Greater(t, options.MaxPayload, int32(4<<20))
	return runNATS(t, options, dir)
}

func runNATS(t *testing.T, options *server.Options, dir string) (url string) {
	t.Helper()
	options.Host, options.Port, options.HTTPPort = "127.0.0.1", server.RANDOM_PORT, 0
	options.StoreDir, options.NoLog, options.NoSigs = dir, true, true
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(patient))
	return s.ClientURL()
}

// readable is a server with events, a service's consumer, a parked event, and a question that has an answerer.
type readable struct {
	*Bus
	url   string
	asked chan *nats.Msg // what arrived on a question's subject
}

func newReadable(t *testing.T, start func(t *testing.T) (Config, string)) *readable {
	t.Helper()
	c, url := start(t)
	c.Name, c.Log = t.Name(), slog.New(slog.DiscardHandler)
	b, err := Connect(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})
	b.EnsureStreams(t.Context())
	require.NoError(t, b.Ready())
	r := &readable{Bus: b, url: url, asked: make(chan *nats.Msg, 64)}
	_, err = b.nats.Subscribe("idp.check.>", func(m *nats.Msg) { r.asked <- m })
	require.NoError(t, err)
	require.NoError(t, b.nats.Flush())
	_, err = b.js.CreateConsumer(t.Context(), EventStream, jetstream.ConsumerConfig{Durable: "users",
		AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	_, err = b.js.Publish(t.Context(), parkedSubject("users"), []byte("parked"))
	require.NoError(t, err)
	publish(t, b, message("1", 1))
	return r
}

// reader connects as a reader. What the server refuses is sent to the channel.
func (r *readable) reader(t *testing.T) (*nats.Conn, jetstream.JetStream, chan error) {
	t.Helper()
	refused := make(chan error, 256)
	nc, err := nats.Connect(r.url, nats.UserInfo("events", "reader"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, js, refused
}

func setNATSEnvironment(t *testing.T) {
	t.Setenv("NATS_PASSWORD", "services")
	t.Setenv("NATS_EVENTS_PASSWORD", "reader")
	t.Setenv("NATS_STORE_DIR", t.TempDir())
}

func TestReadersFollowTheEvents(t *testing.T) {
	setNATSEnvironment(t)
	for name, start := range forReaders {
		t.Run(name, func(t *testing.T) {
			r := newReadable(t, start)
			nc, js, _ := r.reader(t)

			sub, err := nc.SubscribeSync("idp.events.acme.>")
			require.NoError(t, err)
			require.NoError(t, nc.Flush())
			publish(t, r.Bus, message("1", 2))
			m, err := sub.NextMsg(patient)
			require.NoError(t, err)
			require.Equal(t, "idp.events.acme.user.updated", m.Subject)
			require.Equal(t, message("1", 2).Payload, m.Data)

			next := func(js jetstream.JetStream, want int) {
				t.Helper()
				consumer, err := js.Consumer(t.Context(), EventStream, ReaderConsumer)
				require.NoError(t, err)
				m, err := consumer.Next(jetstream.FetchMaxWait(patient))
				require.NoError(t, err)
				require.Equal(t, message("1", want).Payload, m.Data())
				require.NoError(t, m.DoubleAck(t.Context()))
			}
			next(js, 1)
			next(js, 2)
			nc.Close() // while it is disconnected
			publish(t, r.Bus, message("1", 3))
			_, js, _ = r.reader(t)
			next(js, 3)

			// A long pull gets event after event, and what is not acknowledged is delivered again.
			consumer, err := js.Consumer(t.Context(), EventStream, ReaderConsumer)
			require.NoError(t, err)
			iterator, err := consumer.Messages(jetstream.PullMaxMessages(10))
			require.NoError(t, err)
			defer iterator.Stop()
			for version := 4; version < 30; version++ {
				publish(t, r.Bus, message("1", version))
				m, err := iterator.Next(jetstream.NextContext(t.Context()))
				require.NoError(t, err)
				require.Equal(t, message("1", version).Payload, m.Data())
				if version == 4 {
					require.NoError(t, m.Nak())
					m, err = iterator.Next(jetstream.NextContext(t.Context()))
					require.NoError(t, err)
					require.Equal(t, message("1", version).Payload, m.Data())
				}
				require.NoError(t, m.DoubleAck(t.Context()))
			}
			info, err := consumer.Info(t.Context())
			require.NoError(t, err)
			require.Zero(t, info.NumAckPending)
		})
	}
}

// TestReadersCanDoNothingElse: what a reader sends, with any reply subject, changes nothing and reaches no subject of
// the services.
func TestReadersCanDoNothingElse(t *testing.T) {
	setNATSEnvironment(t)
	const question = "idp.check.organization.start-change"
	config := func(c any) []byte {
		body, err := json.Marshal(map[string]any{"stream_name": EventStream, "config": c, "action": ""})
		require.NoError(t, err)
		return body
	}
	push := server.ConsumerConfig{Durable: "events", DeliverSubject: question, AckPolicy: server.AckExplicit}
	other := server.ConsumerConfig{Durable: "mine", DeliverSubject: question, AckPolicy: server.AckNone}
	mirror, err := json.Marshal(server.StreamConfig{
		Name: "MINE", Storage: server.MemoryStorage, Mirror: &server.StreamSource{Name: DeadLetterStream},
	})
	require.NoError(t, err)
	republish, err := json.Marshal(server.StreamConfig{Name: EventStream, Subjects: []string{"idp.events.>"},
		Storage:   server.FileStorage,
		RePublish: &server.RePublish{Source: ">", Destination: "idp.check.>"}})
	require.NoError(t, err)
	sends := []struct {
		subject string
		body    []byte
	}{
		{question, []byte("{}")},
		{"idp.events.acme.user.created", []byte("{}")},
		{"idp.deadletters.replay.users", []byte("{}")},
		{"_IDP.anything", nil},
		{"_INBOX.anything", nil},
		{"_R_.anything", nil},
		{"$JS.API.INFO", nil},
		{"$JS.API.ACCOUNT.PURGE.SERVICES", nil},
		{"$JS.API.STREAM.NAMES", nil},
		{"$JS.API.STREAM.LIST", nil},
		{"$JS.API.STREAM.INFO.IDP_EVENTS", nil},
		{"$JS.API.STREAM.INFO.IDP_DEADLETTERS", nil},
		{"$JS.API.STREAM.CREATE.MINE", mirror},
		{"$JS.API.STREAM.UPDATE.IDP_EVENTS", republish},
		{"$JS.API.STREAM.PURGE.IDP_EVENTS", nil},
		{"$JS.API.STREAM.DELETE.IDP_EVENTS", nil},
		{"$JS.API.STREAM.MSG.DELETE.IDP_EVENTS", []byte(`{"seq":1}`)},
		{"$JS.API.STREAM.MSG.GET.IDP_EVENTS", []byte(`{"seq":1}`)},
		{"$JS.API.STREAM.MSG.GET.IDP_DEADLETTERS", []byte(`{"seq":1}`)},
		{"$JS.API.DIRECT.GET.IDP_DEADLETTERS", []byte(`{"seq":1}`)},
		{"$JS.API.STREAM.SNAPSHOT.IDP_EVENTS", []byte(`{"deliver_subject":"` + question + `"}`)},
		{"$JS.API.STREAM.RESTORE.MINE", []byte("{}")},
		{"$JS.API.CONSUMER.CREATE.IDP_EVENTS", config(other)},
		{"$JS.API.CONSUMER.CREATE.IDP_EVENTS.events", config(push)},
		{"$JS.API.CONSUMER.CREATE.IDP_EVENTS.mine", config(other)},
		{"$JS.API.CONSUMER.CREATE.IDP_EVENTS.events.idp.events.acme.>", config(push)},
		{"$JS.API.CONSUMER.DURABLE.CREATE.IDP_EVENTS.events", config(push)},
		{"$JS.API.CONSUMER.CREATE.IDP_DEADLETTERS.mine", config(other)},
		{"$JS.API.CONSUMER.DELETE.IDP_EVENTS.events", nil},
		{"$JS.API.CONSUMER.DELETE.IDP_EVENTS.users", nil},
		{"$JS.API.CONSUMER.PAUSE.IDP_EVENTS.events", []byte(`{"pause_until":"2100-01-01T00:00:00Z"}`)},
		{"$JS.API.CONSUMER.RESET.IDP_EVENTS.events", nil},
		{"$JS.API.CONSUMER.UNPIN.IDP_EVENTS.users", []byte(`{"group":"active"}`)},
		{"$JS.API.CONSUMER.LIST.IDP_EVENTS", nil},
		{"$JS.API.CONSUMER.INFO.IDP_EVENTS.users", nil},
		{"$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.users", []byte("1")},
		{"$JS.API.CONSUMER.MSG.NEXT.IDP_DEADLETTERS.users", []byte("1")},
		{"$JS.ACK.IDP_EVENTS.users.1.1.1.1700000000000000000.0", []byte("+ACK")},
		{"$JS.FC.IDP_EVENTS.users.x", nil},
		{"$SYS.REQ.SERVER.PING", nil},
		{"$SYS.REQ.ACCOUNT.SERVICES.CONNZ", nil},
		{"$SYS.REQ.USER.INFO", nil},
	}
	allowed := []struct {
		subject string
		body    []byte
	}{
		{"$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.events", []byte("1")},
		{"$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.events", []byte(`{"batch":1,"no_wait":true}`)},
		// answered with an empty message, like an acknowledgement
		{"$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.events", []byte(`{"batch":-1}`)},
		{"$JS.API.CONSUMER.INFO.IDP_EVENTS.events", nil},
		{"$JS.ACK.IDP_EVENTS.events.1.1.1.1700000000000000000.0", []byte("+NXT")},
		{"$JS.ACK.IDP_EVENTS.events.1.1.1.1700000000000000000.0", []byte("+ACK")},
	}
	for name, start := range forReaders {
		t.Run(name, func(t *testing.T) {
			r := newReadable(t, start)
			nc, js, refused := r.reader(t)

			for _, options := range [][]nats.Option{
				nil, {nats.UserInfo("events", "wrong")}, {nats.UserInfo("platform", "")}, {nats.UserInfo("", "")},
				{nats.Token("reader")},
			} {
				_, err := nats.Connect(r.url, options...)
				require.ErrorIs(t, err, nats.ErrAuthorization)
			}
			for _, x := range sends {
				require.NoError(t, nc.PublishRequest(x.subject, question, x.body))
				assert.ErrorIs(t, receive(t, refused), nats.ErrPermissionViolation, x.subject)
			}
			for _, subject := range []string{
				"idp.check.>", "idp.deadletters.>", "idp.>", "_IDP.>", "_R_.>", ">", "$JS.>", "$JS.EVENT.>", "$SYS.>",
				"*.events.>",
			} {
				sub, err := nc.SubscribeSync(subject)
				require.NoError(t, err)
				assert.ErrorIs(t, receive(t, refused), nats.ErrPermissionViolation, subject)
				require.NoError(t, sub.Unsubscribe())
			}
			// What it may send, with replies and traces to subjects where it may not publish.
			service, err := r.js.Consumer(t.Context(), EventStream, "users")
			require.NoError(t, err)
			inHand, err := service.Next(jetstream.FetchMaxWait(patient))
			require.NoError(t, err)
			replies := []string{question, "idp.events.acme.user.created", "$JS.API.STREAM.PURGE.IDP_EVENTS",
				inHand.Reply()}
			headers := []nats.Header{{}, {headerTenant: {"acme"}, "Nats-Msg-Id": {"x"}},
				{"Nats-Trace-Dest": {question}}}
			for _, x := range allowed {
				for _, reply := range replies {
					for _, header := range headers {
						require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: x.subject, Reply: reply, Data: x.body,
							Header: header}))
					}
				}
			}
			require.NoError(t, nc.Flush())
			publish(t, r.Bus, message("2", 1), message("3", 1)) // for the waiting pulls
			own, err := js.Consumer(t.Context(), EventStream, ReaderConsumer)
			require.NoError(t, err)
			_, err = own.Next(jetstream.FetchMaxWait(patient)) // queued after the others
			assert.NoError(t, err, "none of them got an event")
			// sent after anything that the server may have published
			require.NoError(t, r.nats.Publish("idp.check.organization.end", nil))
			require.Equal(t, "idp.check.organization.end", (<-r.asked).Subject,
				"the reader's messages reached a question's subject")

			events, err := r.js.Stream(t.Context(), EventStream)
			require.NoError(t, err)
			require.EqualValues(t, 3, events.CachedInfo().State.Msgs, "nothing purged, nothing added")
			require.Nil(t, events.CachedInfo().Config.RePublish)
			var users *jetstream.ConsumerInfo
			wait.Until(t, func() bool { // NATS counts what a consumer has before it a moment after it has stored that
				users, err = service.Info(t.Context())
				require.NoError(t, err)
				return users.NumPending == 2
			}, "nobody has taken the service's events")
			require.Equal(t, 1, users.NumAckPending, "nobody has acknowledged the event that the service holds")
			info, err := own.Info(t.Context())
			require.NoError(t, err)
			require.False(t, info.Paused)
			require.Equal(t, 2, events.CachedInfo().State.Consumers)
			names := 0
			for range r.js.StreamNames(t.Context()).Name() {
				names++
			}
			require.Equal(t, 3, names)
		})
	}
}

// A NATS with the configuration of an earlier version had everything in the default account. docker-compose.yml moves
// the folder.
func TestEventsOfTheAccountBefore(t *testing.T) {
	setNATSEnvironment(t)
	dir := t.TempDir()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoLog: true,
		NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(patient))
	b, err := Connect(t.Context(), Config{InProcess: s, Name: "before", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	b.EnsureStreams(t.Context())
	publish(t, b, message("1", 1), message("1", 2))
	consumer, err := b.js.Consumer(t.Context(), EventStream, ReaderConsumer)
	require.NoError(t, err)
	m, err := consumer.Next(jetstream.FetchMaxWait(patient))
	require.NoError(t, err)
	require.NoError(t, m.DoubleAck(t.Context()))
	require.NoError(t, b.Close(context.Background()))
	s.Shutdown()
	s.WaitForShutdown()

	accounts := filepath.Join(dir, server.JetStreamStoreDir)
	require.NoError(t, os.Rename(filepath.Join(accounts, "$G"), filepath.Join(accounts, "SERVICES")))
	url := startNATS(t, dir)
	nc, err := nats.Connect(url, nats.UserInfo("events", "reader"))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	consumer, err = js.Consumer(t.Context(), EventStream, ReaderConsumer)
	require.NoError(t, err)
	m, err = consumer.Next(jetstream.FetchMaxWait(patient))
	require.NoError(t, err)
	require.Equal(t, message("1", 2).Payload, m.Data())
}
