package mongostore

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func requireJSON(t *testing.T, want string, d bson.D) {
	t.Helper()
	got, err := bson.MarshalExtJSON(d, true, false)
	require.NoError(t, err)
	require.JSONEq(t, want, string(got))
}

func TestSelection(t *testing.T) {
	t.Parallel()
	text, number := docstore.Text, docstore.Number
	for name, c := range map[string]struct {
		filter docstore.Filter
		want   string
	}{
		"all":      {docstore.Filter{}, `{"_id": {"$gte": "t1/", "$lt": "t10"}}`},
		"ids":      {docstore.ID("a", "b"), `{"tenant_id": "t1", "_id": {"$in": ["t1/a", "t1/b"]}}`},
		"no ids":   {docstore.ID(), `{"tenant_id": "t1", "_id": {"$in": []}}`},
		"equal":    {docstore.Eq("name", text("ada")), `{"tenant_id": "t1", "_ix.name": "ada"}`},
		"absent":   {docstore.Eq("name", text("")), `{"tenant_id": "t1", "_ix.name": ""}`},
		"operator": {docstore.Eq("name", text("$gt")), `{"tenant_id": "t1", "_ix.name": "$gt"}`},
		"number":   {docstore.Eq("rank", number(0)), `{"tenant_id": "t1", "_ix.rank": {"$numberLong": "0"}}`},
		"no number": {docstore.Eq("rank", docstore.NoNumber),
			`{"tenant_id": "t1", "_ix.rank": {"$numberLong": "-9223372036854775808"}}`},
		"in": {docstore.In("words", text("a"), text("b")),
			`{"tenant_id": "t1", "_ix.words": {"$in": ["a", "b"]}}`},
		"in nothing": {docstore.In("words"), `{"tenant_id": "t1", "_ix.words": {"$in": []}}`},
		"from": {docstore.From("rank", number(3)),
			`{"tenant_id": "t1", "_ix.rank": {"$gte": {"$numberLong": "3"}}}`},
		"until":     {docstore.Until("name", text("m")), `{"tenant_id": "t1", "_ix.name": {"$lt": "m"}}`},
		"unbounded": {docstore.Filter{Op: docstore.OpRange, Index: "rank"}, `{"tenant_id": "t1"}`},
		"prefix":    {docstore.Prefix("name", "京"), `{"tenant_id": "t1", "_ix.name": {"$gte": "京", "$lt": "亭"}}`},
		"a part": {docstore.Contains("name", "a.b\x00"),
			`{"tenant_id": "t1", "_ix.name": {"$regex": "a\\.b\\x00"}}`},
		"prefix in a list": {docstore.Prefix("words", "/1/"),
			`{"tenant_id": "t1", "_ix.words": {"$elemMatch": {"$gte": "/1/", "$lt": "/10"}}}`},
		"the last prefix": {docstore.Prefix("name", "\U0010FFFF"), `{"tenant_id": "t1", "_ix.name": {"$gte": "` +
			"\U0010FFFF" + `"}}`},
		"and on one field": {docstore.And(docstore.Eq("words", text("a")), docstore.Eq("words", text("b"))),
			`{"tenant_id": "t1", "$and": [{"_ix.words": "a"}, {"_ix.words": "b"}]}`},
		"an empty and": {docstore.Filter{Op: docstore.OpAnd}, `{"tenant_id": "t1"}`},
		"or": {docstore.Or(docstore.Eq("name", text("a")), docstore.From("rank", number(1))),
			`{"$or": [{"tenant_id": "t1", "_ix.name": "a"}, {"tenant_id": "t1", "_ix.rank": {"$gte": {"$numberLong": "1"}}}]}`},
		"or nothing": {docstore.Or(), `{"_id": {"$in": []}}`},
		"or all": {docstore.Or(docstore.Filter{}, docstore.ID("a")),
			`{"$or": [{"_id": {"$gte": "t1/", "$lt": "t10"}}, {"tenant_id": "t1", "_id": "t1/a"}]}`},
		"or in and": {docstore.And(docstore.ID("a"), docstore.Or(docstore.Eq("name", text("a")),
			docstore.Eq("name", text("b")))),
			`{"tenant_id": "t1", "$and": [{"_id": "t1/a"}, {"$or": [{"tenant_id": "t1", "_ix.name": "a"}, {"tenant_id": "t1", "_ix.name": "b"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireJSON(t, c.want, selection(def, "t1", c.filter))
		})
	}
}

func TestKeysKeepTenantsApart(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, key("a", "b/c"), key("a/b", "c"))
	require.NotEqual(t, key("a/b", "c"), key("a%2Fb", "c"))
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.RuneFrom([]rune("a0/%2F京")), 1, 6, -1)
		t1, t2, id1, id2 := part.Draw(t, "t1"), part.Draw(t, "t2"), part.Draw(t, "id1"), part.Draw(t, "id2")
		require.Equal(t, t1 == t2 && id1 == id2, key(t1, id1) == key(t2, id2))
		k, prefix := key(t1, id1), keyPrefix(t2)
		require.Equal(t, t1 == t2, k >= prefix && k < prefixEnd(prefix), "the range of a tenant's keys")
	})
}

func TestPrefixEnd(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"": "", "a": "b", "az": "a{", "\x7f": "\u0080", "\u07ff": "\u0800", "\ud7ff": "\ue000", "\uffff": "\U00010000",
		"\U0010FFFF": "", "a\U0010FFFF\U0010FFFF": "b", "\xff": "", "a\xff": "b", "\xc3": "\xc4", "\ufffd": "\ufffe",
		"a\x00": "a\x01",
	} {
		require.Equal(t, want, prefixEnd(prefix), "%q", prefix)
	}
	edges := rapid.SampledFrom([]rune{0, 'a', 'b', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000,
		0x10fffe, 0x10ffff})
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringOfN(edges, 1, 4, -1).Draw(t, "prefix")
		text := rapid.StringOfN(edges, 0, 6, -1).Draw(t, "text")
		if rapid.Bool().Draw(t, "extend") {
			text = prefix + text
		}
		end := prefixEnd(prefix)
		require.True(t, utf8.ValidString(end))
		require.Equal(t, strings.HasPrefix(text, prefix), text >= prefix && (end == "" || text < end))
	})
}

func FuzzPrefixEnd(f *testing.F) {
	f.Add("a", "ab")
	f.Add("\xff", "\xff\xff")
	f.Add("\U0010FFFF", "\U0010FFFF")
	f.Fuzz(func(t *testing.T, prefix, text string) {
		end := prefixEnd(prefix)
		if strings.HasPrefix(text, prefix) && end != "" && text >= end {
			t.Errorf("%q starts with %q, but is not below %q", text, prefix, end)
		}
		if !strings.HasPrefix(text, prefix) && text >= prefix && (end == "" || text < end) &&
			utf8.ValidString(prefix) && utf8.ValidString(text) {
			t.Errorf("%q does not start with %q, but is below %q", text, prefix, end)
		}
	})
}

func TestSorting(t *testing.T) {
	t.Parallel()
	asc, desc := docstore.Order{Index: "name"}, docstore.Order{Index: "rank", Desc: true}
	for want, order := range map[string][]docstore.Order{
		`{"_id": 1}`:                                nil,
		`{"_ix.name": 1, "_id": 1}`:                 {asc},
		`{"_ix.rank": -1, "_id": -1}`:               {desc},
		`{"_ix.name": 1, "_ix.rank": -1,"_id": -1}`: {asc, desc},
		`{"_ix.rank": -1, "_ix.name": 1,"_id": 1}`:  {desc, asc, docstore.Order{Index: "rank"}, asc},
	} {
		raw, err := bson.Marshal(sorting(order))
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(want, " ", ""), strings.ReplaceAll(plainNumbers(raw), " ", ""),
			"the order of fields matters")
	}
}

func plainNumbers(raw bson.Raw) string {
	return strings.NewReplacer(`{"$numberInt":"1"}`, "1", `{"$numberInt":"-1"}`, "-1").Replace(raw.String())
}

func TestAfter(t *testing.T) {
	t.Parallel()
	text, number := docstore.Text, docstore.Number
	asc, desc := docstore.Order{Index: "name"}, docstore.Order{Index: "rank", Desc: true}
	word := docstore.Eq("words", text("w"))
	at := func(id string, values ...docstore.Value) *docstore.Position {
		return &docstore.Position{Values: values, ID: id}
	}
	for name, c := range map[string]struct {
		find docstore.Find
		want string
	}{
		"all, from the start":        {docstore.Find{}, `{"_id": {"$gte": "t1/", "$lt": "t10"}}`},
		"all, sorted from the start": {docstore.Find{Sort: []docstore.Order{asc}}, `{"tenant_id": "t1"}`},
		"a filter, from the start": {docstore.Find{Filter: word, Sort: []docstore.Order{asc}},
			`{"tenant_id": "t1", "_ix.words": "w"}`},
		"all, by id": {docstore.Find{After: at("a")},
			`{"$and": [{"_id": {"$gte": "t1/", "$lt": "t10"}}, {"_id": {"$gt": "t1/a"}}]}`},
		"a filter, by id": {docstore.Find{Filter: word, After: at("a")},
			`{"$and": [{"tenant_id": "t1", "_ix.words": "w"}, {"_id": {"$gt": "t1/a"}}]}`},
		"all, by one key": {docstore.Find{Sort: []docstore.Order{asc}, After: at("a", text("x"))}, `{"$or": [
			{"$and": [{"tenant_id": "t1"}, {"_ix.name": {"$gt": "x"}}]},
			{"$and": [{"tenant_id": "t1"}, {"_ix.name": "x", "_id": {"$gt": "t1/a"}}]}]}`},
		"a filter, by two keys": {docstore.Find{Filter: word, Sort: []docstore.Order{asc, desc},
			After: at("a", text("x"), number(5))}, `{"$or": [
			{"$and": [{"tenant_id": "t1", "_ix.words": "w"}, {"_ix.name": {"$gt": "x"}}]},
			{"$and": [{"tenant_id": "t1", "_ix.words": "w"}, {"_ix.name": "x", "_ix.rank": {"$lt": {"$numberLong": "5"}}}]},
			{"$and": [{"tenant_id": "t1", "_ix.words": "w"}, {"_ix.name": "x", "_ix.rank": {"$numberLong": "5"}, "_id": {"$lt": "t1/a"}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireJSON(t, c.want, after(def, "t1", c.find))
		})
	}
}
