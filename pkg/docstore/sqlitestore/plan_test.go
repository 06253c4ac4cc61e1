package sqlitestore_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

// fullScan matches a plan's step that reads a whole table or index. A subquery is a step of its own.
var fullScan = regexp.MustCompile(`^SCAN (c_|"c_|counters|meta)`)

// TestEveryQueryUsesAnIndex asks SQLite how it runs each statement that a wide choice of queries makes.
func TestEveryQueryUsesAnIndex(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	var all []*note
	for i := range 400 {
		all = append(all, newNote(i))
	}
	require.NoError(t, f.insert(ctx, all...))
	text := docstore.Text
	eq := func(index, s string) docstore.Filter { return docstore.Eq(index, text(s)) }
	filters := []docstore.Filter{
		{}, docstore.ID("n0001", "n0002"),
		eq("title", "title 1"), docstore.In("title", text("title 1"), text("title 2")), docstore.Prefix("title", "title"), docstore.From("created", docstore.Number(0)),
		eq("code", "code1"), eq("keys", "k1"), docstore.Prefix("keys", "k1"),
		eq("words", "all"), eq("words", "rare7"), docstore.Prefix("words", "w"), docstore.In("words", text("w1"), text("w2")),
		docstore.And(eq("words", "all"), eq("words", "rare7")), docstore.And(eq("words", "all"), docstore.Prefix("words", "w")),
		docstore.And(eq("title", "title 1"), docstore.Prefix("words", "w1"), docstore.Until("created", docstore.Number(1<<60))),
		docstore.Or(eq("title", "title 1"), eq("words", "rare7"), docstore.ID("n0003")), docstore.Or(eq("words", "all"), eq("title", "title 1")),
	}
	sorts := [][]docstore.Order{
		nil, {{Index: "title"}}, {{Index: "title", Desc: true}}, {{Index: "created", Desc: true}},
		{{Index: "title"}, {Index: "created"}}, {{Index: "title"}, {Index: "created", Desc: true}},
	}
	f.spy.seen = nil
	for _, filter := range filters {
		for _, sort := range sorts {
			q := docstore.Query{Filter: filter, Sort: sort, Limit: 1, Count: true}
			page, err := notes.Page(ctx, f.Store, q)
			require.NoError(t, err)
			if q.After = page.Next; page.Next != "" {
				_, err = notes.Page(ctx, f.Store, q)
				require.NoError(t, err)
			}
		}
	}
	_, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (int, error) {
		n, err := notes.Load(ctx, tx, "n0001")
		if err != nil {
			return 0, err
		}
		n.Title, n.Words, n.Keys = "changed", []string{"changed"}, nil
		if _, err := notes.Replace(ctx, tx, n); err != nil {
			return 0, err
		}
		return 0, notes.Delete(ctx, tx, n)
	})
	require.NoError(t, err)
	_, err = f.engine.Due(ctx, notes.Def(), 1, 1)
	require.NoError(t, err)

	conn, err := sqlitestore.Default(ctx, f.path)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	explained := 0
	for _, sql := range distinctStatements(f.spy.seen) {
		require.NoError(t, conn.Query(ctx, "EXPLAIN QUERY PLAN "+sql, nil, func(c sqlitestore.Columns) error {
			explained++
			require.NotRegexp(t, fullScan, string(c.Bytes(3)), sql)
			return nil
		}))
	}
	require.Greater(t, explained, 100, "this test must look at something")
}

var rowStatement = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)`)

func distinctStatements(seen []string) []string {
	var list []string
	known := map[string]bool{}
	for _, sql := range seen {
		if !known[sql] && rowStatement.MatchString(sql) {
			known[sql] = true
			list = append(list, sql)
		}
	}
	return list
}

// TestPagesInIndexOrder: pages by one key, or of an index's own range, are never sorted, so a page costs the same however deep.
func TestPagesInIndexOrder(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	var all []*note
	for i := range 50 {
		all = append(all, newNote(i))
	}
	require.NoError(t, f.insert(ctx, all...))
	for _, q := range []docstore.Query{
		{}, {Sort: []docstore.Order{{Index: "title"}}}, {Sort: []docstore.Order{{Index: "created", Desc: true}}},
		{Filter: docstore.Prefix("title", "title"), Sort: []docstore.Order{{Index: "title", Desc: true}}},
		{Filter: docstore.Eq("title", docstore.Text("title 1"))},
		{Filter: docstore.And(docstore.From("created", docstore.Number(5)), docstore.Until("created", docstore.Number(1<<60))), Sort: []docstore.Order{{Index: "created"}}},
	} {
		f.spy.seen = nil
		q.Limit = 3
		page, err := notes.Page(ctx, f.Store, q)
		require.NoError(t, err)
		require.NotEmpty(t, page.Next)
		q.After = page.Next
		_, err = notes.Page(ctx, f.Store, q)
		require.NoError(t, err)

		conn, err := sqlitestore.Default(ctx, f.path)
		require.NoError(t, err)
		for _, sql := range distinctStatements(f.spy.seen) {
			require.NoError(t, conn.Query(ctx, "EXPLAIN QUERY PLAN "+sql, nil, func(c sqlitestore.Columns) error {
				require.NotContains(t, string(c.Bytes(3)), "TEMP B-TREE", fmt.Sprint(q))
				require.NotRegexp(t, fullScan, string(c.Bytes(3)), sql)
				return nil
			}))
		}
		require.NoError(t, conn.Close())
	}
}
