package storage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The longest queue of a tenant gives up its oldest messages until the rest fits, and no other tenant's do.
func TestTheLongestQueueIsShortenedFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(1024) // a segment for each message
	place := uint64(0)
	add := func(tenant, queue string, messages int) *usage {
		var u *usage
		for range messages {
			place++
			u = l.add(tenant, queue, place, 10)
		}
		return u
	}
	add("globex", "c", 100)
	add("acme", "a", 10)
	u := add("acme", "b", 30)
	require.Empty(t, u.excess(400))
	require.Equal(t, map[string]uint64{"b": 110 + 20}, u.excess(200))
	upTo := u.excess(100)
	require.EqualValues(t, 105, upTo["a"])
	require.EqualValues(t, 135, upTo["b"])

	require.EqualValues(t, 20, u.forget("b", 131))
	require.EqualValues(t, 200, u.bytes)
	l.forget(101)
	require.NotContains(t, l.tenants, "globex")
	require.EqualValues(t, 200, u.bytes)
	require.EqualValues(t, 10, u.forget("a", place+1))
	require.NotContains(t, u.queues, "a")

	u.shorten("b", 10)
	require.EqualValues(t, 100, u.bytes, "no more than there are")
	u.shorten("b", 4)
	require.EqualValues(t, 40, u.bytes)
	require.EqualValues(t, 1, u.forget("b", 138), "the oldest are taken out")
	u.shorten("b", 0)
	require.Empty(t, u.queues)
}

// BenchmarkCount is the cost of counting an event.
func BenchmarkCount(b *testing.B) {
	l := newLedger(2 << 30)
	for n := range b.N {
		l.add("acme", "", uint64(n), 1200) //nolint:gosec // not negative
	}
}
