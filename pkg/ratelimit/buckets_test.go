package ratelimit

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New[string](0.5, 3, 10)
		require.Zero(t, b.Empty("a"))
		for range 3 {
			require.Zero(t, b.Take("a"))
		}
		require.Equal(t, 2*time.Second, b.Take("a"))
		require.Equal(t, 2*time.Second, b.Empty("a"))
		require.Zero(t, b.Take("b"))
		time.Sleep(2 * time.Second)
		require.Zero(t, b.Empty("a"))
		require.Zero(t, b.Take("a"))
		require.Equal(t, 2*time.Second, b.Take("a"))
		time.Sleep(time.Hour)
		for range 3 {
			require.Zero(t, b.Take("a"), "it fills up to its size")
		}
		require.Positive(t, b.Take("a"))
	})
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	b := New[string](0, 3, 10)
	for range 100 {
		require.Zero(t, b.Take("a"))
		require.Zero(t, b.Empty("a"))
	}
}

func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := New[int](1, 1, 100)
	for i := range 1000 {
		b.Take(i)
	}
	require.LessOrEqual(t, b.cache.Len(), 100)
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	network := func(s string) netip.Prefix { return Network(netip.MustParseAddr(s)) }
	require.Equal(t, network("2001:db8::1"), network("2001:db8::ffff:1"), "a network of 64 bits counts as one client")
	require.Equal(t, network("2001:db8::1"), network("2001:db8::1%eth0"))
	require.NotEqual(t, network("2001:db8::1"), network("2001:db8:0:1::1"))
	require.NotEqual(t, network("192.0.2.1"), network("192.0.2.2"))
	require.Equal(t, network("192.0.2.1"), network("::ffff:192.0.2.1"))
	require.Zero(t, Network(netip.Addr{}))
}
