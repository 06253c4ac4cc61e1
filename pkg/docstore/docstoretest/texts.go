package docstoretest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// walkTexts goes from text to text after a prefix and finds each once, even if one is a prefix of another.
func walkTexts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	names := []string{"1/", "1/2/", "1/2/3/", "1/20/", "1/2é/", "1/3/", "10/", "2/"}
	for i, n := range names {
		f.insert(t, ctx, thing(string(rune('a'+i)), func(v *Thing) { v.Name = n }))
	}
	var walked []string
	filter := docstore.Prefix("name", "1/")
	for {
		page, err := f.things.Page(ctx, f.Store, docstore.Query{Filter: filter, Sort: []docstore.Order{{Index: "name"}},
			Limit: 1})
		require.NoError(t, err)
		if len(page.Docs) == 0 {
			break
		}
		v, err := page.Docs[0].Value()
		require.NoError(t, err)
		walked = append(walked, v.Name)
		filter = docstore.And(docstore.Prefix("name", "1/"), docstore.Above("name", v.Name))
	}
	require.Equal(t, []string{"1/", "1/2/", "1/2/3/", "1/20/", "1/2é/", "1/3/"}, walked)
}

// bareTexts reads texts with filters about each kind of index.
func bareTexts(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx,
		thing("1", name("b"), kind("x"), code("p"), words("red")),
		thing("2", name("a"), kind("x"), words("red", "blue")),
		thing("3", name("b"), kind("y"), code("q")),
		thing("4", kind("x"), words("redder")),
		thing("5", name("京"), kind("z"), rank(7)))
	f.insert(t, in(t, "t2"), thing("1", name("a"), kind("x")))
	eq := func(index, s string) docstore.Filter { return docstore.Eq(index, docstore.Text(s)) }
	for _, c := range []struct {
		index  string
		filter docstore.Filter
		want   []string
	}{
		{"name", docstore.Filter{}, []string{"4=", "2=a", "1=b", "3=b", "5=京"}},
		{"name", eq("kind", "x"), []string{"4=", "2=a", "1=b"}},
		{"name", docstore.In("kind", docstore.Text("y"), docstore.Text("x"), docstore.Text("none")),
			[]string{"4=", "2=a", "1=b", "3=b"}},
		{"name", eq("name", "b"), []string{"1=b", "3=b"}},
		{"name", docstore.And(docstore.From("name", docstore.Text("a")), docstore.Above("name", "a")),
			[]string{"1=b", "3=b", "5=京"}},
		{"kind", docstore.ID("5", "3", "9"), []string{"3=y", "5=z"}},
		{"kind", docstore.From("rank", docstore.Number(7)), []string{"5=z"}},
		{"kind", docstore.Prefix("words", "red"), []string{"1=x", "2=x", "4=x"}},
		{"kind", docstore.And(docstore.Prefix("words", "red"), eq("name", "a")), []string{"2=x"}},
		{"kind", docstore.Or(eq("name", "a"), docstore.ID("3")), []string{"2=x", "3=y"}},
		{"name", docstore.Or(docstore.Prefix("name", "京"), docstore.Prefix("name", "a"), docstore.Prefix("name", "x")),
			[]string{"2=a", "5=京"}},
		{"name", docstore.Or(docstore.Prefix("name", "b"), docstore.Prefix("name", "a"),
			docstore.Eq("name", docstore.Text("a"))), []string{"2=a", "1=b", "3=b"}},
		{"name", docstore.Or(docstore.From("name", docstore.Text("b")), docstore.Prefix("name", "b")),
			[]string{"1=b", "3=b", "5=京"}},
		{"code", docstore.Prefix("name", "b"), []string{"1=p", "3=q"}},
		{"kind", docstore.Contains("name", "b"), []string{"1=x", "3=y"}},
		{"name", eq("name", "none"), []string{}},
	} {
		for limit := 1; limit <= len(c.want)+1; limit++ {
			texts, err := f.things.Texts(ctx, f.Store, c.index, c.filter, limit)
			require.NoError(t, err)
			require.Equal(t, c.want[:min(limit, len(c.want))], written(texts), "%s of %+v", c.index, c.filter)
		}
	}
	textsInTransaction(t, f, ctx)
	for _, index := range []string{"rank", "words", "nothing"} {
		_, err := f.things.Texts(ctx, f.Store, index, docstore.Filter{}, 1)
		require.Error(t, err, index)
	}
}

// textsInTransaction: a transaction sees its own writes.
func textsInTransaction(t *testing.T, f *fixture, ctx context.Context) {
	t.Helper()
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		v, err := f.things.Load(ctx, tx, "1")
		if err != nil {
			return err
		}
		v.Name = "z"
		if _, err := f.things.Replace(ctx, tx, v); err != nil {
			return err
		}
		texts, err := f.things.Texts(ctx, tx, "name", docstore.Eq("kind", docstore.Text("x")), 10)
		if err != nil {
			return err
		}
		require.Equal(t, []string{"4=", "2=a", "1=z"}, written(texts), "a transaction sees its own writes")
		return nil
	}))
}

// written is a list of texts as a test writes it.
func written(texts []docstore.Indexed) []string {
	list := []string{}
	for _, t := range texts {
		list = append(list, t.ID+"="+t.Text)
	}
	return list
}
