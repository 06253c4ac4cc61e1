package docstoretest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var pagingCases = []testCase{
	{name: "paging/numbers and totals", run: pageNumbers},
	{name: "paging/walks cut at every position while others write", run: walkWhileOthersWrite},
	{name: "paging/after the last row seen is deleted", run: walkPastDeleted},
	{name: "paging/a token of another query", run: foreignToken},
	{name: "paging/from a position outside the filter", run: foreignPosition},
	{name: "paging/after an id", run: afterID},
	{name: "paging/in parts", run: divide},
	{name: "paging/each while others write", run: eachWhileOthersWrite},
}

// walk reads all pages, by token.
func (f *fixture) walk(t *testing.T, ctx context.Context, q docstore.Query) []string {
	t.Helper()
	all := []string{}
	for {
		ids, page := f.page(t, ctx, q)
		require.LessOrEqual(t, len(ids), q.Limit)
		all = append(all, ids...)
		if page.Next == "" {
			return all
		}
		require.Len(t, ids, q.Limit, "only the last page is short")
		q.After = page.Next
	}
}

func (f *fixture) names(t *testing.T, ctx context.Context, sort ...docstore.Order) []string {
	t.Helper()
	_, page := f.page(t, ctx, docstore.Query{Sort: sort, Limit: 1000})
	names := []string{}
	for i := range page.Docs {
		v, err := page.Docs[i].Value()
		require.NoError(t, err)
		names = append(names, v.Name)
	}
	return names
}

func pageNumbers(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	var all []*Thing
	for i := range 23 {
		all = append(all, thing(docID(i), rank(int64(i/3)), words("all", fmt.Sprint("w", i%2))))
	}
	f.insert(t, ctx, all...)
	for _, filter := range []docstore.Filter{{}, docstore.Eq("words", docstore.Text("w1")),
		docstore.From("rank", docstore.Number(2))} {
		want := f.ids(t, ctx, filter, desc("rank"))
		for offset := 0; offset <= len(want)+2; offset++ {
			q := docstore.Query{Filter: filter, Sort: []docstore.Order{desc("rank")}, Limit: 5, Offset: offset,
				Count: true}
			ids, page := f.page(t, ctx, q)
			first, last := min(offset, len(want)), min(offset+5, len(want))
			require.Equal(t, want[first:last], ids, "offset %d", offset)
			require.EqualValues(t, len(want), page.Total, "the total is that of the whole list, even past its end")
			require.Equal(t, last < len(want), page.Next != "", "there is a token if more follows")
		}
	}
	_, page := f.page(t, ctx, docstore.Query{Limit: 5})
	require.EqualValues(t, -1, page.Total, "no count unless requested")
}

// walkWhileOthersWrite: a document that exists from the beginning of the walk to its end is seen exactly once, and no
// document is seen twice.
func walkWhileOthersWrite(t *testing.T, s *suite) {
	for _, sort := range [][]docstore.Order{nil, {asc("name")}, {desc("name")}, {desc("rank"), asc("name")}} {
		t.Run(fmt.Sprint(sort), func(t *testing.T) {
			t.Parallel()
			f, ctx := s.open(t), in(t, "t1")
			const n = 9
			for limit := 1; limit <= n; limit++ {
				require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
					return f.things.DeleteWhere(ctx, tx, docstore.Filter{}, nil)
				}))
				for i := range n {
					f.insert(t, ctx, thing(docID(i*10), name(fmt.Sprint(i/2)), rank(int64(i%3))))
				}
				kept := map[string]bool{"1010": true, "1030": true, "1040": true, "1060": true, "1070": true}
				deleted := []string{"1000", "1080", "1020", "1050"}
				seen := map[string]int{}
				q := docstore.Query{Sort: sort, Limit: limit}
				for cut := 0; ; cut++ {
					ids, page := f.page(t, ctx, q)
					for _, id := range ids {
						seen[id]++
					}
					if page.Next == "" {
						break
					}
					q.After = page.Next
					if cut < len(deleted) {
						require.NoError(t, f.delete(ctx, deleted[cut]))
						id := docID(cut*10 + 5)
						f.insert(t, ctx, thing(id, name(fmt.Sprint(4-cut)), rank(int64(cut))))
					}
				}
				for id, times := range seen {
					require.Equal(t, 1, times, "%s repeated, by %d", id, limit)
				}
				for id := range kept {
					require.Equal(t, 1, seen[id], "%s skipped, by %d", id, limit)
				}
			}
		})
	}
}

func walkPastDeleted(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for i := range 6 {
		f.insert(t, ctx, thing(docID(i), name("same")))
	}
	q := docstore.Query{Sort: []docstore.Order{asc("name")}, Limit: 2}
	ids, page := f.page(t, ctx, q)
	require.Equal(t, []string{"1000", "1001"}, ids)
	require.NoError(t, f.delete(ctx, "1001"))
	require.NoError(t, f.delete(ctx, "1002"))
	q.After = page.Next
	require.Equal(t, []string{"1003", "1004", "1005"}, f.walk(t, ctx, q))
}

