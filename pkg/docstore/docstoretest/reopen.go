package docstoretest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

var reopenCases = []testCase{
	{name: "reopened/all documents are there", run: persistence},
	{name: "reopened/another revision", run: newRevision},
	{name: "reopened/one index added, one removed, one moved", run: newIndexes},
	{name: "reopened/an index of another type", run: newIndexType},
}

// again closes a fixture and opens its data with another declaration.
func (s *suite) again(t *testing.T, f *fixture, things *docstore.Collection[Thing]) *fixture {
	t.Helper()
	require.NoError(t, f.Close())
	return openOn(t, s.Reopen(t, f.engine), things)
}

// first opens a store that the case closes itself. Unlike open it registers no cleanup.
func (s *suite) first(t *testing.T) *fixture {
	t.Helper()
	engine := s.factory(t)
	clk := &manualClock{now: epoch}
	store, err := docstore.Open(t.Context(), engine, clk, Things.Def(), Parts.Def())
	require.NoError(t, err)
	return &fixture{Store: store, engine: engine, clock: clk, things: Things}
}

func persistence(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.insert(t, ctx, thing("a", words("w"), code("c"), logins("l")), thing("b", until(epoch)), thing("c"))
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Words = []string{"w", "x"} }))
	require.NoError(t, f.delete(ctx, "c"))
	require.NoError(t, f.append(ctx, docstore.Message{ID: "m1", Subject: "s", Record: "r", Payload: []byte("1")},
		docstore.Message{ID: "m2", Subject: "s", Record: "r"}))
	pending, err := f.Pending(ctx, 0, 10)
	require.NoError(t, err)
	require.NoError(t, f.Published(ctx, []int64{pending[1].Seq}))
	first, err := f.engine.Reserve(ctx, "seq", 7)
	require.NoError(t, err)
	id, err := f.NewID(ctx)
	require.NoError(t, err)

	f = s.again(t, f, Things)
	require.Equal(t, []string{"a", "b"}, f.ids(t, ctx, docstore.Filter{}))
	require.Equal(t, []string{"a"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("x"))))
	require.EqualValues(t, 2, f.get(t, ctx, "a").Version)
	requireDuplicate(t, f.tryInsert(ctx, thing("d", logins("l"))), "logins")
	left, err := f.Pending(ctx, 0, 10)
	require.NoError(t, err)
	pending[0].Elsewhere = left[0].Elsewhere // by the former process, where more than one uses a store
	require.Equal(t, pending[:1], left)
	require.NoError(t, f.append(ctx, docstore.Message{ID: "m3", Subject: "s", Record: "r"}))
	left, err = f.Pending(ctx, 0, 10)
	require.NoError(t, err)
	require.Greater(t, left[1].Seq, pending[1].Seq, "no message number is used again, not even after a restart")
	next, err := f.engine.Reserve(ctx, "seq", 1)
	require.NoError(t, err)
	require.Equal(t, first+7, next)
	nextID, err := f.NewID(ctx)
	require.NoError(t, err)
	require.NotEqual(t, id, nextID)
	refs, err := f.things.Due(ctx, f.Store, 10)
	require.NoError(t, err)
	require.Equal(t, []docstore.Ref{{Tenant: "t1", ID: "b"}}, refs)
	f.check(t)
}

// seed fills several tenants, so that a rebuild could confuse them.
func (f *fixture) seed(t *testing.T) {
	t.Helper()
	for _, tenant := range []string{"t1", "t2"} {
		var all []*Thing
		for i := range 120 {
			all = append(all, thing(docID(i), name(fmt.Sprint("N", i%10)), code(docID(i)), rank(int64(i)),
				words("W", fmt.Sprint("w", i%3)), logins(docID(i))))
		}
		if tenant == "t2" {
			for _, v := range all {
				v.ID = "x" + v.ID
			}
		}
		f.insert(t, in(t, tenant), all...)
	}
}

func newRevision(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.seed(t)
	folded := append([]docstore.Index[Thing]{
		docstore.ByList("words", func(v *Thing) []string {
			return []string{strings.ToLower(v.Words[0]), "rank" + fmt.Sprint(v.Rank)}
		}),
		docstore.ByText("name", func(v *Thing) string { return strings.ToLower(v.Name) }),
	}, thingIndexes[3:]...)
	folded = append(folded, thingIndexes[1])
	f = s.again(t, f, docstore.Define(thingSchema(2, folded...)))
	require.Len(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))), 120)
	require.Equal(t, []string{"1005"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("rank5"))))
	require.Empty(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("W"))), "old entries are gone")
	require.Len(t, f.ids(t, ctx, docstore.Eq("name", docstore.Text("n3"))), 12)
	require.EqualValues(t, 1, f.get(t, ctx, "1005").Version, "documents stay as they are")
	requireDuplicate(t, f.tryInsert(ctx, thing("new", code("1005"), words("w"))), "code")
	require.NoError(t, f.delete(ctx, "1005"))
	require.Empty(t, f.ids(t, ctx, docstore.Eq("words", docstore.Text("rank5"))))
	require.Len(t, f.ids(t, in(t, "t2"), docstore.Prefix("words", "rank")), 120)
	f.check(t)
}

func newIndexes(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.seed(t)
	changed := []docstore.Index[Thing]{
		docstore.ByNumber("created", func(v *Thing) docstore.Value { return docstore.Moment(v.TimeCreated) }),
		thingIndexes[4], thingIndexes[1],
		docstore.Unique(docstore.ByList("aliases", func(v *Thing) []string { return []string{"alias " + v.ID} }), "id"),
		docstore.ByText("version_text", func(v *Thing) string { return fmt.Sprint(v.Version) }),
	}
	f = s.again(t, f, docstore.Define(thingSchema(1, changed...)))
	require.Len(t, f.ids(t, ctx, docstore.Eq("created", docstore.Moment(epoch)), desc("created")), 120)
	require.Equal(t, []string{"1007"}, f.ids(t, ctx, docstore.Eq("aliases", docstore.Text("alias 1007"))))
	require.Equal(t, []string{"1009"}, f.ids(t, ctx, docstore.Eq("rank", docstore.Number(9))))
	requireDuplicate(t, f.tryInsert(ctx, thing("new", code("1005"))), "code")
	require.NoError(t, f.tryInsert(ctx, thing("new", logins("1005"))), "a removed index refuses nothing")
	f.check(t)
}

func newIndexType(t *testing.T, s *suite) {
	f, ctx := s.first(t), in(t, "t1")
	f.seed(t)
	changed := []docstore.Index[Thing]{
		docstore.ByText("rank", func(v *Thing) string { return fmt.Sprintf("%04d", v.Rank) }),
		docstore.ByList("name", func(v *Thing) []string { return []string{v.Name, v.ID} }),
	}
	f = s.again(t, f, docstore.Define(thingSchema(1, changed...)))
	require.Equal(t, []string{"1009"}, f.ids(t, ctx, docstore.Eq("rank", docstore.Text("0009"))))
	require.Equal(t, []string{"1011"}, f.ids(t, ctx, docstore.And(docstore.Eq("name", docstore.Text("1011")),
		docstore.Eq("name", docstore.Text("N1")))))
	f.check(t)
}
