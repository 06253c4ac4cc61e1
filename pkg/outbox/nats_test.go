package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// server is an embedded NATS server that can be stopped and started again on its folder.
type server struct {
	mu  sync.Mutex
	now *embedded.Server
}

func (s *server) start(t testing.TB, dir string) {
	t.Helper()
	started, err := embedded.Start(embedded.Config{StoreDir: dir, Log: quiet()})
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = started
}

func (s *server) stop() {
	s.mu.Lock()
	running := s.now
	s.now = nil
	s.mu.Unlock()
	if running != nil {
		running.Stop()
	}
}

func (s *server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil, errors.New("stopped")
	}
	return s.now.Conn().InProcessConn()
}

func connect(t testing.TB, s *server) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: s, Sync: s.now.Sync, Name: "test", Log: quiet()})
	require.NoError(t, err)
	b.EnsureStreams(t.Context())
	require.NoError(t, b.Ready())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})
	return b
}

func TestEverythingArrivesOnceAlthoughNATSStopsAndStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var nats server
	nats.start(t, dir)
	t.Cleanup(nats.stop)
	b := connect(t, &nats)
	s := newMemory()
	r, err := StartRelay(s, b, quiet(), nil)
	require.NoError(t, err)

	const records, versions = 100, 60
	var sent []docstore.Message
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for v := 1; v <= versions; v++ {
			for i := range records {
				s.add(msg(strconv.Itoa(i), v))
			}
			if v%20 == 0 { // while messages are published
				nats.stop()
				nats.start(t, dir)
			}
		}
	}()
	for v := 1; v <= versions; v++ {
		for i := range records {
			sent = append(sent, msg(strconv.Itoa(i), v))
		}
	}
	<-writing
	stop(t, r)

	js := b.JetStream()
	consumer, err := js.OrderedConsumer(t.Context(), bus.EventStream, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	arrived := &jetStream{}
	for len(arrived.got) < len(sent) {
		batch, err := consumer.Fetch(len(sent)-len(arrived.got), jetstream.FetchMaxWait(patient))
		require.NoError(t, err)
		before := len(arrived.got)
		for m := range batch.Messages() {
			arrived.got = append(arrived.got, m.Headers().Get(jetstream.MsgIDHeader))
		}
		require.Greater(t, len(arrived.got), before, "%v", batch.Error())
	}
	arrived.inOrder(t, sent)
	st, err := js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.EqualValues(t, len(sent), st.CachedInfo().State.Msgs, "nothing twice")
}

// The relay's part of an import: messages of 1.2 KB, each of another record.
func BenchmarkRelay(b *testing.B) {
	for _, records := range []int{1 << 30, 10} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			var nats server
			nats.start(b, b.TempDir())
			b.Cleanup(nats.stop)
			conn := connect(b, &nats)
			s := newMemory()
			payload := bytes.Repeat([]byte("x"), 1200)
			for i := range b.N {
				m := msg(strconv.Itoa(i%records), i)
				m.Payload = payload
				s.add(m)
			}
			r := newRelay(&chunks{memory: s}, conn, quiet())
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			b.ResetTimer()
			r.start()
			stop(b, r)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// chunks is a memory whose Published costs nothing: it relies on the relay's messages being the first ones.
type chunks struct{ *memory }

func (s *chunks) Published(_ context.Context, seqs []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = s.pending[len(seqs):]
	return nil
}
