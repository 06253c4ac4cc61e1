package docstoretest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

var tenantCases = []testCase{
	{name: "tenants/do not see each other's documents", run: isolation},
	{name: "tenants/cannot write each other's documents", run: writeIsolation},
	{name: "tenants/unique values are per tenant", run: uniquePerTenant},
	{name: "tenants/with the same id", run: sameID},
	{name: "tenants/with similar names", run: alikeTenants},
	{name: "tenants/none", run: noTenant},
	{name: "tenants/a walk over all of them", run: eachTenant},
}

func isolation(t *testing.T, s *suite) {
	f := s.open(t)
	t1, t2 := in(t, "t1"), in(t, "t2")
	f.insert(t, t1, thing("a", name("n"), kind("k"), rank(1), words("w"), code("c"), logins("l"), seen(epoch)))
	f.insert(t, t1, thing("b", name("n"), words("w")))
	f.insert(t, t2, thing("z", name("n"), words("w")))
	text := docstore.Text
	for _, filter := range []docstore.Filter{
		{},
		docstore.ID("a", "b", "z"),
		docstore.Eq("name", text("n")),
		docstore.Prefix("name", "n"),
		docstore.Eq("words", text("w")),
		docstore.Prefix("words", "w"),
		docstore.From("rank", docstore.Number(-5)),
		docstore.Or(docstore.Eq("words", text("w")), docstore.Eq("code", text("c"))),
		docstore.And(docstore.Eq("words", text("w")), docstore.Eq("name", text("n"))),
	} {
		require.Equal(t, []string{"a", "b"}, f.ids(t, t1, filter), "%+v", filter)
		require.Equal(t, []string{"z"}, f.ids(t, t2, filter), "%+v", filter)
		require.Equal(t, []string{"z"}, f.ids(t, t2, filter, desc("name")), "%+v", filter)
		require.Empty(t, f.ids(t, in(t, "t3"), filter))
	}
	docs, err := f.things.FindMany(t2, f.Store, []string{"a", "b", "z"})
	require.NoError(t, err)
	require.Len(t, docs, 1)
	_, err = f.things.Find(t2, f.Store, "a")
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))

	// A page token is valid for one tenant only.
	_, page := f.page(t, t1, docstore.Query{Limit: 1})
	_, err = f.things.Page(t2, f.Store, docstore.Query{Limit: 9, After: page.Next})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

func writeIsolation(t *testing.T, s *suite) {
	f := s.open(t)
	t1, t2 := in(t, "t1"), in(t, "t2")
	f.insert(t, t1, thing("a", words("w"), code("c")))
	require.Equal(t, apperr.NotFound, apperr.KindOf(f.change(t2, "a", func(v *Thing) { v.Rank = 1 })))
	require.Equal(t, apperr.NotFound, apperr.KindOf(f.delete(t2, "a")))
	def := f.things.Def()
	require.ErrorIs(t, f.engine.Write(t2, func(tx docstore.EngineTx) error {
		return tx.Delete(t2, def, "t2", "a", docstore.Stamp{Version: 1})
	}), docstore.ErrNotFound)
	require.ErrorIs(t, f.engine.Write(t2, func(tx docstore.EngineTx) error {
		v := f.get(t, t1, "a").clone()
		v.TenantID, v.Version = "t2", 2
		e := entryOf(t, f, v)
		return tx.Replace(t2, def, e, docstore.Stamp{Version: 1})
	}), docstore.ErrNotFound)
	require.NoError(t, f.write(t2, func(tx *docstore.Tx) error {
		return f.things.DeleteWhere(t2, tx, docstore.Prefix("words", "w"), func(d docstore.Doc[Thing]) error {
			t.Error("deleted", d.ID)
			return nil
		})
	}))
	a := f.get(t, t1, "a")
	require.EqualValues(t, 1, a.Version)
	require.Equal(t, []string{"a"}, f.ids(t, t1, docstore.Eq("words", docstore.Text("w"))))
}

