package docstoretest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var uniqueCases = []testCase{
	{name: "unique/one value", run: uniqueValue},
	{name: "unique/each of a list", run: uniqueList},
	{name: "unique/absent values do not count", run: uniqueAbsent},
	{name: "unique/the id", run: uniqueID},
	{name: "unique/freed by delete and replace", run: uniqueFreed},
	{name: "unique/in a replace", run: uniqueInReplace},
	{name: "unique/moved within a transaction", run: uniqueMoved},
	{name: "unique/32 at once", run: uniqueRace},
	{name: "unique/all taken members are named", run: uniqueMembers},
	{name: "unique/items of a batch are named", run: uniqueItems},
	{name: "unique/a value that is free again", run: uniqueFreeAgain},
}

func requireDuplicate(t *testing.T, err error, index string) {
	t.Helper()
	var dup *docstore.DuplicateError
	require.ErrorAs(t, err, &dup)
	require.Equal(t, index, dup.Index)
	require.Equal(t, "things", dup.Collection)
	require.NotContains(t, err.Error(), "secret-", "an error must not repeat the value")
	if index != "" { // otherwise it is the id, which clients do not choose
		require.Equal(t, apperr.AlreadyExists, apperr.KindOf(err))
	}
}

// requireTaken checks at which members a refused write reports taken values.
func requireTaken(t *testing.T, err error, locations ...string) {
	t.Helper()
	refusal, ok := errors.AsType[*apperr.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, apperr.AlreadyExists, refusal.Kind)
	var named []string
	for _, fault := range refusal.Faults {
		named = append(named, fault.Location)
	}
	require.ElementsMatch(t, locations, named)
}

func uniqueMembers(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c1"), logins("l1", "l2", "l3")), thing("b", code("c2"), logins("l4")))
	f.insert(t, in(t, "t2"), thing("a", code("c5"), logins("l5")))
	for _, row := range []struct {
		v         *Thing
		locations []string
	}{
		{thing("c", code("c1")), []string{"code"}},
		{thing("c", logins("l1")), []string{"login"}},
		{thing("c", logins("l5", "l1")), []string{"more_logins"}},
		{thing("c", logins("", "", "l2")), []string{"more_logins"}},
		{thing("c", code("c5"), logins("l4", "l3")), []string{"login", "more_logins"}},
		{thing("c", code("c2"), logins("l2", "l2")), []string{"code", "login", "more_logins"}},
	} {
		requireTaken(t, f.tryInsert(ctx, row.v), row.locations...)
	}
	err := f.change(ctx, "b", func(v *Thing) { v.Code, v.Logins = "c1", []string{"l4", "l3"} })
	requireTaken(t, err, "code", "more_logins")
	f.check(t)
}

func uniqueItems(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c1"), logins("l1")))
	many := []*Thing{
		thing("b", code("c2"), logins("l2")), thing("c", code("c1"), logins("l3")),
		thing("d", code("c2")), thing("e", logins("l4", "l3")),
	}
	for i := range 300 { // more than are looked up together
		many = append(many, thing(docID(i), code(docID(i)), logins(docID(i))))
	}
	many = append(many, thing("z", logins("l1")))
	insert := func(at func(int) string, all []*Thing) error {
		return f.write(ctx, func(tx *docstore.Tx) error {
			copies := make([]*Thing, len(all))
			for i := range all {
				copies[i] = all[i].clone()
			}
			docs, err := f.things.InsertMany(ctx, tx, at, copies...)
			if err == nil && len(docs) != len(all) {
				return errStop
			}
			return err
		})
	}
	item := func(i int) string { return apperr.Item("items", i) }
	requireTaken(t, insert(item, many), "items[1].code", "items[2].code", "items[3].more_logins", "items[304].login")
	requireTaken(t, insert(func(int) string { return "" }, many[1:2]), "code")
	require.NoError(t, insert(item, many[4:304]))
	require.Len(t, f.ids(t, ctx, docstore.Filter{}), 301)
	f.check(t)
}

// uniqueFreeAgain: the document that had the value is deleted before it is looked up.
func uniqueFreeAgain(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	err := f.write(ctx, func(tx *docstore.Tx) error {
		for _, id := range []string{"a", "b"} { // the end of the transaction deletes a
			if _, err := f.things.Insert(ctx, tx, thing(id, logins("own "+id, "one"))); err != nil {
				return err
			}
		}
		return nil
	})
	requireTaken(t, err, "more_logins")
	require.Empty(t, f.ids(t, ctx, docstore.Filter{}))
}

