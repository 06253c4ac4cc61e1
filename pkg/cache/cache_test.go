package cache

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := New[string, error](100) // a value may be a nil interface
	_, ok := c.Get("a")
	require.False(t, ok)
	c.Set("a", nil)
	v, ok := c.Get("a")
	require.True(t, ok)
	require.NoError(t, v)
	c.Delete("a")
	_, ok = c.Get("a")
	require.False(t, ok)

	n := New[[2]byte, int](100)
	count := func(present int, ok bool) int {
		require.Equal(t, present > 0, ok)
		return present + 1
	}
	require.Equal(t, 1, n.Change([2]byte{1}, count))
	require.Equal(t, 2, n.Change([2]byte{1}, count))
	require.Equal(t, 2, n.GetOrMake([2]byte{1}, func() int { panic("there is one") }))
	require.Equal(t, 7, n.GetOrMake([2]byte{2}, func() int { return 7 }))
	require.Equal(t, 2, n.Len())
	n.Clear()
	require.Zero(t, n.Len())
}

func TestBounds(t *testing.T) {
	t.Parallel()
	c := New[int, int](100)
	w := NewWeighed(1000, func(key int, text string) int { return len(text) })
	for n := range 1000 {
		c.Set(n, n)
		w.Set(n, "a text of 20 letters")
		for often := range 10 {
			c.Get(often)
			w.Get(often)
		}
	}
	require.Equal(t, 100, c.Len())
	require.LessOrEqual(t, w.Len(), 50)
	require.Greater(t, w.Len(), 25)
	for often := range 10 {
		_, ok := c.Get(often)
		require.True(t, ok, "what is used often stays")
		_, ok = w.Get(often)
		require.True(t, ok)
	}
}

func TestAtOnce(t *testing.T) {
	t.Parallel()
	c := New[string, int](10)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { c.Change("a", func(n int, _ bool) int { return n + 1 }) })
	}
	wg.Wait()
	n, _ := c.Get("a")
	require.Equal(t, 100, n)
}

func BenchmarkGet(b *testing.B) {
	c := New[[32]byte, *int](1000)
	c.Set([32]byte{1}, new(int))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Get([32]byte{1})
		}
	})
}
