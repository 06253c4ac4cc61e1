package docstoretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var writeCases = []testCase{
	{name: "write/versions and times", run: versionsAndTimes},
	{name: "write/versions that go on from those of another document", run: insertAfter},
	{name: "write/an unchanged document is left alone", run: unchanged},
	{name: "write/previous and changed", run: previousAndChanged},
	{name: "write/If-Match", run: ifMatch},
	{name: "write/a missing document", run: writeMissing},
	{name: "write/a stale version", run: staleVersion},
	{name: "write/delete where", run: deleteWhere},
	{name: "write/load many", run: loadMany},
	{name: "write/load where", run: loadWhere},
	{name: "write/dry run", run: dryRun},
	{name: "write/on commit", run: onCommit},
	{name: "write/due", run: due},
	{name: "write/numbers from a sequence", run: reserve},
	{name: "write/new ids", run: newIDs},
}

func versionsAndTimes(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	a := f.get(t, ctx, "a")
	require.Equal(t, docstore.Meta{ID: "a", TenantID: "t1", Version: 1, TimeCreated: epoch, TimeModified: epoch},
		a.Meta)
	for i := range 3 {
		f.clock.advance(time.Minute)
		require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Rank++ }))
		a = f.get(t, ctx, "a")
		require.EqualValues(t, i+2, a.Version)
		require.Equal(t, epoch, a.TimeCreated)
		require.Equal(t, f.Now(), a.TimeModified)
	}
	imported := thing("b")
	imported.TimeCreated = epoch.Add(-24 * time.Hour)
	f.insert(t, ctx, imported)
	require.Equal(t, imported.TimeCreated, f.get(t, ctx, "b").TimeCreated, "a given time is not replaced")
}

func insertAfter(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	d, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		return f.things.InsertAfter(ctx, tx, thing("a"), 7)
	})
	require.NoError(t, err)
	require.EqualValues(t, 8, d.Version)
	require.Nil(t, d.Previous())
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Rank++ }))
	require.EqualValues(t, 9, f.get(t, ctx, "a").Version)
	f.check(t)
}

func unchanged(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w")))
	f.clock.advance(time.Minute)
	d, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		return f.things.Replace(ctx, tx, v)
	})
	require.NoError(t, err)
	require.False(t, d.Changed())
	require.Nil(t, d.Previous())
	require.EqualValues(t, 1, d.Version)
	require.Equal(t, epoch, f.get(t, ctx, "a").TimeModified)
}

func previousAndChanged(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	inserted, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		return f.things.Insert(ctx, tx, thing("a", name("old"), words("w"), rank(1)))
	})
	require.NoError(t, err)
	require.True(t, inserted.Changed())
	require.Nil(t, inserted.Previous())

	f.clock.advance(time.Minute)
	d, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		v.Name, v.Words = "new", nil
		return f.things.Replace(ctx, tx, v)
	})
	require.NoError(t, err)
	require.True(t, d.Changed())
	previous := d.Previous()
	require.Len(t, previous, 2)
	require.JSONEq(t, `"old"`, string(previous["name"]))
	require.JSONEq(t, `["w"]`, string(previous["words"]))

	body, err := d.JSON()
	require.NoError(t, err)
	stored, err := f.things.Find(ctx, f.Store, "a")
	require.NoError(t, err)
	storedBody, err := stored.JSON()
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(storedBody), "a write returns the same document as a read")
}

func ifMatch(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"), thing("b"))
	expect := func(id string, version int64) context.Context {
		return docstore.WithExpected(ctx, id, func(v int64) bool { return v == version })
	}
	change := func(v *Thing) { v.Rank++ }
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(f.change(expect("a", 2), "a", change)))
	require.Zero(t, f.get(t, ctx, "a").Rank)
	require.NoError(t, f.change(expect("a", 1), "a", change))
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(f.change(expect("a", 1), "a", change)))
	require.NoError(t, f.change(expect("a", 9), "b", change), "the expected version is for one record only")
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(f.delete(expect("a", 1), "a")))
	require.NoError(t, f.delete(expect("a", 2), "a"))

	part := &Part{Meta: docstore.Meta{ID: "b"}}
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		_, err := Parts.Insert(ctx, tx, part)
		return err
	}))
	pctx := expect("b", 7)
	require.NoError(t, f.write(pctx, func(tx *docstore.Tx) error {
		_, err := Parts.Load(pctx, tx, "b")
		return err
	}), "If-Match is never checked for a part")
}

func writeMissing(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	require.Equal(t, apperr.NotFound, apperr.KindOf(f.change(ctx, "b", func(*Thing) {})))
	require.Equal(t, apperr.NotFound, apperr.KindOf(f.delete(ctx, "b")))
	err := f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		if _, err := f.things.Delete(ctx, tx, v); err != nil {
			return err
		}
		v.Rank = 5
		_, err = f.things.Replace(ctx, tx, v)
		return err
	})
	require.Equal(t, apperr.NotFound, apperr.KindOf(err), "deleted in the same transaction")
}

func staleVersion(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"))
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Rank = 1 }))
	for _, version := range []int64{1, 3} {
		err := f.engine.Write(ctx, func(tx docstore.EngineTx) error {
			return tx.Delete(ctx, f.things.Def(), "t1", "a", docstore.Stamp{Version: version})
		})
		var stale *docstore.VersionError
		require.ErrorAs(t, err, &stale)
		require.EqualValues(t, 2, stale.Current)
	}
	f.get(t, ctx, "a")
}