func uniqueValue(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("secret-1")))
	requireDuplicate(t, f.tryInsert(ctx, thing("b", code("secret-1"))), "code")
	f.insert(t, ctx, thing("b", code("Secret-1")))
	require.Equal(t, []string{"a", "b"}, f.ids(t, ctx, docstore.Filter{}))
	f.check(t)
}

func uniqueList(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", logins("secret-1", "secret-2", "secret-1")), thing("b", logins("secret-3")))
	requireDuplicate(t, f.tryInsert(ctx, thing("c", logins("secret-0", "secret-2"))), "logins")
	requireDuplicate(t, f.tryInsert(ctx, thing("c", logins("secret-3"))), "logins")
	f.insert(t, ctx, thing("c", logins("secret-0")))
	require.Equal(t, []string{"a", "b", "c"}, f.ids(t, ctx, docstore.Filter{}))
	f.check(t)
}

func uniqueAbsent(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a"), thing("b"), thing("c", logins("")), thing("d", logins("")))
	require.Len(t, f.ids(t, ctx, docstore.Filter{}), 4)
	require.Len(t, f.ids(t, ctx, docstore.Eq("code", docstore.Text(""))), 4)
}

func uniqueID(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", name("first")))
	requireDuplicate(t, f.tryInsert(ctx, thing("a", name("second"))), "")
	require.Equal(t, "first", f.get(t, ctx, "a").Name)
}

func uniqueFreed(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c1"), logins("l1", "l2")))
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Code, v.Logins = "c2", []string{"l2", "l3"} }))
	f.insert(t, ctx, thing("b", code("c1"), logins("l1")))
	require.NoError(t, f.delete(ctx, "a"))
	f.insert(t, ctx, thing("a", code("c2"), logins("l2", "l3")))
	require.Equal(t, []string{"a"}, f.ids(t, ctx, docstore.Eq("logins", docstore.Text("l3"))))
	require.Equal(t, []string{"b"}, f.ids(t, ctx, docstore.Eq("logins", docstore.Text("l1"))))
	f.check(t)
}

func uniqueInReplace(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c1"), logins("l1")), thing("b", code("c2"), logins("l2"), words("w")))
	requireDuplicate(t, f.change(ctx, "b", func(v *Thing) { v.Code = "c1" }), "code")
	requireDuplicate(t, f.change(ctx, "b", func(v *Thing) { v.Logins, v.Words = []string{"l1"}, nil }), "logins")
	b := f.get(t, ctx, "b")
	require.Equal(t, "c2", b.Code)
	require.EqualValues(t, 1, b.Version)
	require.Equal(t, []string{"b"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	require.NoError(t, f.change(ctx, "b", func(v *Thing) { v.Name = "its own values are not duplicates" }))
	f.check(t)
}

func uniqueMoved(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", code("c1"), logins("l1")), thing("b"))
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		a, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		a.Code, a.Logins = "", nil
		if _, err := f.things.Replace(ctx, tx, a); err != nil {
			return err
		}
		b, err := f.things.Load(ctx, tx, "b")
		if err != nil {
			return err
		}
		b.Code, b.Logins = "c1", []string{"l1"}
		_, err = f.things.Replace(ctx, tx, b)
		return err
	}))
	require.Equal(t, []string{"b"}, f.ids(t, ctx, docstore.Eq("code", docstore.Text("c1"))))
	require.Equal(t, []string{"b"}, f.ids(t, ctx, docstore.Eq("logins", docstore.Text("l1"))))
	f.check(t)
}

func uniqueRace(t *testing.T, s *suite) {
	for index, set := range map[string]func(*Thing){"code": code("one"), "logins": logins("one", "own"),
		"": func(v *Thing) { v.ID = "one" }} {
		t.Run("index "+index, func(t *testing.T) {
			t.Parallel()
			f, ctx := s.open(t), in(t, "t1")
			var won atomic.Int32
			errs := together(32, func(i int) error {
				err := f.tryInsert(ctx, thing(docID(i), set))
				if err == nil {
					won.Add(1)
				}
				return err
			})
			require.EqualValues(t, 1, won.Load(), "exactly one succeeds")
			for _, err := range errs {
				if err != nil {
					requireDuplicate(t, err, index)
				}
			}
			require.Len(t, f.ids(t, ctx, docstore.Filter{}), 1)
			f.check(t)
		})
	}
}

// together runs fn n times at the same time and returns the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// allOf runs fn n times at the same time and requires that none fails.
func allOf(t *testing.T, n int, fn func(i int) error) {
	t.Helper()
	require.NoError(t, errors.Join(together(n, fn)...))
}

var errStop = errors.New("stop")

func isCancelled(err error) bool { return errors.Is(err, context.Canceled) }
