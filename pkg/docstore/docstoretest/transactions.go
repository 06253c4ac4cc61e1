package docstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var transactionCases = []testCase{
	{name: "transactions/an error leaves nothing", run: rollback},
	{name: "transactions/a panic is an error and leaves nothing", run: rollbackOnPanic},
	{name: "transactions/an ignored duplicate does not commit", run: ignoredDuplicate},
	{name: "transactions/a batch is all or nothing", run: batch},
	{name: "transactions/reads see own writes", run: ownWrites},
	{name: "transactions/queries see own writes", run: queriesSeeOwnWrites},
	{name: "transactions/nobody sees a part of one", run: noPartialReads},
	{name: "transactions/one fails, others commit", run: failingBesideOthers},
}

// writeEachKind does one write of each kind, to be undone. Its error ends the attempt, as in any Write: the engine may
// run the transaction again.
func (f *fixture) writeEachKind(ctx context.Context, tx *docstore.Tx) error {
	if _, err := f.things.Insert(ctx, tx, thing("new", code("new"), words("w"), logins("l"))); err != nil {
		return err
	}
	v, err := f.things.Load(ctx, tx, "old")
	if err != nil {
		return err
	}
	v.Words, v.Code = []string{"w"}, "changed"
	if _, err := f.things.Replace(ctx, tx, v); err != nil {
		return err
	}
	gone, err := f.things.Load(ctx, tx, "gone")
	if err != nil {
		return err
	}
	if _, err := f.things.Delete(ctx, tx, gone); err != nil {
		return err
	}
	return tx.Append(ctx, docstore.Message{ID: "m", Subject: "s", Record: "r", Payload: []byte("{}")})
}

func (f *fixture) requireUndone(t *testing.T) {
	t.Helper()
	ctx := in(t, "t1")
	require.Equal(t, []string{"gone", "old"}, f.ids(t, ctx, docstore.Filter{}))
	require.Equal(t, []string{"gone"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	require.Empty(t, f.ids(t, ctx, docstore.Eq("logins", docstore.Text("l"))))
	require.EqualValues(t, 1, f.get(t, ctx, "old").Version)
	backlog, err := f.Backlog(ctx)
	require.NoError(t, err)
	require.Zero(t, backlog, "no event of an undone change")
	f.check(t)
	require.NoError(t, f.tryInsert(ctx, thing("next", code("new"), logins("l"))), "unique values are free again")
}

func rollback(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("old", code("old")), thing("gone", words("w")))
	err := f.write(ctx, func(tx *docstore.Tx) error {
		if err := f.writeEachKind(ctx, tx); err != nil {
			return err
		}
		return errStop
	})
	require.Equal(t, errStop, err, "the function's error is returned unchanged")
	refusal := apperr.Invalid("body.name", "is bad")
	err = f.write(ctx, func(tx *docstore.Tx) error {
		if err := f.writeEachKind(ctx, tx); err != nil {
			return err
		}
		return refusal
	})
	require.Equal(t, error(refusal), err)
	f.requireUndone(t)
}

func rollbackOnPanic(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("old", code("old")), thing("gone", words("w")))
	require.NotPanics(t, func() {
		err := f.write(ctx, func(tx *docstore.Tx) error {
			if err := f.writeEachKind(ctx, tx); err != nil {
				return err
			}
			panic("boom")
		})
		require.Error(t, err)
		require.Equal(t, apperr.Internal, apperr.KindOf(err))
	})
	f.requireUndone(t)
}

func ignoredDuplicate(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", logins("l")))
	err := f.write(ctx, func(tx *docstore.Tx) error {
		if _, err := f.things.Insert(ctx, tx, thing("b", words("w"))); err != nil {
			return err
		}
		_, _ = f.things.Insert(ctx, tx, thing("c", words("w"), logins("l")))
		return nil
	})
	require.Error(t, err, "a part of an insert must not be committed")
	require.Equal(t, []string{"a"}, f.ids(t, ctx, docstore.Filter{}))
	require.Empty(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	f.check(t)
}

func batch(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("taken", logins("l150")))
	var all []*Thing
	for i := range 300 {
		all = append(all, thing(docID(i), code(docID(i)), logins(fmt.Sprint("l", i)), words("w", docID(i))))
	}
	requireDuplicate(t, f.tryInsert(ctx, all...), "logins")
	require.Equal(t, []string{"taken"}, f.ids(t, ctx, docstore.Filter{}))
	all[150].Logins = nil
	f.insert(t, ctx, all...)
	n, err := f.things.Count(ctx, f.Store, docstore.Eq("words", docstore.Text("w")))
	require.NoError(t, err)
	require.EqualValues(t, 300, n)
	f.check(t)
}

func ownWrites(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", rank(1)))
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		for want := int64(1); want <= 3; want++ {
			v, err := f.things.Load(ctx, tx, "a")
			if err != nil {
				return err
			}
			require.Equal(t, want, v.Rank)
			v.Rank++
			if _, err := f.things.Replace(ctx, tx, v); err != nil {
				return err
			}
		}
		if _, err := f.things.Insert(ctx, tx, thing("b")); err != nil {
			return err
		}
		if _, err := f.things.Find(ctx, tx, "b"); err != nil {
			return err
		}
		b, err := f.things.Load(ctx, tx, "b")
		if err != nil {
			return err
		}
		if _, err := f.things.Delete(ctx, tx, b); err != nil {
			return err
		}
		if _, err = f.things.Find(ctx, tx, "b"); err == nil {
			return errors.New("a deleted document was found")
		}
		if apperr.KindOf(err) != apperr.NotFound {
			return err
		}
		return nil
	}))
	require.EqualValues(t, 4, f.get(t, ctx, "a").Rank)
	require.EqualValues(t, 4, f.get(t, ctx, "a").Version)
}

