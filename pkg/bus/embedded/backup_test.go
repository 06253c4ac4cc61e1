package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A restored stream has its messages at their places and with their times, up to the moment of the backup and no
// later, and its consumers get what they had not acknowledged.
func TestBackupOfStreams(t *testing.T) {
	t.Parallel()
	const firstPlace = 1_700_000_000_000_000
	s := start(t, Config{StoreDir: t.TempDir()})
	js := connected(t, s)
	config := jetstream.StreamConfig{Name: "IDP_EVENTS", Subjects: []string{"idp.events.>"}, FirstSeq: firstPlace,
		Metadata: map[string]string{"idp-epoch": "epoch"}}
	stream, err := js.CreateStream(t.Context(), config)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EMPTY", Subjects: []string{"empty"},
		FirstSeq: 7})
	require.NoError(t, err)
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "work",
		AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "idp.events.*.user.*"})
	require.NoError(t, err)
	publish := func(from, to int) {
		for n := from; n < to; n++ {
			m := nats.NewMsg([]string{"idp.events.acme.user.created", "idp.events.acme.node.created"}[n%2])
			m.Data = fmt.Append(nil, "event ", n)
			m.Header.Set(nats.MsgIdHdr, fmt.Sprint("id: ", n))
			_, err := js.PublishMsg(t.Context(), m)
			require.NoError(t, err)
		}
	}
	publish(0, 100)
	for _, deleted := range []uint64{0, 10, 12, 99} {
		require.NoError(t, stream.DeleteMsg(t.Context(), firstPlace+deleted))
	}
	acknowledge(t, consumer, 20)

	b, err := s.StartBackup(t.Context())
	require.NoError(t, err)
	t.Cleanup(b.Close)
	publish(100, 120)
	require.NoError(t, b.Cut(t.Context()))
	publish(120, 150)
	acknowledge(t, consumer, 20)
	want := messages(t, stream, firstPlace+119)
	require.Len(t, want, 116)

	to := start(t, Config{StoreDir: t.TempDir()})
	for _, part := range b.Streams {
		var written bytes.Buffer
		require.NoError(t, b.Write(t.Context(), part, &written))
		if part.Name == "IDP_EVENTS" {
			cut := bytes.NewReader(written.Bytes()[:written.Len()/2])
			require.Error(t, start(t, Config{StoreDir: t.TempDir()}).Restore(part.Info.Config, cut))
		}
		require.NoError(t, to.Restore(part.Info.Config, &written))
	}
	to.Stop()
	restored, err := Start(to.config) // from its files
	require.NoError(t, err)
	t.Cleanup(restored.Stop)
	js = connected(t, restored)
	stream, err = js.Stream(t.Context(), "IDP_EVENTS")
	require.NoError(t, err)
	assert.Equal(t, "epoch", stream.CachedInfo().Config.Metadata["idp-epoch"])
	assert.Equal(t, want, messages(t, stream, stream.CachedInfo().State.LastSeq))
	publish(200, 201)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, firstPlace+120, info.State.LastSeq)
	empty, err := js.Stream(t.Context(), "EMPTY")
	require.NoError(t, err)
	assert.EqualValues(t, 6, empty.CachedInfo().State.LastSeq)

	ids := map[string]bool{}
	require.NoError(t, restored.EachID(t.Context(), "IDP_EVENTS", func(id string) { ids[id] = true }))
	assert.Len(t, ids, len(want)+1)
	assert.True(t, ids["id: 1"])
	require.NoError(t, restored.EachID(t.Context(), "EMPTY", func(id string) { assert.Fail(t, id) }))

	consumer, err = stream.Consumer(t.Context(), "work")
	require.NoError(t, err)
	next, err := consumer.Next()
	require.NoError(t, err)
	assert.Equal(t, "event 46", string(next.Data()), "the first that was not acknowledged when the backup began")
	restored.Stop()
	_, err = Verify(t.Context(), restored.config.StoreDir, Verification{Whole: []string{"IDP_EVENTS"}})
	require.NoError(t, err)
}

func connected(t *testing.T, s *Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s.Conn()))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func acknowledge(t *testing.T, consumer jetstream.Consumer, n int) {
	t.Helper()
	batch, err := consumer.Fetch(n)
	require.NoError(t, err)
	got := 0
	for m := range batch.Messages() {
		require.NoError(t, m.DoubleAck(t.Context()))
		got++
	}
	require.Equal(t, n, got)
}

type kept struct {
	place         uint64
	subject, data string
	id, time      string
}

// messages reads a stream up to a place.
func messages(t *testing.T, stream jetstream.Stream, upTo uint64) (list []kept) {
	t.Helper()
	for place := stream.CachedInfo().Config.FirstSeq; place <= upTo; place++ {
		m, err := stream.GetMsg(context.Background(), place)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		require.NoError(t, err)
		list = append(list, kept{m.Sequence, m.Subject, string(m.Data), m.Header.Get(nats.MsgIdHdr), m.Time.String()})
	}
	return list
}
