package docstoretest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var orderCases = []testCase{
	{name: "order/texts by bytes", run: textOrder},
	{name: "order/numbers by value", run: numberOrder},
	{name: "order/absent values come first", run: absentOrder},
	{name: "order/ties by id", run: tieOrder},
	{name: "order/many keys, each direction", run: multiKeyOrder},
	{name: "order/combined with every filter", run: orderWithFilters},
}

func textOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	// U+FFFD sorts before U+10000 by bytes and by code points, but after it by UTF-16 code units.
	texts := []string{"b", "B", "a", "ab", "a b", "é", "z", "zz", "京", "\ufffd", "\U00010000", "\U0010ffff", "10", "9"}
	for i, s := range texts {
		f.insert(t, ctx, thing(docID(i), name(s)))
	}
	slices.Sort(texts)
	require.Equal(t, texts, f.names(t, ctx, asc("name")))
	slices.Reverse(texts)
	require.Equal(t, texts, f.names(t, ctx, desc("name")))
}

func numberOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	numbers := []int64{0, 1, -1, 9, 10, 1 << 53, 1<<53 + 1, 1<<53 + 2, math.MaxInt64, math.MaxInt64 - 1,
		math.MinInt64 + 1, math.MinInt64 + 2}
	for i, n := range numbers {
		f.insert(t, ctx, thing(docID(i), rank(n), name(fmt.Sprint(n))))
	}
	slices.Sort(numbers)
	var want []string
	for _, n := range numbers {
		want = append(want, fmt.Sprint(n))
	}
	require.Equal(t, want, f.names(t, ctx, asc("rank")))
	for _, n := range numbers {
		ids := f.ids(t, ctx, docstore.Eq("rank", docstore.Number(n)))
		require.Len(t, ids, 1)
		require.Equal(t, n, f.get(t, ctx, ids[0]).Rank, "64 bits are kept")
	}
}

func absentOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("a", name("x"), seen(epoch)),
		thing("b"),
		thing("c", name("w"), seen(epoch.Add(-60*365*24*time.Hour))), // before 1970: a negative number
		thing("d"))
	require.Equal(t, []string{"b", "d", "c", "a"}, f.ids(t, ctx, docstore.Filter{}, asc("seen")))
	require.Equal(t, []string{"a", "c", "d", "b"}, f.ids(t, ctx, docstore.Filter{}, desc("seen")))
	require.Equal(t, []string{"b", "d", "c", "a"}, f.ids(t, ctx, docstore.Filter{}, asc("name")))
	require.Equal(t, []string{"a", "c", "d", "b"}, f.ids(t, ctx, docstore.Filter{}, desc("name")))

	require.Equal(t, []string{"b", "d"}, f.ids(t, ctx, docstore.Eq("name", docstore.Text(""))),
		"absent values can be selected")
	require.Equal(t, []string{"b", "d"}, f.ids(t, ctx, docstore.Eq("seen", docstore.NoNumber)))
	require.Equal(t, []string{"b", "c", "d"}, f.ids(t, ctx, docstore.Until("seen", docstore.Moment(epoch))),
		"absent is less than any")
	require.Empty(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text(""))), "lists contain no empty text")
}

func tieOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	ids := []string{"3", "1", "20", "10", "2"}
	for _, id := range ids {
		f.insert(t, ctx, thing(id, name("same"), rank(7)))
	}
	slices.Sort(ids)
	require.Equal(t, ids, f.ids(t, ctx, docstore.Filter{}))
	require.Equal(t, ids, f.ids(t, ctx, docstore.Filter{}, asc("name")))
	slices.Reverse(ids)
	require.Equal(t, ids, f.ids(t, ctx, docstore.Filter{}, desc("rank")), "the id follows the last key's direction")
	require.Equal(t, ids, f.ids(t, ctx, docstore.Filter{}, asc("name"), desc("rank")))
}

