package sqlitestore_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

// fullScan matches a step of a plan that reads a whole table or index. A subquery is a step of its own.
var fullScan = regexp.MustCompile(`^SCAN (c_|"c_|counters|meta)`)

// TestEveryQueryUsesAnIndex asks SQLite for the plan of each statement of many different queries.
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
		{}, docstore.ID("10001", "10002"),
		eq("title", "title 1"), docstore.In("title", text("title 1"), text("title 2")),
		docstore.Prefix("title", "title"), docstore.From("created", docstore.Number(0)),
		eq("code", "code1"), eq("keys", "k1"), docstore.Prefix("keys", "k1"),
		eq("words", "all"), eq("words", "rare7"), docstore.Prefix("words", "w"),
		docstore.In("words", text("w1"), text("w2")),
		docstore.And(eq("words", "all"), eq("words", "rare7")),
		docstore.And(eq("words", "all"), docstore.Prefix("words", "w")),
		docstore.And(eq("title", "title 1"), docstore.Prefix("words", "w1"),
			docstore.Until("created", docstore.Number(1<<60))),
		docstore.Or(eq("title", "title 1"), eq("words", "rare7"), docstore.ID("10003")),
		docstore.Or(eq("words", "all"), eq("title", "title 1")),
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
		n, err := notes.Load(ctx, tx, "10001")
		if err != nil {
			return 0, err
		}
		n.Title, n.Words, n.Keys = "changed", []string{"changed"}, nil
		if _, err := notes.Replace(ctx, tx, n); err != nil {
			return 0, err
		}
		_, err = notes.Delete(ctx, tx, n)
		return 0, err
	})
	require.NoError(t, err)
	_, err = f.engine.Due(ctx, notes.Def(), 1, 1)
	require.NoError(t, err)
	_, err = f.engine.NextDue(ctx, notes.Def())
	require.NoError(t, err)
	_, err = f.engine.NextTenant(ctx, notes.Def(), "t")
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
	require.Greater(t, explained, 100, "this test must find statements")
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

// TestWays: the plan of each kind of query. SQLite starts to read at a page's position, so that a page costs the same
// at any depth, and it sorts only for orders of several keys.
func TestWays(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	var all []*note
	for i := range 300 {
		all = append(all, newNote(i))
	}
	require.NoError(t, f.insert(ctx, all...))
	between := docstore.And(docstore.From("created", docstore.Number(5)),
		docstore.Until("created", docstore.Number(1<<60)))
	asc := func(index string) docstore.Order { return docstore.Order{Index: index} }
	desc := func(index string) docstore.Order { return docstore.Order{Index: index, Desc: true} }
	for _, c := range []struct {
		name    string
		filter  docstore.Filter
		sort    []docstore.Order
		page    string // how the table is read for a page
		next    string // how it is read for the page after that
		sorting bool
	}{
		{"all", docstore.Filter{}, nil, `c_notes# (tenant=?)`, `c_notes# (tenant=? AND id>?)`, false},
		{"by a text", docstore.Filter{}, []docstore.Order{asc("title")}, `c_notes#title (tenant=?)`,
			`c_notes#title (tenant=? AND (k_title,id)>(?,?))`, false},
		{"backwards", docstore.Filter{}, []docstore.Order{desc("created")}, `c_notes#created (tenant=?)`,
			`c_notes#created (tenant=? AND (k_created,id)<(?,?))`, false},
		{"a prefix in its order", docstore.Prefix("title", "title"), []docstore.Order{asc("title")},
			`c_notes#title (tenant=? AND k_title>? AND k_title<?)`,
			`c_notes#title (tenant=? AND (k_title,id)>(?,?) AND k_title<?)`, false},
		{"a range in its order, backwards", between, []docstore.Order{desc("created")},
			`c_notes#created (tenant=? AND k_created>? AND k_created<?)`,
			`c_notes#created (tenant=? AND k_created>? AND (k_created,id)<(?,?))`, false},
		{"a value by id", docstore.Eq("title", docstore.Text("title 1")), nil, `c_notes#title (tenant=? AND k_title=?)`,
			`c_notes#title (tenant=? AND k_title=? AND id>?)`, false},
		{"a group in its order", docstore.Eq("shelf", docstore.Text("1")), []docstore.Order{desc("created")},
			`c_notes#shelf (tenant=? AND k_shelf=?)`,
			`c_notes#shelf (tenant=? AND k_shelf=? AND (k_created,id)<(?,?))`, false},
		{"groups in a range of their order", docstore.And(between,
			docstore.In("shelf", docstore.Text("0"), docstore.Text("1"), docstore.Text("2"))),
			[]docstore.Order{asc("created")},
			`COVERING INDEX c_notes#shelf (tenant=? AND k_shelf=? AND k_created>? AND k_created<?)`,
			`COVERING INDEX c_notes#shelf (tenant=? AND k_shelf=? AND (k_created,id)>(?,?) AND k_created<?)`, false},
		{"two directions", docstore.Filter{}, []docstore.Order{asc("title"), desc("created")},
			`c_notes#title (tenant=?)`, `c_notes#title (tenant=? AND k_title>?)`, true},
		{"a common word", docstore.Eq("words", docstore.Text("all")), []docstore.Order{asc("title")},
			`COVERING INDEX c_notes#title (tenant=?)`, `COVERING INDEX c_notes#title (tenant=? AND (k_title,id)>(?,?))`,
			false},
		{"a rare word", docstore.Prefix("words", "rare29"), []docstore.Order{asc("title")},
			`INTEGER PRIMARY KEY (rowid=?)`, `INTEGER PRIMARY KEY (rowid=?)`, false},
		{"a rare and a common word", docstore.And(docstore.Eq("words", docstore.Text("all")),
			docstore.Prefix("words", "rare29")), nil, `INTEGER PRIMARY KEY (rowid=?)`, `INTEGER PRIMARY KEY (rowid=?)`,
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := docstore.Query{Filter: c.filter, Sort: c.sort, Limit: 3}
			for _, want := range []string{c.page, c.next} {
				f.spy.seen = nil
				page, err := notes.Page(ctx, f.Store, q)
				require.NoError(t, err)
				require.NotEmpty(t, page.Next)
				q.After = page.Next
				ways, sorting := f.ways(t)
				require.Contains(t, ways, want)
				require.Equal(t, c.sorting, sorting)
			}
		})
	}
}