// entryOf makes the entry of a document as the typed layer does, for cases that call the engine directly.
func entryOf(t *testing.T, f *fixture, v *Thing) *docstore.Entry {
	t.Helper()
	e := &docstore.Entry{Tenant: v.TenantID, ID: v.ID, Stamp: docstore.Stamp{Version: v.Version}, Doc: v,
		JSON: mustJSON(t, v)}
	for _, ix := range f.things.Def().Indexes {
		if ix.Many {
			e.Lists = append(e.Lists, listOf(v, ix.Name))
		} else {
			e.Keys = append(e.Keys, keyOf(v, ix.Name))
		}
	}
	return e
}

func uniquePerTenant(t *testing.T, s *suite) {
	f := s.open(t)
	for _, tenant := range []string{"t1", "t2"} {
		ctx := in(t, tenant)
		f.insert(t, ctx, thing("of "+tenant, code("c"), logins("l")))
		requireDuplicate(t, f.tryInsert(ctx, thing("again in "+tenant, code("c"))), "code")
	}
	require.Equal(t, []string{"of t2"}, f.ids(t, in(t, "t2"), docstore.Eq("logins", docstore.Text("l"))))
}

// sameID: ids are unique in a service, so an engine may refuse the second document with an id. It must not confuse the
// two.
func sameID(t *testing.T, s *suite) {
	f := s.open(t)
	t1, t2 := in(t, "t1"), in(t, "t2")
	f.insert(t, t1, thing("a", name("first")))
	if err := f.tryInsert(t2, thing("a", name("second"))); err != nil {
		requireDuplicate(t, err, "")
	} else {
		require.Equal(t, "second", f.get(t, t2, "a").Name)
		require.NoError(t, f.delete(t2, "a"))
	}
	require.Equal(t, "first", f.get(t, t1, "a").Name)
	require.Empty(t, f.ids(t, t2, docstore.Filter{}))
}

// alikeTenants: engines must not confuse where the tenant ends and the value begins.
func alikeTenants(t *testing.T, s *suite) {
	f := s.open(t)
	for _, c := range []struct{ tenant, word string }{{"t", "1w"}, {"t1", "w"}, {"T1", "w"}, {"t1 ", "w"},
		{"t1w", "x"}} {
		f.insert(t, in(t, c.tenant), thing("of "+c.tenant, words(c.word), name(c.word)))
	}
	require.Equal(t, []string{"of t1"}, f.ids(t, in(t, "t1"), docstore.Prefix("words", "w")))
	require.Equal(t, []string{"of t1"}, f.ids(t, in(t, "t1"), docstore.Filter{}, asc("name")))
	require.Equal(t, []string{"of t"}, f.ids(t, in(t, "t"), docstore.Filter{}))
}

func noTenant(t *testing.T, s *suite) {
	f := s.open(t)
	ctx := t.Context()
	require.Error(t, f.tryInsert(ctx, thing("a")))
	_, err := f.things.Find(ctx, f.Store, "a")
	require.Error(t, err)
	_, err = f.things.Page(ctx, f.Store, docstore.Query{Limit: 1})
	require.Error(t, err)
	_, err = f.things.Count(ctx, f.Store, docstore.Filter{})
	require.Error(t, err)
}

// eachTenant: every tenant with documents is visited once, with a context of its own, even if names begin alike.
func eachTenant(t *testing.T, s *suite) {
	f := s.open(t)
	seen := map[string]int{}
	walk := func() error {
		clear(seen)
		return f.things.EachTenant(t.Context(), f.Store, func(ctx context.Context) error {
			ids := f.ids(t, ctx, docstore.Filter{})
			seen[request.Tenant(ctx)] += len(ids)
			return nil
		})
	}
	require.NoError(t, walk())
	require.Empty(t, seen)
	want := map[string]int{}
	for _, tenant := range []string{"t1", "t1-a", "t10", "t", "t2", "t_1", "t/1", "t%2F1", "t(1"} {
		f.insert(t, in(t, tenant), thing("a"))
		f.insert(t, in(t, tenant), thing("b"))
		want[tenant] = 2
	}
	require.NoError(t, f.delete(in(t, "t2"), "a"))
	want["t2"] = 1
	require.NoError(t, walk())
	require.Equal(t, want, seen)
	require.NoError(t, f.delete(in(t, "t2"), "b"))
	delete(want, "t2")
	require.NoError(t, walk())
	require.Equal(t, want, seen)
	stop := errors.New("stop")
	require.ErrorIs(t, f.things.EachTenant(t.Context(), f.Store, func(context.Context) error { return stop }), stop)
}
