package docstoretest

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var filterCases = []testCase{
	{name: "filters/ranges", run: ranges},
	{name: "filters/prefixes", run: prefixes},
	{name: "filters/prefixes at the edge of Unicode", run: edgePrefixes},
	{name: "filters/parts", run: parts},
	{name: "filters/from text to text", run: walkTexts},
	{name: "filters/texts without documents", run: bareTexts},
	{name: "filters/a document is found once", run: foundOnce},
	{name: "filters/and, or, nested", run: combinations},
	{name: "filters/nothing", run: emptyFilters},
	{name: "filters/many values", run: manyValues},
	{name: "filters/without an index", run: unindexed},
	{name: "filters/in a transaction", run: filtersInTransaction},
	{name: "filters/counts after every change", run: exactCounts},
}

func ranges(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for i := range 5 {
		f.insert(t, ctx, thing(docID(i), rank(int64(i-2)), seen(epoch.Add(time.Duration(i)*time.Millisecond)),
			name(strings.Repeat("n", i+1))))
	}
	between := func(index string, from, to docstore.Value) docstore.Filter {
		return docstore.And(docstore.From(index, from), docstore.Until(index, to))
	}
	require.Equal(t, []string{"1001", "1002"}, f.ids(t, ctx, between("rank", docstore.Number(-1), docstore.Number(1))),
		"the end of a range is not part of it")
	require.Equal(t, []string{"1002", "1003", "1004"},
		f.ids(t, ctx, docstore.From("seen", docstore.Moment(epoch.Add(2*time.Millisecond)))), "to the millisecond")
	require.Equal(t, []string{"1000", "1001"}, f.ids(t, ctx, docstore.Until("name", docstore.Text("nnn"))))
	require.Empty(t, f.ids(t, ctx, between("rank", docstore.Number(1), docstore.Number(1))))
	require.Empty(t, f.ids(t, ctx, between("rank", docstore.Number(2), docstore.Number(-2))))
	require.Len(t, f.ids(t, ctx, between("rank", docstore.NoNumber, docstore.Number(math.MaxInt64))), 5)
	both := docstore.Filter{Op: docstore.OpRange, Index: "rank", From: &docstore.Value{Num: -1},
		To: &docstore.Value{Num: 2}}
	require.Equal(t, []string{"1003", "1002", "1001"}, f.ids(t, ctx, both, desc("rank")))
	require.Len(t, f.ids(t, ctx, docstore.Filter{Op: docstore.OpRange, Index: "rank"}), 5, "no bounds select all")
}

func prefixes(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("1", name("北京大学"), words("北京", "京大", "大学", "北", "京")),
		thing("2", name("北"), words("北")),
		thing("3", name("东京"), words("东京", "东", "京")),
		thing("4", name("Ab"), words("/1/", "/1/2/", "/1/2/3/")),
		thing("5", name("ab"), words("/10/", "/1")))
	for _, c := range []struct {
		index, prefix string
		want          []string
	}{
		{"name", "北", []string{"1", "2"}},
		{"name", "北京", []string{"1"}},
		{"name", "A", []string{"4"}},
		{"name", "a", []string{"5"}},
		{"name", "abc", nil},
		{"words", "京", []string{"1", "3"}},
		{"words", "东", []string{"3"}},
		{"words", "/1/", []string{"4"}},
		{"words", "/1", []string{"4", "5"}},
		{"words", "/1/2/3/4", nil},
		{"words", "", []string{"1", "2", "3", "4", "5"}},
	} {
		require.ElementsMatch(t, c.want, f.ids(t, ctx, docstore.Prefix(c.index, c.prefix)), "%s %q", c.index, c.prefix)
	}
}

func edgePrefixes(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const top = "\U0010FFFF"
	f.insert(t, ctx,
		thing("1", name(top), words(top)),
		thing("2", name(top+top), words(top+top)),
		thing("3", name("a"+top), words("a"+top)),
		thing("4", name("a"+top+"z"), words("a"+top+"z")),
		thing("5", name("b"), words("b")),
		thing("6", name("a\uffff"), words("a\uffff")),
		thing("7", name("\u007f"), words("\u007f")),
		thing("8", name("\u0080"), words("\u0080")),
		thing("9", name("\ud7ff"), words("\ud7ff")))
	for prefix, want := range map[string][]string{
		top:          {"1", "2"},
		top + top:    {"2"},
		"a" + top:    {"3", "4"},
		"a":          {"3", "4", "6"},
		"a\uffff":    {"6"},
		"\u007f":     {"7"},
		"\ud7ff":     {"9"},
		"b" + top:    {},
		top + "\x7f": {},
	} {
		require.ElementsMatch(t, want, f.ids(t, ctx, docstore.Prefix("name", prefix)), "%q", prefix)
		require.ElementsMatch(t, want, f.ids(t, ctx, docstore.Prefix("words", prefix)), "%q", prefix)
	}
}