// ways explains the recorded statements that find documents.
func (f *fixture) ways(t *testing.T) (ways []string, sorting bool) {
	t.Helper()
	conn, err := sqlitestore.Default(t.Context(), f.path)
	require.NoError(t, err)
	for _, sql := range distinctStatements(f.spy.seen) {
		if !strings.Contains(sql, "ORDER BY") && !strings.Contains(sql, "NOT INDEXED") {
			continue
		}
		require.NoError(t, conn.Query(t.Context(), "EXPLAIN QUERY PLAN "+sql, nil, func(c sqlitestore.Columns) error {
			detail := string(c.Bytes(3))
			if way, ok := strings.CutPrefix(detail, "SEARCH c_notes USING "); ok {
				ways = append(ways, strings.TrimPrefix(way, "INDEX "))
			}
			sorting = sorting || strings.Contains(detail, "TEMP B-TREE")
			return nil
		}))
	}
	require.NoError(t, conn.Close())
	return ways, sorting
}

// TestTextsReadNoDocuments: texts in the order of their own index are read from that index alone; with a filter by
// another index, columns are read, but no documents.
func TestTextsReadNoDocuments(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	require.NoError(t, f.insert(ctx, newNote(1), newNote(2), newNote(3)))
	for _, c := range []struct {
		filter docstore.Filter
		way    string // of statements with an order
	}{
		{docstore.Filter{}, "COVERING INDEX c_notes#title (tenant=?)"},
		{docstore.Prefix("title", "title"), "COVERING INDEX c_notes#title (tenant=? AND k_title>? AND k_title<?)"},
		{docstore.In("code", docstore.Text("code1"), docstore.Text("code2")), "c_notes#code (tenant=? AND k_code=?)"},
	} {
		f.spy.seen = nil
		texts, err := notes.Texts(ctx, f.Store, "title", c.filter, 3)
		require.NoError(t, err)
		require.NotEmpty(t, texts)
		ways, _ := f.ways(t)
		require.Equal(t, []string{c.way}, ways)
		for _, sql := range f.spy.seen {
			require.NotContains(t, sql, "doc")
		}
	}
	f.spy.seen = nil
	texts, err := notes.Texts(ctx, f.Store, "title", docstore.ID(newNote(1).ID, "17"), 3)
	require.NoError(t, err)
	require.Len(t, texts, 1)
	require.NotContains(t, strings.Join(f.spy.seen, " "), "doc")
}

// TestRowsByID: any number of ids leads directly to their rows. Without INDEXED BY, SQLite would walk the tenant's
// entries of an index.
func TestRowsByID(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	var ids []string
	for i := range 300 {
		require.NoError(t, f.insert(ctx, newNote(i)))
		ids = append(ids, newNote(i).ID)
	}
	for _, n := range []int{1, 2, 100, 300} {
		f.spy.seen = nil
		docs, err := notes.FindMany(ctx, f.Store, ids[:n])
		require.NoError(t, err)
		require.Len(t, docs, n)
		ways, _ := f.ways(t)
		require.NotEmpty(t, ways)
		for _, way := range ways {
			require.Equal(t, "INTEGER PRIMARY KEY (rowid=?)", way)
		}
	}
}
