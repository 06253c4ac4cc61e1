package bus

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestReadOfEventsThatTheStreamHas(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, history(3, 10)...)
	epoch, err := b.epochOf(t.Context(), EventStream)
	require.NoError(t, err)
	stream, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	before := stream.CachedInfo().State.FirstSeq - 1
	end := before + 25
	want := Reading{Stream: epoch, Tenant: "acme", After: before + 4, UpTo: end, Limit: 15}
	events, next, err := b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, events, 15)
	require.EqualValues(t, before+19, next)
	require.EqualValues(t, before+5, events[0].Place.Number)
	require.Contains(t, string(events[0].JSON), `"sequence"`)

	want.After = next
	events, next, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, events, 6)
	require.EqualValues(t, end, next)
	one := want
	one.Tenant, one.Limit = "", 1
	events, next, err = b.Read(t.Context(), one)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.EqualValues(t, want.After+1, next)

	other := want
	other.Tenant = "globex"
	events, next, err = b.Read(t.Context(), other)
	require.NoError(t, err)
	require.Empty(t, events)
	require.EqualValues(t, end, next, "there are none of this tenant")

	direct := counting(t, b, "$JS.API.DIRECT.GET."+EventStream)
	leader := counting(t, b, "$JS.API.STREAM.MSG.GET."+EventStream)
	_, _, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	asked := func(page, one int64) {
		t.Helper()
		wait.Until(t, func() bool { return direct.Load() == page && leader.Load() == one })
	}
	asked(1, 0)
	_, _, err = b.Read(t.Context(), other)
	require.NoError(t, err)
	asked(2, 1) // only the leader knows that there is nothing
	_, err = b.PlaceAt(t.Context(), "globex", time.Now())
	require.NoError(t, err)
	asked(2, 2)

	gone := func(r Reading) uint64 {
		t.Helper()
		_, _, err := b.Read(t.Context(), r)
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
func counting(t *testing.T, b *Bus, subject string) *atomic.Int64 {
	t.Helper()
	n := &atomic.Int64{}
	_, err := b.nats.Subscribe(subject, func(*nats.Msg) { n.Add(1) })
	require.NoError(t, err)
	require.NoError(t, b.nats.Flush())
	return n
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	began := time.Now()
	publish(t, b, history(1, 3)...)
	stream, err := b.js.Stream(t.Context(), EventStream)
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
