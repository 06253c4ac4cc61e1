package docstoretest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

var countCases = []testCase{
	{name: "counts/exact up to a bound", run: boundedCounts},
	{name: "counts/stay right", run: countsStayRight},
	{name: "counts/of an index that is counted from now on", run: newCounted},
	{name: "counts/of a facet that is new", run: newFacet},
	{name: "counts/known parts change nothing", run: knownParts},
}

// total counts in all three ways. The results must be exact up to exactTo; those in a transaction, always.
func (f *fixture) total(t *testing.T, ctx context.Context, filter docstore.Filter, exactTo, actual int64) {
	t.Helper()
	def, tenant := f.things.Def(), request.Tenant(ctx)
	counted, err := f.engine.Count(ctx, def, tenant, filter, exactTo)
	require.NoError(t, err)
	require.NoError(t, checkTotal(counted, exactTo, actual))
	_, counted, err = f.engine.Page(ctx, def, tenant, docstore.Find{Filter: filter, Limit: 1}, exactTo)
	require.NoError(t, err)
	require.NoError(t, checkTotal(counted, exactTo, actual))
	n := int64(-1)
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		n, err = f.things.Count(ctx, tx, filter)
		return err
	}))
	require.Equal(t, actual, n, "a transaction counts all documents")
}

func boundedCounts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	var all []*Thing
	for i := range 90 {
		all = append(all, thing(docID(i), name(fmt.Sprint("n", i%9)), kind(fmt.Sprint("k", i%3)), rank(int64(i)),
			words("all", fmt.Sprint("w", i%5), fmt.Sprint("v", i%7))))
	}
	f.insert(t, ctx, all...)
	f.insert(t, in(t, "t2"), thing("other", kind("k1"), words("all")))
	number, text := docstore.Number, docstore.Text
	k1 := docstore.Eq("kind", text("k1"))
	ranks := func(from, to int64) docstore.Filter { return docstore.Range("rank", number(from), number(to)) }
	word := func(list ...string) docstore.Filter {
		var values []docstore.Value
		for _, s := range list {
			values = append(values, text(s))
		}
		return docstore.In("words", values...)
	}
	for _, filter := range []docstore.Filter{
		{}, docstore.Or(), k1, docstore.In("kind", text("k0"), text("k2"), text("none")),
		word("w1", "v1"), word("all"), docstore.And(word("all"), word("w1")),
		docstore.From("rank", number(30)), docstore.And(k1, docstore.From("rank", number(30))),
		docstore.And(k1, docstore.Outside("rank", number(10), number(40))),
		docstore.And(k1, docstore.Outside("rank", number(100), number(200))),
		docstore.Or(k1, ranks(5, 11)), docstore.Or(k1, ranks(500, 600)),
		docstore.And(docstore.Or(k1, ranks(5, 11)), docstore.Outside("rank", number(0), number(8)), word("all")),
		docstore.Or(docstore.Prefix("name", "n1"), word("w2"), docstore.ID("1003")),
		docstore.Contains("name", "3"), docstore.And(k1, docstore.Contains("name", "3")),
	} {
		actual := int64(0)
		for _, v := range all {
			if matches(filter, v) {
				actual++
			}
		}
		for _, exactTo := range []int64{1, max(1, actual-1), max(1, actual), actual + 1, 1000} {
			f.total(t, ctx, filter, exactTo, actual)
		}
		n, err := f.things.Count(ctx, f.Store, filter)
		require.NoError(t, err)
		require.Equal(t, actual, n)
	}
}

// countsStayRight: the counts of all documents, of each value of a facet and of each of a counted index, stay right
// through every kind of change.
func countsStayRight(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	right := func(kinds map[string]int64) {
		t.Helper()
		all := int64(0)
		for _, kind := range []string{"", "a", "b", "c"} {
			f.total(t, ctx, docstore.Eq("kind", docstore.Text(kind)), 100, kinds[kind])
			f.total(t, ctx, docstore.Eq("group", docstore.Text(kind)), 100, kinds[kind])
			all += kinds[kind]
		}
		f.total(t, ctx, docstore.Filter{}, 100, all)
	}
	f.insert(t, ctx, thing("1", kind("a")), thing("2", kind("a")), thing("3", kind("b"), code("taken")), thing("4"))
	f.insert(t, in(t, "t2"), thing("5", kind("a")))
	right(map[string]int64{"": 1, "a": 2, "b": 1})
	require.NoError(t, f.change(ctx, "1", func(v *Thing) { v.Kind = "b" }))
	require.NoError(t, f.change(ctx, "2", func(v *Thing) { v.Name = "other" }))
	require.NoError(t, f.change(ctx, "4", func(v *Thing) { v.Kind = "c" }))
	require.NoError(t, f.delete(ctx, "3"))
	before := map[string]int64{"a": 1, "b": 1, "c": 1}
	right(before)

	change := func(ctx context.Context, then error) error {
		return f.write(ctx, func(tx *docstore.Tx) error {
			if _, err := f.things.Insert(ctx, tx, thing("6", kind("b"))); err != nil {
				return err
			}
			v, err := f.things.Load(ctx, tx, "1")
			if err != nil {
				return err
			}
			v.Kind = "c"
			if _, err := f.things.Replace(ctx, tx, v); err != nil {
				return err
			}
			n, err := f.things.Count(ctx, tx, docstore.In("kind", docstore.Text("b"), docstore.Text("c")))
			if err == nil && n != 3 {
				err = fmt.Errorf("a transaction counts %d, without its own writes", n)
			}
			return errors.Join(err, then)
		})
	}
	require.ErrorIs(t, change(ctx, errStop), errStop)
	right(before)
	require.NoError(t, change(docstore.WithDryRun(ctx), nil))
	right(before)
	require.NoError(t, f.change(ctx, "2", func(v *Thing) { v.Code = "taken" }))
	requireDuplicate(t, f.tryInsert(ctx, thing("7", kind("a")), thing("8", kind("a"), code("taken"))), "code")
	right(before)
	require.NoError(t, change(ctx, nil))
	right(map[string]int64{"a": 1, "b": 1, "c": 2})
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		return f.things.DeleteWhere(ctx, tx, docstore.Filter{}, nil)
	}))
	right(nil)
	f.check(t)
}

