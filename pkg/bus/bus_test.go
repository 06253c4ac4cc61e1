package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/natstest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

var userExists = Question[string, bool]{Service: "users", Name: "exists"}

func TestMain(m *testing.M) { leaks.Main(m) }

const patient = wait.Long // how long a test waits for what must happen

// box is a NATS server and its clients.
type box struct{ *natstest.Server }

func newBox(t testing.TB) *box {
	t.Helper()
	return &box{natstest.New(t, "", slog.New(slog.DiscardHandler))}
}

// connect makes a Bus without streams.
func (x *box) connect(t testing.TB, c Config) *Bus {
	t.Helper()
	c.Name, c.InProcess, c.Log = t.Name(), x, slog.New(slog.NewTextHandler(t.Output(), nil))
	b, err := Connect(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})
	return b
}

// open makes a Bus with streams, on a server of its own.
func open(t testing.TB) (*Bus, *box) {
	t.Helper()
	x := newBox(t)
	b := x.connect(t, Config{})
	b.EnsureStreams(t.Context())
	require.NoError(t, b.Ready())
	return b, x
}

// message makes the event of one version of a record.
func message(record string, version int) docstore.Message {
	id := record + "-" + strconv.Itoa(version)
	return docstore.Message{
		ID: id, Subject: "idp.events.acme.user.updated", Record: record,
		Payload: fmt.Appendf(nil,
			`{"specversion":"1.0","id":%q,"source":"/users","type":"idp.user.updated","subject":%q,"tenantid":"acme",`+
				`"requestid":"req-1","payloadorigin":"hr","sequence":"%d","data":{"record":{}}}`, id, record, version),
	}
}

// publish publishes each message again until it is stored, as the relay does: a server that has just been started again
// may be away without the connection having noticed.
func publish(t *testing.T, b *Bus, messages ...docstore.Message) {
	t.Helper()
	for _, m := range messages {
		wait.Until(t, func() bool { return b.Publish(t.Context(), []docstore.Message{m})[0] == nil })
	}
}

// receive takes a value that must arrive.
func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patient):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func TestWorksAlthoughNATSIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	x := newBox(t)
	x.Stop()
	b := x.connect(t, Config{})
	b.EnsureStreams(t.Context())
	require.ErrorContains(t, b.Ready(), "NATS is away")
	require.NoError(t, userExists.Answer(b, func(context.Context, string) (bool, error) { return true, nil }))
	for _, err := range b.Publish(t.Context(), []docstore.Message{message("1", 1)}) {
		require.Error(t, err)
	}

	x.Start()
	publish(t, b, message("1", 1))
	there, err := userExists.Ask(acme(t.Context()), b, "1")
	require.NoError(t, err)
	require.True(t, there)
}

func TestCloseWithoutNATS(t *testing.T) {
	t.Parallel()
	x := newBox(t)
	x.Stop()
	b := x.connect(t, Config{}) // closed by the cleanup
	b.EnsureStreams(t.Context())
	require.NoError(t, userExists.Answer(b, func(context.Context, string) (bool, error) { return true, nil }))
}

// Close calls what BeforeClose was given, unless it was forgotten.
func TestBeforeClose(t *testing.T) {
	t.Parallel()
	b, err := Connect(t.Context(), Config{InProcess: newBox(t), Name: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	stopped := 0
	b.BeforeClose(func(context.Context) error { stopped++; return errors.New("it was cut short") })
	forget := b.BeforeClose(func(context.Context) error { stopped++; return nil })
	forget()
	require.ErrorContains(t, b.Close(t.Context()), "it was cut short")
	require.Equal(t, 1, stopped)
}

func TestStreamsAreMadeOnceAndBroughtUpToDate(t *testing.T) {
	t.Parallel()
	x := newBox(t)
	var together sync.WaitGroup
	for range 4 {
		b := x.connect(t, Config{})
		together.Go(func() {
			b.EnsureStreams(t.Context())
			assert.NoError(t, b.Ready())
			assert.NoError(t, b.Close(t.Context())) // otherwise it would restore its own settings
		})
	}
	together.Wait()

	b := x.connect(t, Config{MaxAge: time.Hour})
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.Equal(t, jetstream.FileStorage, config.Storage)
	require.Equal(t, 7*24*time.Hour, config.MaxAge)
	require.Equal(t, 2*time.Minute, config.Duplicates)
	require.Equal(t, []string{"idp.events.>"}, config.Subjects)

	config.MaxBytes = 1 << 30 // a setting of an operator
	_, err = b.js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	b.EnsureStreams(t.Context())
	require.NoError(t, b.Ready())
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Hour, info.Config.MaxAge)
	require.EqualValues(t, 1<<30, info.Config.MaxBytes)
}

func TestStreamsComeBackWhenNATSLostItsDisk(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	x.Restore(t.TempDir())
	publish(t, b, message("1", 1))
}

func TestPublishDropsWhatComesTwice(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, message("1", 1), message("2", 1))
	publish(t, b, message("1", 1), message("1", 2))
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	require.EqualValues(t, 3, stream.CachedInfo().State.Msgs)
}

func TestPublishEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	many := make([]docstore.Message, 200)
	for i := range many {
		many[i] = message(strconv.Itoa(i), 1)
	}
	require.Len(t, b.Publish(ctx, many), len(many))
}

func TestConnectRefusesABadConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"nowhere":        {},
		"bad URL":        {URL: "nats://\x00"},
		"no certificate": {URL: "nats://127.0.0.1:1", TLSCert: "/missing.pem", TLSKey: "/missing.key"},
		"no CA":          {URL: "nats://127.0.0.1:1", TLSCA: "/missing.pem"},
	} {
		c.Log = slog.New(slog.DiscardHandler)
		_, err := Connect(t.Context(), c)
		require.Error(t, err, name)
	}
}

func TestConnectTellsNoPassword(t *testing.T) {
	t.Parallel()
	_, err := Connect(t.Context(), Config{URL: "nats://li:hush@host:port", Name: "test",
		Log: slog.New(slog.DiscardHandler)})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hush")
}
