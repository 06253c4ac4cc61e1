package member

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Those who ask during a read share the next one, and get no answer that is older than their question.
func TestTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads together[int64]
		var version, read atomic.Int64
		begun, finish := make(chan struct{}, 10), make(chan struct{})
		ask := func(key string) <-chan int64 {
			asked, answer := version.Load(), make(chan int64, 1)
			go func() {
				got, err := reads.of(t.Context(), key, func(context.Context) (int64, error) {
					read.Add(1)
					now := version.Load()
					begun <- struct{}{}
					<-finish
					return now, nil
				})
				if err != nil || got < asked {
					got = -1
				}
				answer <- got
			}()
			return answer
		}
		first := ask("acme")
		<-begun
		version.Store(1)
		later := []<-chan int64{ask("acme"), ask("acme"), ask("acme")}
		other := ask("globex")
		<-begun
		synctest.Wait()
		require.EqualValues(t, 2, read.Load(), "the others wait")
		finish <- struct{}{}
		finish <- struct{}{}
		require.EqualValues(t, 0, <-first)
		require.EqualValues(t, 1, <-other)
		<-begun
		finish <- struct{}{}
		for _, answer := range later {
			require.EqualValues(t, 1, <-answer)
		}
		require.EqualValues(t, 3, read.Load())
		require.Empty(t, reads.reads)
	})
}

// Who no longer waits does not end the read for the others.
func TestTogetherGivesUpAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads together[string]
		finish := make(chan struct{})
		ask := func(ctx context.Context) <-chan error {
			failed := make(chan error, 1)
			go func() {
				_, err := reads.of(ctx, "acme", func(ctx context.Context) (string, error) {
					<-finish
					return "", ctx.Err()
				})
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		running := ask(t.Context())
		leader, leaves := context.WithCancel(t.Context())
		defer leaves()
		ask(leader)
		patient := ask(t.Context())
		impatient, leaves2 := context.WithCancel(t.Context())
		gone := ask(impatient)
		leaves()
		leaves2()
		require.ErrorIs(t, <-gone, context.Canceled)
		finish <- struct{}{}
		finish <- struct{}{}
		require.NoError(t, <-running)
		require.NoError(t, <-patient)
	})
}