// newCounted: the documents of an index's values are counted, not counted, and counted again, when there are documents
// already.
func newCounted(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.seed(t)
	byRank := docstore.ByNumber("rank", func(v *Thing) docstore.Value { return docstore.Number(v.Rank) })
	plain := docstore.Grouped(docstore.ByText("name", func(v *Thing) string { return v.Name }), "rank")
	n3, n4 := docstore.Eq("name", docstore.Text("N3")), docstore.Eq("name", docstore.Text("N4"))
	f = s.again(t, f, docstore.Define(thingSchema(1, byRank, docstore.Counted(plain))))
	f.total(t, ctx, n3, 5, 12)
	require.NoError(t, f.change(ctx, "1003", func(v *Thing) { v.Name = "N4" }))
	f.total(t, ctx, n3, 5, 11)
	f = s.again(t, f, docstore.Define(thingSchema(1, byRank, plain)))
	require.NoError(t, f.change(ctx, "1013", func(v *Thing) { v.Name = "N4" }))
	f.total(t, ctx, n4, 100, 14)
	f = s.again(t, f, docstore.Define(thingSchema(1, byRank, docstore.Counted(plain))))
	f.total(t, ctx, n4, 5, 14)
	f.total(t, ctx, docstore.Or(n3, n4), 5, 24)
	f.check(t)
}

// newFacet: an index becomes a facet, a plain index, and a facet again, when there are documents already.
func newFacet(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.seed(t)
	byRank := docstore.ByNumber("rank", func(v *Thing) docstore.Value { return docstore.Number(v.Rank) })
	facets := func(revision int, facet docstore.Index[Thing]) *docstore.Collection[Thing] {
		return docstore.Define(thingSchema(revision, byRank, facet))
	}
	plain := docstore.ByText("name", func(v *Thing) string { return v.Name })
	f = s.again(t, f, facets(1, docstore.Facet(plain, "rank")))
	f.check(t)
	f.total(t, ctx, docstore.Eq("name", docstore.Text("N3")), 5, 12)
	n3 := f.ids(t, ctx, docstore.Eq("name", docstore.Text("N3")), desc("rank"))
	require.Equal(t, []string{"1113", "1103"}, n3[:2])
	require.NoError(t, f.change(ctx, "1003", func(v *Thing) { v.Name = "N4" }))
	f = s.again(t, f, facets(1, plain))
	f.check(t)
	require.NoError(t, f.change(ctx, "1013", func(v *Thing) { v.Name = "N4" }))
	f = s.again(t, f, facets(2, docstore.Facet(plain, "rank")))
	f.check(t)
	f.total(t, ctx, docstore.Eq("name", docstore.Text("N4")), 5, 14)
	require.NoError(t, f.delete(ctx, "1013"))
	f.total(t, ctx, docstore.Eq("name", docstore.Text("N4")), 5, 13)
	f.check(t)
}

// knownParts: lists are the same with parts that are marked as Known and without them.
func knownParts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for i := range 40 {
		f.insert(t, ctx, thing(docID(i), name(fmt.Sprintf("n%02d", i)), rank(int64(i*i%17)),
			words(fmt.Sprintf("n%d", i/10), fmt.Sprint("w", i%3))))
	}
	word := docstore.Eq("words", docstore.Text("n1"))
	either := docstore.Or(word, docstore.Eq("words", docstore.Text("w1")))
	for plain, known := range map[*docstore.Filter]docstore.Filter{
		&word: docstore.And(word, docstore.Known(docstore.From("name", docstore.Text("n1")))),
		&either: docstore.Or(word, docstore.Eq("words", docstore.Text("w1")),
			docstore.Known(docstore.Prefix("name", "n1"))),
	} {
		for _, order := range []docstore.Order{asc("name"), desc("name"), asc("rank"), desc("rank")} {
			want := f.ids(t, ctx, *plain, order)
			require.NotEmpty(t, want)
			require.Equal(t, want, f.ids(t, ctx, known, order))
			require.Equal(t, want, f.walk(t, ctx, docstore.Query{Filter: known, Sort: []docstore.Order{order},
				Limit: 3}))
		}
		f.total(t, ctx, known, 3, int64(len(f.ids(t, ctx, *plain))))
	}
}
