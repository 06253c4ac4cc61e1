package docstoretest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/transaction"
)

var insideCases = []testCase{
	{name: "inside/calls that would wait are refused", run: refusedInside},
	{name: "inside/other goroutines are not refused", run: othersInside},
}

// callsOf are the methods of a store that wait, so that none may be called inside a Write.
func callsOf(t *testing.T, f *fixture) map[string]func(context.Context) error {
	nested := func(*docstore.Tx) (struct{}, error) { t.Error("it ran"); return struct{}{}, nil }
	return map[string]func(context.Context) error{
		"NewID":      func(ctx context.Context) error { _, err := f.NewID(ctx); return err },
		"NewIDs":     func(ctx context.Context) error { _, err := f.NewIDs(ctx, 5000); return err },
		"StartIDsAt": func(ctx context.Context) error { return f.StartIDsAt(ctx, 1<<44) },
		"Write":      func(ctx context.Context) error { _, err := docstore.Write(ctx, f.Store, nested); return err },
		"Find":       func(ctx context.Context) error { _, err := f.things.Find(ctx, f.Store, "a"); return err },
		"Page": func(ctx context.Context) error {
			_, err := f.things.Page(ctx, f.Store, docstore.Query{Limit: 1})
			return err
		},
		"Count": func(ctx context.Context) error {
			_, err := f.things.Count(ctx, f.Store, docstore.Filter{})
			return err
		},
		"Texts": func(ctx context.Context) error {
			_, err := f.things.Texts(ctx, f.Store, "name", docstore.Filter{}, 1)
			return err
		},
		"FindGlobal": func(ctx context.Context) error {
			_, err := Clients.FindGlobal(ctx, f.Store, "key", "k")
			return err
		},
		"EachTenant": func(ctx context.Context) error {
			return f.things.EachTenant(ctx, f.Store, func(context.Context) error { return nil })
		},
		"Due":       func(ctx context.Context) error { _, err := f.things.Due(ctx, f.Store, 1); return err },
		"Pending":   func(ctx context.Context) error { _, err := f.Pending(ctx, 0, 1); return err },
		"Published": func(ctx context.Context) error { return f.Published(ctx, []int64{1}) },
		"Backlog":   func(ctx context.Context) error { _, err := f.Backlog(ctx); return err },
		"Ping":      func(ctx context.Context) error { return f.Ping(ctx) },
		"Check":     func(ctx context.Context) error { return f.Check(ctx) },
	}
}

// refusedInside: inside a Write every call of the store fails at once, with any context; otherwise the only writer
// would wait for itself.
func refusedInside(t *testing.T, s *suite) {
	f, outer := s.open(t), in(t, "t1")
	f.insert(t, outer, thing("a"))
	_, err := f.NewID(outer) // so that the reserved block has ids left
	require.NoError(t, err)
	calls := callsOf(t, f)
	refused := func() {
		t.Helper()
		for name, call := range calls {
			bounded, cancel := context.WithTimeout(outer, 5*time.Second)
			require.ErrorIs(t, call(bounded), transaction.ErrInside, name)
			cancel()
		}
	}
	hooks := 0
	hooked := docstore.OnCommit(outer, func(context.Context, *docstore.Tx, any) error {
		hooks++
		refused()
		return nil
	})
	require.NoError(t, f.write(hooked, func(tx *docstore.Tx) error {
		refused()
		_, err := f.things.Insert(outer, tx, thing("b"))
		return err
	}), "the refused calls have changed nothing")
	require.Positive(t, hooks)
	require.ErrorIs(t, f.write(outer, func(*docstore.Tx) error { return calls["NewID"](outer) }), transaction.ErrInside)
	require.Error(t, f.write(outer, func(*docstore.Tx) error { panic("boom") }))
	require.Equal(t, []string{"a", "b"}, f.ids(t, outer, docstore.Filter{}), "after the Write all calls work again")
	_, err = f.NewID(outer)
	require.NoError(t, err)
}

// othersInside: while one goroutine is inside a Write, others can read and get ids.
func othersInside(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	_, err := f.NewID(ctx)
	require.NoError(t, err)
	require.NoError(t, f.write(ctx, func(*docstore.Tx) error {
		done := make(chan error)
		go func() {
			_, err := f.things.Find(ctx, f.Store, "a")
			if err == nil {
				_, err = f.NewID(ctx)
			}
			done <- err
		}()
		return <-done
	}))
}
