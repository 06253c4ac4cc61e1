package stream

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestReadOfEventsThatTheStreamHas(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, history(3, 10)...)
	require.NoError(t, b.Await(t.Context()))
	_, epoch, err := b.End()
	require.NoError(t, err)
	stream, err := b.js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	before := stream.CachedInfo().State.FirstSeq - 1
	end := before + 25
	want := Reading{Stream: epoch, Tenant: "acme", After: before + 4, UpTo: end, Limit: 15}
	events, next, err := b.Stored(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, events, 15)
	require.EqualValues(t, before+19, next)
	require.EqualValues(t, before+5, events[0].Place)
	require.Contains(t, string(events[0].JSON), `"sequence"`)

	want.After = next
	events, next, err = b.Stored(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, events, 6)
	require.EqualValues(t, end, next)
	one := want
	one.Tenant, one.Limit = "", 1
	events, next, err = b.Stored(t.Context(), one)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.EqualValues(t, want.After+1, next)

	other := want
	other.Tenant = "globex"
	events, next, err = b.Stored(t.Context(), other)
	require.NoError(t, err)
	require.Empty(t, events)
	require.EqualValues(t, end, next, "there are none of this tenant")

	direct := counting(t, b, "$JS.API.DIRECT.GET."+bus.EventStream)
	leader := counting(t, b, "$JS.API.STREAM.MSG.GET."+bus.EventStream)
	_, _, err = b.Stored(t.Context(), want)
	require.NoError(t, err)
	asked := func(page, one int64) {
		t.Helper()
		wait.Until(t, func() bool { return direct.Load() == page && leader.Load() == one })
	}
	asked(1, 0)
	_, _, err = b.Stored(t.Context(), other)
	require.NoError(t, err)
	asked(2, 1) // only the leader knows that there is nothing
	_, err = b.PlaceAt(t.Context(), "globex", time.Now())
	require.NoError(t, err)
	asked(2, 2)

	gone := func(r Reading) uint64 {
		t.Helper()
		_, _, err := b.Stored(t.Context(), r)
		missing, is := errors.AsType[*GoneError](err)
		require.True(t, is, "%v", err)
		return missing.First
	}
	other.Stream = "another"
	require.EqualValues(t, end+1, gone(other), "all are gone")
	require.NoError(t, stream.Purge(t.Context()))
	require.Greater(t, gone(want), end)
}

// counting counts the requests on a subject.
func counting(t *testing.T, b program, subject string) *atomic.Int64 {
	t.Helper()
	n := &atomic.Int64{}
	_, err := b.js.Conn().Subscribe(subject, func(*nats.Msg) { n.Add(1) })
	require.NoError(t, err)
	require.NoError(t, b.js.Conn().Flush())
	return n
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	began := time.Now()
	publish(t, b, history(1, 3)...)
	stream, err := b.js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	first := stream.CachedInfo().State.FirstSeq
	for tenant, want := range map[string]uint64{"": first, "acme": first, "globex": 0} {
		place, err := b.PlaceAt(t.Context(), tenant, began)
		require.NoError(t, err)
		require.Equal(t, want, place, tenant)
	}
	require.NoError(t, b.DropEvents(t.Context(), "acme", first+1))
	for tenant, want := range map[string]uint64{"": first + 2, "acme": first + 2, "globex": first + 2} {
		oldest, err := b.Oldest(t.Context(), tenant)
		require.NoError(t, err)
		require.Equal(t, want, oldest, tenant)
	}
}

// Whoever reads the stream learns that a tenant's events were dropped, and only who reads that tenant's.
func TestReadersLearnWhatWasDropped(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	for n := range 10 {
		publish(t, b, of("acme", message("1", n)), of("globex", message("1", n)))
	}
	stream, err := b.js.Stream(t.Context(), bus.EventStream)
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
		events, _, err := b.Stored(t.Context(), Reading{
			Stream: bus.Epoch(stream.CachedInfo()), Tenant: c.tenant, After: c.after, UpTo: first + 19, Limit: 100,
		})
		require.Len(t, events, c.events, c.tenant)
		gone, is := errors.AsType[*GoneError](err)
		if require.Equal(t, c.first > 0, is, "%v", err); is {
			require.Equal(t, c.first, gone.First)
		}
	}
}