// parts: characters that are special in patterns elsewhere match only themselves, and a part may begin at any
// character.
func parts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("1", name("北京大学"), words("x"), kind("%_")),
		thing("2", name("a.b*c?(d)[e]{f}^$|\\"), words("x"), kind("a\nb")),
		thing("3", name("aXbc"), words("x"), kind("a\x00b")),
		thing("4", name("京都"), words("y"), kind("\u00e9")), // no other document has its second byte
		thing("5", name("ABC"), words("y"), kind("\U0010FFFF%")),
		thing("6", words("x")))
	contains := docstore.Contains
	for _, c := range []struct {
		filter docstore.Filter
		want   []string
	}{
		{contains("name", "京"), []string{"1", "4"}},
		{contains("name", "京大"), []string{"1"}},
		{contains("name", "北京大学"), []string{"1"}},
		{contains("name", "北京大学x"), nil},
		{contains("name", "a.b"), []string{"2"}},
		{contains("name", ".*"), nil},
		{contains("name", "(d)[e]{f}^$|\\"), []string{"2"}},
		{contains("name", "^"), []string{"2"}},
		{contains("name", "bc"), []string{"3"}},
		{contains("kind", "%"), []string{"1", "5"}},
		{contains("kind", "_"), []string{"1"}},
		{contains("kind", "\n"), []string{"2"}},
		{contains("kind", "\x00"), []string{"3"}},
		{contains("kind", "\x00b"), []string{"3"}},
		{contains("kind", "\U0010FFFF"), []string{"5"}},
		{contains("name", ""), []string{"1", "2", "3", "4", "5", "6"}},
		{docstore.And(docstore.Eq("words", docstore.Text("x")), contains("name", "京")), []string{"1"}},
		{docstore.And(contains("name", "b"), contains("name", "c"), contains("kind", "a")), []string{"2", "3"}},
		{docstore.Or(contains("name", "都"), contains("kind", "_")), []string{"1", "4"}},
		{docstore.And(docstore.Prefix("words", "x"), docstore.Or(contains("name", "学"), contains("kind", "\n"))),
			[]string{"1", "2"}},
	} {
		require.ElementsMatch(t, c.want, f.ids(t, ctx, c.filter), "%+v", c.filter)
		require.ElementsMatch(t, c.want, f.walk(t, ctx, docstore.Query{Filter: c.filter, Limit: 1}), "%+v", c.filter)
		n, err := f.things.Count(ctx, f.Store, c.filter)
		require.NoError(t, err)
		require.EqualValues(t, len(c.want), n, "%+v", c.filter)
	}
}

func foundOnce(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("a", words("red", "reed", "redder", "red", ""), name("red")),
		thing("b", words("blue"), name("red")),
		thing("c", words("redo", "blue")))
	text := docstore.Text
	for _, c := range []struct {
		filter docstore.Filter
		want   []string
	}{
		{docstore.Prefix("words", "re"), []string{"a", "c"}},
		{docstore.In("words", text("red"), text("reed"), text("red"), text("none")), []string{"a"}},
		{docstore.Or(docstore.Prefix("words", "red"), docstore.Prefix("words", "re"),
			docstore.Eq("words", text("blue"))), []string{"a", "b", "c"}},
		{docstore.Or(docstore.Eq("name", text("red")), docstore.Prefix("words", "re")), []string{"a", "b", "c"}},
		{docstore.And(docstore.Prefix("words", "re"), docstore.Prefix("words", "red")), []string{"a", "c"}},
	} {
		require.Equal(t, c.want, f.ids(t, ctx, c.filter))
		require.Equal(t, c.want, f.walk(t, ctx, docstore.Query{Filter: c.filter, Limit: 1}))
		backwards := slices.Clone(c.want)
		slices.Reverse(backwards)
		require.Equal(t, backwards, f.ids(t, ctx, c.filter, desc("kind")))
	}
}

func combinations(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("1", name("ada"), kind("x"), rank(1), words("red", "blue")),
		thing("2", name("bob"), kind("x"), rank(2), words("red")),
		thing("3", name("ada"), kind("y"), rank(3), words("blue")),
		thing("4", kind("y"), rank(4)))
	eq := func(index, s string) docstore.Filter { return docstore.Eq(index, docstore.Text(s)) }
	and, or := docstore.And, docstore.Or
	for _, c := range []struct {
		filter docstore.Filter
		want   []string
	}{
		{and(eq("words", "red"), eq("words", "blue")), []string{"1"}},
		{and(eq("words", "red"), eq("kind", "x"), docstore.From("rank", docstore.Number(2))), []string{"2"}},
		{or(eq("name", "ada"), eq("kind", "x")), []string{"1", "2", "3"}},
		{and(or(eq("name", "ada"), eq("name", "bob")),
			or(eq("words", "blue"), docstore.From("rank", docstore.Number(4)))), []string{"1", "3"}},
		{or(and(eq("kind", "y"), eq("words", "blue")), and(eq("kind", "x"), eq("name", "bob"))), []string{"2", "3"}},
		{and(docstore.ID("1", "3", "4", "9"), eq("kind", "y")), []string{"3", "4"}},
		{and(docstore.ID("2"), eq("words", "blue")), nil},
		{and(docstore.Filter{}, eq("kind", "x"), docstore.Filter{}), []string{"1", "2"}},
		{or(docstore.Filter{}, eq("kind", "none")), []string{"1", "2", "3", "4"}},
		{docstore.Filter{Op: docstore.OpAnd}, []string{"1", "2", "3", "4"}},
	} {
		require.ElementsMatch(t, c.want, f.ids(t, ctx, c.filter), "%+v", c.filter)
	}
}