func multiKeyOrder(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	all := mixedThings(60)
	f.insert(t, ctx, all...)
	for _, sort := range mixedOrders {
		want := sortedIDs(all, sort)
		require.Equal(t, want, f.ids(t, ctx, docstore.Filter{}, sort...), "%v", sort)
		for _, limit := range []int{1, 7, 59, 60} {
			require.Equal(t, want, f.walk(t, ctx, docstore.Query{Sort: sort, Limit: limit}), "%v by %d", sort, limit)
		}
	}
}

func orderWithFilters(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	all := mixedThings(60)
	f.insert(t, ctx, all...)
	for _, filter := range mixedFilters {
		kept := slices.DeleteFunc(slices.Clone(all), func(v *Thing) bool { return !matches(filter, v) })
		for _, sort := range mixedOrders {
			want := sortedIDs(kept, sort)
			require.Equal(t, want, f.ids(t, ctx, filter, sort...), "%+v %v", filter, sort)
			require.Equal(t, want, f.walk(t, ctx, docstore.Query{Filter: filter, Sort: sort, Limit: 4}), "%+v %v",
				filter, sort)
		}
	}
}

// mixedThings have ties and absent values in every index.
func mixedThings(n int) []*Thing {
	var all []*Thing
	for i := range n {
		v := thing(docID(i*7%n), rank(int64(i%4)), kind(strings.Repeat("k", i%3)),
			name([]string{"", "a", "ab", "b", "京"}[i%5]))
		if i%3 > 0 {
			v.Seen = epoch.Add(time.Duration(i%6) * time.Hour)
		}
		for w := range i % 4 {
			v.Words = append(v.Words, []string{"red", "reed", "blue"}[(i+w)%3])
		}
		all = append(all, v)
	}
	return all
}

var mixedOrders = [][]docstore.Order{
	nil,
	{asc("name")},
	{desc("seen")},
	{asc("rank")},
	{desc("rank")},
	{asc("name"), asc("rank")},
	{desc("name"), desc("rank")},
	{asc("kind"), desc("seen")},
	{desc("kind"), asc("name"), desc("rank")},
}

var mixedFilters = []docstore.Filter{
	docstore.Eq("kind", docstore.Text("k")),
	docstore.In("name", docstore.Text("a"), docstore.Text("京"), docstore.Text("a")),
	docstore.Prefix("name", "a"),
	docstore.From("seen", docstore.Moment(epoch.Add(2*time.Hour))),
	docstore.Eq("words", docstore.Text("red")),
	docstore.Prefix("words", "re"),
	docstore.And(docstore.Prefix("words", "re"), docstore.Eq("words", docstore.Text("blue")),
		docstore.From("rank", docstore.Number(2))),
	docstore.Eq("group", docstore.Text("k")),
	docstore.In("group", docstore.Text(""), docstore.Text("k"), docstore.Text("other")),
	docstore.And(docstore.In("group", docstore.Text("k"), docstore.Text("kk")),
		docstore.Range("rank", docstore.Number(1), docstore.Number(3))),
	docstore.And(docstore.Eq("group", docstore.Text("kk")), docstore.Prefix("words", "re")),
	docstore.Or(docstore.Eq("kind", docstore.Text("kk")), docstore.Prefix("words", "b"), docstore.ID("1001", "1002")),
}

// sortedIDs computes the order in which an engine must answer, in the simplest way.
func sortedIDs(things []*Thing, sort []docstore.Order) []string {
	sorted := slices.Clone(things)
	slices.SortFunc(sorted, func(a, b *Thing) int {
		down := false
		for _, o := range sort {
			down = o.Desc
			if c := compareValues(keyOf(a, o.Index), keyOf(b, o.Index)); c != 0 {
				return flip(c, down)
			}
		}
		return flip(strings.Compare(a.ID, b.ID), down)
	})
	ids := []string{}
	for _, v := range sorted {
		ids = append(ids, v.ID)
	}
	return ids
}

func flip(c int, down bool) int {
	if down {
		return -c
	}
	return c
}

func compareValues(a, b docstore.Value) int {
	return cmp.Or(strings.Compare(a.Text, b.Text), cmp.Compare(a.Num, b.Num))
}
