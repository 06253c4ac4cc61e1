package fair

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	patient = 20 * time.Second
	tick    = time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait lets somebody wait for a turn, and says when he does.
func wait(t *testing.T, turns *Turns, key string, got func()) {
	t.Helper()
	turns.mu.Lock()
	before := len(turns.waiting[key])
	turns.mu.Unlock()
	go func() {
		if turns.Take(context.Background(), key) == nil {
			got()
		}
	}()
	require.Eventually(t, func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return len(turns.waiting[key]) == before+1
	}, patient, tick)
}

// Of 50 who wait for one key and one who waits for another, the one comes second.
func TestTurnsGoByKey(t *testing.T) {
	t.Parallel()
	turns := NewTurns(1)
	require.NoError(t, turns.Take(t.Context(), "busy"))
	order := make(chan string)
	for i := range 50 {
		wait(t, turns, "busy", func() { order <- fmt.Sprint("busy ", i) })
	}
	wait(t, turns, "calm", func() { order <- "calm" })
	wait(t, turns, "third", func() { order <- "third" })
	var got []string
	for range 52 {
		turns.Done()
		got = append(got, <-order)
	}
	require.Equal(t, []string{"busy 0", "calm", "third", "busy 1", "busy 2"}, got[:5])
	require.Equal(t, "busy 49", got[51])
	turns.Done()
	require.Equal(t, 1, turns.free)
	require.Empty(t, turns.order)
	require.Empty(t, turns.waiting)
}

// Never more than so many at once, whoever gives up meanwhile; in the end nobody is left.
func TestTurnsAtOnce(t *testing.T) {
	t.Parallel()
	const most = 3
	turns := NewTurns(most)
	var working, peak atomic.Int64
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				go cancel()
			}
			defer cancel()
			if turns.Take(ctx, fmt.Sprint(i%7)) != nil {
				return
			}
			for now := working.Add(1); now > peak.Load(); {
				peak.Store(now)
			}
			working.Add(-1)
			turns.Done()
		})
	}
	all.Wait()
	require.LessOrEqual(t, peak.Load(), int64(most))
	require.Equal(t, most, turns.free)
	require.Empty(t, turns.order)
	require.Empty(t, turns.waiting)
}
