package transaction_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/petermattis/goid"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/transaction"
)

func TestOnlyTheGoroutineInsideIsRefused(t *testing.T) {
	t.Parallel()
	require.NoError(t, transaction.Refuse("before"))
	transaction.Enter()
	err := transaction.Refuse("asking")
	require.ErrorIs(t, err, transaction.ErrInside)
	require.ErrorContains(t, err, "asking must not be called inside")
	other := make(chan error)
	go func() { other <- transaction.Refuse("another") }()
	require.NoError(t, <-other)
	transaction.Leave()
	require.NoError(t, transaction.Refuse("after"))
}

func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 100 {
				if err := transaction.Refuse("outside"); err != nil {
					t.Error(err)
				}
				transaction.Enter()
				if transaction.Refuse("inside") == nil {
					t.Error("not refused inside")
				}
				transaction.Leave()
			}
		})
	}
	all.Wait()
}

// The library reads the runtime's own structures, which can change with a new version of Go.
func TestGoroutineIDsAreTheRuntimes(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			var stack [64]byte
			var id int64
			_, err := fmt.Sscanf(string(stack[:runtime.Stack(stack[:], false)]), "goroutine %d ", &id)
			if err != nil || id != goid.Get() {
				t.Errorf("%d, want %d (%v)", goid.Get(), id, err)
			}
		})
	}
	all.Wait()
}

func BenchmarkRefuseOutside(b *testing.B) {
	done, ready := make(chan struct{}), make(chan struct{})
	go func() { // another goroutine is inside
		transaction.Enter()
		close(ready)
		<-done
		transaction.Leave()
	}()
	<-ready
	for b.Loop() {
		_ = transaction.Refuse("it")
	}
	close(done)
}

func BenchmarkEnterAndLeave(b *testing.B) {
	for b.Loop() {
		transaction.Enter()
		transaction.Leave()
	}
}