func deleteWhere(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const n = 1100 // more than two of the pages that DeleteWhere reads
	var all []*Thing
	for i := range n {
		all = append(all, thing(fmt.Sprintf("d%04d", i), rank(int64(i%11)), words("w", fmt.Sprint("w", i%11))))
	}
	f.insert(t, ctx, all...)
	var removed []string
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		removed = nil
		return f.things.DeleteWhere(ctx, tx, docstore.From("rank", docstore.Number(1)),
			func(d docstore.Doc[Thing]) error {
				removed = append(removed, d.ID)
				return nil
			})
	}))
	require.Len(t, removed, n/11*10)
	require.Len(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))), n/11)
	require.Empty(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w1"))))
	require.ErrorIs(t, f.write(ctx, func(tx *docstore.Tx) error {
		return f.things.DeleteWhere(ctx, tx, docstore.Filter{}, func(docstore.Doc[Thing]) error { return errStop })
	}), errStop)
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		return f.things.DeleteWhere(ctx, tx, docstore.Or(), nil)
	}), "selecting nothing is no error")
	f.check(t)
}

func loadMany(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", rank(1)), thing("b", rank(2)), thing("c", rank(3)))
	f.insert(t, in(t, "t2"), thing("z"))
	require.NoError(t, f.write(docstore.WithExpected(ctx, "a", func(int64) bool {
		return false
	}), func(tx *docstore.Tx) error {
		loaded, err := f.things.LoadMany(ctx, tx, []string{"c", "a", "a", "missing", "z"})
		if err != nil {
			return err
		}
		require.Len(t, loaded, 2, "those that exist, once")
		for _, v := range loaded {
			v.Rank *= 10
			if _, err := f.things.Replace(ctx, tx, v); err != nil {
				return err
			}
		}
		none, err := f.things.LoadMany(ctx, tx, nil)
		if err == nil {
			require.Empty(t, none)
		}
		return err
	}))
	require.EqualValues(t, []int64{10, 2, 30}, []int64{f.get(t, ctx, "a").Rank, f.get(t, ctx, "b").Rank,
		f.get(t, ctx, "c").Rank})
	f.check(t)
}

// loadWhere works through a range in chunks. The changed documents of each chunk are outside the range.
func loadWhere(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for i := range 10 {
		f.insert(t, ctx, thing(fmt.Sprint("id", i), rank(int64(100-i))))
	}
	var seen []int64
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		seen = nil
		for {
			loaded, err := f.things.LoadWhere(ctx, tx, docstore.And(docstore.From("rank", docstore.Number(93)),
				docstore.Until("rank", docstore.Number(1000))), "rank", 3)
			if err != nil || len(loaded) == 0 {
				return err
			}
			for _, v := range loaded {
				seen = append(seen, v.Rank)
				v.Rank += 1000
				if _, err := f.things.Replace(ctx, tx, v); err != nil {
					return err
				}
			}
		}
	}))
	require.Equal(t, []int64{93, 94, 95, 96, 97, 98, 99, 100}, seen)
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		byID, err := f.things.LoadWhere(ctx, tx, docstore.Until("rank", docstore.Number(1000)), "", 5)
		if err != nil {
			return err
		}
		require.Len(t, byID, 2)
		require.Equal(t, "id8", byID[0].ID)
		_, err = f.things.LoadWhere(ctx, tx, docstore.Filter{}, "no such index", 5)
		require.ErrorContains(t, err, "cannot be sorted")
		return nil
	}))
	f.check(t)
}

func dryRun(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c"), words("w")))
	dry := docstore.WithDryRun(ctx)
	hooked := docstore.OnCommit(dry, func(context.Context, *docstore.Tx, any) error {
		t.Error("a dry run commits nothing")
		return nil
	})
	d, err := docstore.Write(hooked, f.Store, func(tx *docstore.Tx) (docstore.Doc[Thing], error) {
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return docstore.Doc[Thing]{}, err
		}
		if _, err := f.things.Delete(ctx, tx, v); err != nil {
			return docstore.Doc[Thing]{}, err
		}
		if err := tx.Append(ctx, docstore.Message{ID: "m", Subject: "s", Record: "r"}); err != nil {
			return docstore.Doc[Thing]{}, err
		}
		return f.things.Insert(ctx, tx, thing("b", code("c"), words("w")))
	})
	require.NoError(t, err)
	require.Equal(t, "b", d.ID, "it returns what the write would return")
	require.Equal(t, []string{"a"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	backlog, err := f.Backlog(ctx)
	require.NoError(t, err)
	require.Zero(t, backlog)
	requireDuplicate(t, f.tryInsert(dry, thing("c", code("c"))), "code")
	f.check(t)
}

func onCommit(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	hooked := docstore.OnCommit(ctx, func(ctx context.Context, tx *docstore.Tx, result any) error {
		_, err := f.things.Insert(ctx, tx, thing("of "+result.(string)))
		return err
	})
	insert := func(id string) error {
		_, err := docstore.Write(hooked, f.Store, func(tx *docstore.Tx) (string, error) {
			_, err := f.things.Insert(ctx, tx, thing(id))
			return id, err
		})
		return err
	}
	require.NoError(t, insert("a"))
	require.Equal(t, []string{"a", "of a"}, f.ids(t, ctx, docstore.Filter{}))
	f.insert(t, ctx, thing("of b"))
	requireDuplicate(t, insert("b"), "")
	require.Equal(t, []string{"a", "of a", "of b"}, f.ids(t, ctx, docstore.Filter{}), "a failing hook undoes the write")
	requireDuplicate(t, insert("a"), "")
}