// queriesSeeOwnWrites: after any sequence of writes, queries of every kind, including those of Peek, see them.
func queriesSeeOwnWrites(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w"), code("ca")), thing("b", words("w")), thing("other"))
	insert := func(v *Thing) func(*docstore.Tx) error {
		return func(tx *docstore.Tx) error { _, err := f.things.Insert(ctx, tx, v); return err }
	}
	free := func(tx *docstore.Tx) error {
		a, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		a.Words, a.Code = nil, ""
		_, err = f.things.Replace(ctx, tx, a)
		return err
	}
	tagged := docstore.Eq("words", docstore.Text("w"))
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		for _, step := range []struct {
			do   func(*docstore.Tx) error
			want []string
		}{
			{insert(thing("c", words("w"))), []string{"a", "b", "c"}},
			{free, []string{"b", "c"}},
			{insert(thing("d", code("ca"))), []string{"b", "c"}}, // a has given this code up
			{func(tx *docstore.Tx) error { return f.things.DeleteWhere(ctx, tx, tagged, nil) }, nil},
			{insert(thing("b", words("w"))), []string{"b"}},
		} {
			if err := step.do(tx); err != nil {
				return err
			}
			for _, r := range []docstore.Reader{tx, tx.Peek()} {
				if err := f.seen(ctx, r, tagged, step.want); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	require.Equal(t, []string{"a", "b", "d", "other"}, f.ids(t, ctx, docstore.Filter{}))
	require.EqualValues(t, 1, f.get(t, ctx, "b").Version)
	f.check(t)
}

// seen checks a filter with every kind of read. Its error ends the attempt: the engine may run the transaction again.
func (f *fixture) seen(ctx context.Context, r docstore.Reader, filter docstore.Filter, want []string) error {
	page, err := f.things.Page(ctx, r, docstore.Query{Filter: filter, Limit: 10, Count: true})
	if err != nil {
		return err
	}
	var ids []string
	for _, d := range page.Docs {
		ids = append(ids, d.ID)
	}
	n, err := f.things.Count(ctx, r, filter)
	if err != nil {
		return err
	}
	docs, err := f.things.FindMany(ctx, r, []string{"a", "b", "c", "d"})
	if err != nil {
		return err
	}
	var found []string
	for _, d := range docs {
		v, err := d.Value()
		if err != nil {
			return err
		}
		if len(v.Words) > 0 {
			found = append(found, d.ID)
		}
	}
	slices.Sort(found)
	if !slices.Equal(ids, want) || !slices.Equal(found, want) || page.Total != n || n != int64(len(want)) {
		return fmt.Errorf("a page has %v of %d, %v were found, %d counted; want %v", ids, page.Total, found, n, want)
	}
	return nil
}

// noPartialReads: two documents always change together. A page shows both before the change or both after it.
func noPartialReads(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("pair")), thing("b", words("pair")))
	const rounds = 50
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			for range rounds {
				err := f.write(ctx, func(tx *docstore.Tx) error {
					for _, id := range []string{"a", "b"} {
						v, err := f.things.Load(ctx, tx, id)
						if err != nil {
							return err
						}
						v.Rank++
						if _, err := f.things.Replace(ctx, tx, v); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for writing := true; writing; {
		select {
		case err := <-done:
			require.NoError(t, err)
			writing = false
		default:
		}
		for _, filter := range []docstore.Filter{{}, docstore.Eq("words", docstore.Text("pair")),
			docstore.ID("a", "b")} {
			_, page := f.page(t, ctx, docstore.Query{Filter: filter, Limit: 2})
			require.Len(t, page.Docs, 2)
			a, err := page.Docs[0].Value()
			require.NoError(t, err)
			b, err := page.Docs[1].Value()
			require.NoError(t, err)
			require.Equal(t, a.Rank, b.Rank)
		}
	}
	require.EqualValues(t, rounds, f.get(t, ctx, "a").Rank)
}

// failingBesideOthers: an engine may commit several callers' transactions together. One that fails must not affect the
// others.
func failingBesideOthers(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const n = 60
	errs := together(n, func(i int) error {
		return f.write(ctx, func(tx *docstore.Tx) error {
			if _, err := f.things.Insert(ctx, tx, thing(docID(i), words("w"), logins(docID(i)))); err != nil {
				return err
			}
			if err := tx.Append(ctx, docstore.Message{ID: docID(i), Subject: "s", Record: docID(i)}); err != nil {
				return err
			}
			switch i % 6 {
			case 1:
				return errStop
			case 3:
				panic("boom")
			case 5:
				_, err := f.things.Insert(ctx, tx, thing(docID(i)))
				return err
			}
			return nil
		})
	})
	var want []string
	for i, err := range errs {
		switch i % 6 {
		case 1:
			require.Equal(t, errStop, err)
		case 3:
			require.Error(t, err)
		case 5:
			requireDuplicate(t, err, "")
		default:
			require.NoError(t, err)
			want = append(want, docID(i))
		}
	}
	require.Equal(t, want, f.ids(t, ctx, docstore.Filter{}))
	require.Equal(t, want, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	pending, err := f.Pending(ctx, 0, 1000)
	require.NoError(t, err)
	require.Len(t, pending, len(want))
	f.check(t)
}