func emptyFilters(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w"), name("n")))
	for _, none := range []docstore.Filter{
		docstore.Or(), docstore.ID(), docstore.In("name"), docstore.In("words"),
		docstore.Eq("words", docstore.Text("")),
		docstore.And(docstore.Eq("name", docstore.Text("n")), docstore.Or()),
	} {
		require.Empty(t, f.ids(t, ctx, none), "%+v", none)
	}
	require.Equal(t, []string{"a"}, f.ids(t, ctx, docstore.And()))
}

// manyValues: a filter may have as many values as a batch has items.
func manyValues(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	const n = 999
	var all []*Thing
	var ids []string
	var texts []docstore.Value
	for i := range n {
		id := docID(i)
		all = append(all, thing(id, code(id), words("w"+id)))
		ids, texts = append(ids, id), append(texts, docstore.Text(id), docstore.Text("w"+id))
	}
	f.insert(t, ctx, all...)
	for _, filter := range []docstore.Filter{docstore.ID(ids...), docstore.In("code", texts...),
		docstore.In("words", texts...)} {
		require.Equal(t, ids, f.ids(t, ctx, filter))
	}
	docs, err := f.things.FindMany(ctx, f.Store, ids)
	require.NoError(t, err)
	require.Len(t, docs, n)
}

func unindexed(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for _, q := range []docstore.Query{
		{Filter: docstore.Eq("nothing", docstore.Text("x"))},
		{Filter: docstore.From("words", docstore.Text("x"))},
		{Filter: docstore.Prefix("rank", "x")},
		{Filter: docstore.Contains("rank", "x")},
		{Filter: docstore.Contains("words", "x")},
		{Filter: docstore.And(docstore.Eq("name", docstore.Text("n")), docstore.Eq("props", docstore.Text("x")))},
		{Sort: []docstore.Order{asc("words")}},
		{Sort: []docstore.Order{asc("group")}},
		{Sort: []docstore.Order{asc("image")}},
	} {
		q.Limit = 1
		_, err := f.things.Page(ctx, f.Store, q)
		require.Error(t, err, "%+v", q)
	}
}

func filtersInTransaction(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w"), name("n")), thing("b", words("w"), name("n")))
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		if _, err := f.things.Insert(ctx, tx, thing("c", words("w"), name("n"), code("c"))); err != nil {
			return err
		}
		v, err := f.things.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		v.Words, v.Name = nil, "m"
		if _, err := f.things.Replace(ctx, tx, v); err != nil {
			return err
		}
		for filter, want := range map[string]docstore.Filter{
			"w": docstore.Eq("words", docstore.Text("w")),
			"n": docstore.Eq("name", docstore.Text("n")),
		} {
			page, err := f.things.Page(ctx, tx, docstore.Query{Filter: want, Limit: 10, Count: true})
			if err != nil {
				return err
			}
			require.Len(t, page.Docs, 2, filter)
			require.EqualValues(t, 2, page.Total, filter)
			require.Equal(t, "b", page.Docs[0].ID)
			require.Equal(t, "c", page.Docs[1].ID)
		}
		n, err := f.things.Count(ctx, tx, docstore.Filter{})
		if err != nil {
			return err
		}
		require.EqualValues(t, 3, n, "a transaction counts its own writes")
		return nil
	}))
	f.check(t)
}

func exactCounts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	count := func(want int64, filter docstore.Filter) {
		t.Helper()
		n, err := f.things.Count(ctx, f.Store, filter)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	w := docstore.Eq("words", docstore.Text("w"))
	count(0, docstore.Filter{})
	f.insert(t, ctx, thing("a", words("w")), thing("b"), thing("c", words("w")))
	count(3, docstore.Filter{})
	count(2, w)
	require.NoError(t, f.delete(ctx, "a"))
	count(2, docstore.Filter{})
	count(1, w)
	require.NoError(t, f.change(ctx, "b", func(v *Thing) { v.Words = []string{"w"} }))
	count(2, docstore.Filter{})
	count(2, w)
	_, err := docstore.Write(docstore.WithDryRun(ctx), f.Store, func(tx *docstore.Tx) (int, error) {
		return 0, f.things.DeleteWhere(ctx, tx, docstore.Filter{}, nil)
	})
	require.NoError(t, err)
	count(2, docstore.Filter{})
	count(2, w)
}