func foreignToken(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", name("n")), thing("b", name("n")), thing("c", name("n")))
	q := docstore.Query{Filter: docstore.Eq("name", docstore.Text("n")), Sort: []docstore.Order{asc("rank")}, Limit: 1}
	_, page := f.page(t, ctx, q)
	q.After = page.Next

	otherFilter, otherSort, otherDirection, noSort, garbage := q, q, q, q, q
	otherFilter.Filter = docstore.Eq("name", docstore.Text("m"))
	otherSort.Sort = []docstore.Order{asc("seen")}
	otherDirection.Sort = []docstore.Order{desc("rank")}
	noSort.Sort = nil
	garbage.After = "?" + page.Next
	for _, bad := range []docstore.Query{otherFilter, otherSort, otherDirection, noSort, garbage} {
		_, err := f.things.Page(ctx, f.Store, bad)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), "%+v", bad)
	}
	ids, _ := f.page(t, ctx, q)
	require.Equal(t, []string{"b"}, ids)
}

// foreignPosition: a token is not signed, so a forged one may name any position. It still shows only what the filter
// selects.
func foreignPosition(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("1", name("a")), thing("2", name("ma")), thing("3", name("mb")), thing("4", name("z")))
	for _, c := range []struct {
		order docstore.Order
		at    string
		want  []string
	}{
		{asc("name"), "", []string{"2", "3"}},
		{asc("name"), "b", []string{"2", "3"}},
		{asc("name"), "ma", []string{"3"}},
		{asc("name"), "n", nil},
		{desc("name"), "zz", []string{"3", "2"}},
		{desc("name"), "n", []string{"3", "2"}},
		{desc("name"), "mb", []string{"2"}},
		{desc("name"), "a", nil},
	} {
		find := docstore.Find{Filter: docstore.Prefix("name", "m"), Sort: []docstore.Order{c.order}, Limit: 10}
		find.After = &docstore.Position{Values: []docstore.Value{docstore.Text(c.at)},
			ID: map[bool]string{true: "0", false: "9"}[c.order.Desc]}
		rows, err := f.engine.Find(ctx, f.things.Def(), "t1", find)
		require.NoError(t, err)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		require.Equal(t, c.want, ids, "%+v", c)
	}
}

// afterID: a reader that keeps the id of the last document that it saw continues after it, even if it is deleted.
func afterID(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("1001"), thing("1003"), thing("1005"))
	for after, want := range map[string][]string{
		"0": {"1001", "1003", "1005"}, "1003": {"1005"}, "1004": {"1005"}, "1005": {},
	} {
		ids, _ := f.page(t, ctx, docstore.Query{AfterID: after, Limit: 10})
		require.Equal(t, want, ids, after)
	}
	ids, page := f.page(t, ctx, docstore.Query{AfterID: "1001", Limit: 1})
	require.Equal(t, []string{"1003"}, ids)
	ids, _ = f.page(t, ctx, docstore.Query{After: page.Next, Limit: 1})
	require.Equal(t, []string{"1005"}, ids)
}

// divide: readers of the parts together read each document once.
func divide(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, in(t, "t2"), thing("5"))
	ids, err := f.things.Divide(ctx, f.Store, 4, 1)
	require.NoError(t, err)
	require.Empty(t, ids, "no documents")
	var all []*Thing
	for i := range 10 {
		all = append(all, thing(docID(i)))
	}
	f.insert(t, ctx, all...)
	for _, c := range []struct {
		parts int
		least int64
		want  []string
	}{
		{4, 1, []string{docID(1), docID(3), docID(5)}},
		{4, 4, []string{docID(3), docID(7)}},
		{4, 10, nil},
		{1, 1, nil},
		{20, 1, []string{docID(0), docID(1), docID(2), docID(3), docID(4), docID(5), docID(6), docID(7), docID(8)}},
	} {
		ids, err := f.things.Divide(ctx, f.Store, c.parts, c.least)
		require.NoError(t, err)
		require.Equal(t, c.want, ids, "%d parts of at least %d", c.parts, c.least)
		var got []string
		for _, after := range append([]string{""}, ids...) {
			part, _ := f.page(t, ctx, docstore.Query{AfterID: after, Limit: 20})
			for _, id := range part {
				got = append(got, id)
				if slices.Contains(ids, id) {
					break
				}
			}
		}
		require.Len(t, got, 10)
		require.Len(t, slices.Compact(got), 10, "in the order of ids, each once")
	}
}

func eachWhileOthersWrite(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const n = 700 // more than one of the pages that Each reads
	var all []*Thing
	for i := range n {
		all = append(all, thing(docID(i), words("w")))
	}
	f.insert(t, ctx, all...)
	var got []string
	err := f.things.Each(ctx, f.Store, docstore.Eq("words", docstore.Text("w")), func(d docstore.Doc[Thing]) error {
		got = append(got, d.ID)
		if i := len(got); i%100 == 1 {
			if err := f.delete(ctx, d.ID); err != nil { // delete a document after it was seen
				return err
			}
			return f.tryInsert(ctx, thing(fmt.Sprintf("e%03d", i), words("w"))) // insert one at the end
		}
		return nil
	})
	require.NoError(t, err)
	require.True(t, slices.IsSorted(got))
	require.Equal(t, len(got), len(slices.Compact(slices.Clone(got))))
	for _, v := range all {
		require.Contains(t, got, v.ID)
	}
	stop := fmt.Errorf("stop")
	calls := 0
	err = f.things.Each(ctx, f.Store, docstore.Filter{}, func(docstore.Doc[Thing]) error { calls++; return stop })
	require.ErrorIs(t, err, stop)
	require.Equal(t, 1, calls)
}
