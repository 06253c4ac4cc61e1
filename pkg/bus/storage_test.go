package bus

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// of makes the message another tenant's.
func of(tenant string, m docstore.Message) docstore.Message {
	m.ID = tenant + m.ID
	m.Subject = "idp.events." + tenant + ".user.updated"
	m.Payload = fmt.Appendf(nil, `{"specversion":"1.0","id":%q,"source":"/users","type":"idp.user.updated",`+
		`"subject":"1","tenantid":%q,"sequence":"1","data":{}}`, m.ID, tenant)
	return m
}

// Whoever reads the stream learns that a tenant's events were dropped, and only who reads that tenant's.
func TestReadersLearnWhatWasDropped(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	for n := range 10 {
		publish(t, b, of("acme", message("1", n)), of("globex", message("1", n)))
	}
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	first := stream.CachedInfo().State.FirstSeq
	require.NoError(t, b.DropEvents(t.Context(), "acme", first+9))
	require.NoError(t, b.DropEvents(t.Context(), "acme", first+5), "an earlier place changes nothing")
	for _, c := range []struct {
		tenant string
		after  uint64
		events int
		first  uint64 // of those that are kept, if others are gone
	}{
		{"acme", first, 0, first + 10}, {"acme", first + 9, 5, 0}, {"globex", first, 10, 0}, {"", first, 15, 0},
	} {
		events, _, err := b.Read(t.Context(), Reading{
			Stream: Epoch(stream.CachedInfo()), Tenant: c.tenant, After: c.after, UpTo: first + 19, Limit: 100,
		})
		require.Len(t, events, c.events, c.tenant)
		gone, is := errors.AsType[*GoneError](err)
		if require.Equal(t, c.first > 0, is, "%v", err); is {
			require.Equal(t, c.first, gone.First)
		}
	}
}

// A follower that was away while events were dropped which it had not seen begins again with a snapshot.
func TestAFollowerMissesNothingThatIsDropped(t *testing.T) {
	t.Parallel()
	b, x := open(t)
	var m mirror
	ready(t, follow(t, b, &m))
	publish(t, b, message("1", 1))
	m.until(t, 1, "1-1")
	other := x.connect(t, Config{})
	b.link.set(false) // as if its connection were lost
	wait.Until(t, func() bool { return b.followers[0].Age() > 0 })
	publish(t, other, message("1", 2), message("1", 3))
	stream, err := other.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	require.NoError(t, other.DropEvents(t.Context(), "acme", stream.CachedInfo().State.LastSeq-1))
	b.link.set(true)
	m.until(t, 2, "")
}

// The place of the consumer that is the last to handle events bounds what is dropped; a reader's does not.
func TestConsumersThatAreBehindAreFound(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	_, _, ok, err := b.Handled(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	blocked, goOn := make(chan struct{}, 1), make(chan struct{})
	_, err = b.Consume(t.Context(), ConsumerConfig{Name: "slow", Subjects: []string{"idp.events.>"},
		Handle: func(context.Context, Event) error { blocked <- struct{}{}; <-goOn; return nil }})
	require.NoError(t, err)
	publish(t, b, message("1", 1))
	receive(t, blocked)
	place, name, ok, err := b.Handled(t.Context())
	require.NoError(t, err)
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	require.Equal(t, []any{true, "slow"}, []any{ok, name})
	require.Less(t, place, stream.CachedInfo().State.LastSeq)
	close(goOn)
	wait.Until(t, func() bool { _, _, ok, err = b.Handled(t.Context()); return err == nil && !ok })
}

// The metadata has a bounded number of tenants. What it no longer names counts for all.
func TestDroppedPlacesAreBounded(t *testing.T) {
	t.Parallel()
	var config jetstream.StreamConfig
	for n := range uint64(200) {
		config.Metadata = noteDropped(config.Metadata, fmt.Sprint("t", n), 1000+n, 1)
		require.LessOrEqual(t, len(config.Metadata), maxDropped+1)
	}
	require.EqualValues(t, 1199, Dropped(config, ""))
	require.EqualValues(t, 1199, Dropped(config, "t199"))
	require.EqualValues(t, 1135, Dropped(config, "t0"), "rather too much than too little")
	config.Metadata = noteDropped(config.Metadata, "t199", 1300, 1200)
	require.Len(t, config.Metadata, 1, "what is before the stream's first place is forgotten")
	require.Zero(t, Dropped(config, "t0"))
}

// BenchmarkSizes is the cost of an event of 1.2 KB when a full stream is counted.
func BenchmarkSizes(b *testing.B) {
	bus, _ := open(b)
	body := make([]byte, 1200)
	for n := 0; n < b.N; n += 500 {
		list := make([]docstore.Message, min(500, b.N-n))
		for i := range list {
			list[i] = docstore.Message{ID: fmt.Sprint(n + i), Subject: "idp.events.acme.user.updated", Payload: body}
		}
		for _, err := range bus.Publish(b.Context(), list) {
			require.NoError(b, err)
		}
	}
	b.ResetTimer()
	counted := 0
	err := bus.Sizes(b.Context(), EventStream, func(Stored) error {
		if counted++; counted == b.N {
			return context.Canceled
		}
		return nil
	})
	require.ErrorIs(b, err, context.Canceled)
}
