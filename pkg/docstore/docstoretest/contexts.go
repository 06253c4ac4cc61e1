package docstoretest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var contextCases = []testCase{
	{name: "contexts/cancelled before", run: cancelledBefore},
	{name: "contexts/cancelled within a transaction", run: cancelledWithin},
	{name: "contexts/cancelled while others write", run: cancelledWhileQueued},
	{name: "contexts/ping", run: ping},
}

func cancelledBefore(t *testing.T, s *suite) {
	f := s.open(t)
	f.insert(t, in(t, "t1"), thing("a"))
	ctx, cancel := context.WithCancel(in(t, "t1"))
	cancel()
	def := f.things.Def()
	for name, call := range map[string]func() error{
		"Get":        func() error { _, err := f.engine.Get(ctx, def, "t1", []string{"a"}); return err },
		"Find":       func() error { _, err := f.engine.Find(ctx, def, "t1", docstore.Find{Limit: 1}); return err },
		"Count":      func() error { _, err := f.engine.Count(ctx, def, "t1", docstore.Filter{}, 0); return err },
		"Reserve":    func() error { _, err := f.engine.Reserve(ctx, "s", 1); return err },
		"Due":        func() error { _, err := f.engine.Due(ctx, def, 0, 1); return err },
		"NextDue":    func() error { _, err := f.engine.NextDue(ctx, def); return err },
		"NextTenant": func() error { _, err := f.engine.NextTenant(ctx, def, ""); return err },
		"Pending":    func() error { _, err := f.engine.Pending(ctx, 0, 1); return err },
		"Published":  func() error { return f.engine.Published(ctx, []int64{1}) },
		"Backlog":    func() error { _, err := f.engine.Backlog(ctx); return err },
		"Ping":       func() error { return f.engine.Ping(ctx) },
		"Write": func() error {
			return f.engine.Write(ctx, func(docstore.EngineTx) error { t.Error("Write ran its function"); return nil })
		},
	} {
		require.True(t, isCancelled(call()), name)
	}
}

func cancelledWithin(t *testing.T, s *suite) {
	f := s.open(t)
	ctx, cancel := context.WithCancel(in(t, "t1"))
	err := f.write(ctx, func(tx *docstore.Tx) error {
		if _, err := f.things.Insert(ctx, tx, thing("a", words("w"))); err != nil {
			return err
		}
		cancel()
		_, err := f.things.Insert(ctx, tx, thing("b"))
		return err
	})
	require.True(t, isCancelled(err), "%v", err)
	require.Empty(t, f.ids(t, in(t, "t1"), docstore.Filter{}))
	f.insert(t, in(t, "t1"), thing("a", words("w")))
}

// cancelledWhileQueued: what a caller wrote that gave up was either stored, and the caller told so, or not stored.
func cancelledWhileQueued(t *testing.T, s *suite) {
	f := s.open(t)
	const n = 40
	errs := together(n, func(i int) error {
		ctx, cancel := context.WithCancel(in(t, "t1"))
		defer cancel()
		if i%2 == 1 {
			go cancel()
		}
		return f.tryInsert(ctx, thing(docID(i)))
	})
	var want []string
	for i, err := range errs {
		switch {
		case err == nil:
			want = append(want, docID(i))
		case i%2 == 0:
			require.NoError(t, err)
		default:
			require.True(t, isCancelled(err), "%v", err)
		}
	}
	require.Equal(t, want, f.ids(t, in(t, "t1"), docstore.Filter{}))
	f.check(t)
}

func ping(t *testing.T, s *suite) {
	f := s.open(t)
	require.NoError(t, f.Ping(t.Context()))
	require.NoError(t, f.Check(t.Context()))
}
