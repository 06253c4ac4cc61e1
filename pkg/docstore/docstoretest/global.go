package docstoretest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Client is a document with values that are unique over all tenants: one text, and each text of a list.
type Client struct {
	docstore.Meta
	Name  string   `json:"name"`
	Key   string   `json:"key"`
	Hosts []string `json:"hosts,omitempty"`
}

// Clients is a collection with global indexes.
var Clients = docstore.Define(docstore.Schema[Client]{
	Name: "clients", Noun: "client",
	Indexes: []docstore.Index[Client]{
		docstore.ByText("name", func(v *Client) string { return v.Name }),
		docstore.Global(docstore.ByText("key", func(v *Client) string { return v.Key }), "key"),
		docstore.Global(docstore.ByList("hosts", func(v *Client) []string { return v.Hosts }), "hosts"),
	},
})

var globalCases = []testCase{
	{name: "global/found without a tenant", run: globalFound},
	{name: "global/unique over tenants", run: globalUnique},
	{name: "global/changed and freed", run: globalChanged},
	{name: "global/deleted by a filter", run: globalDeletedWhere},
	{name: "global/moved to another tenant at once", run: globalMoved},
	{name: "global/rolled back, and a dry run", run: globalUndone},
	{name: "global/32 tenants at once", run: globalRace},
	{name: "global/found while a value moves", run: globalReadRace},
}

func (f *fixture) insertClient(ctx context.Context, v Client) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		c := v
		_, err := Clients.Insert(ctx, tx, &c)
		return err
	})
}

func (f *fixture) changeClient(ctx context.Context, id string, change func(*Client)) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		v, err := Clients.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		change(v)
		_, err = Clients.Replace(ctx, tx, v)
		return err
	})
}

func (f *fixture) deleteClient(ctx context.Context, id string) error {
	return f.write(ctx, func(tx *docstore.Tx) error {
		v, err := Clients.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		v.Key = "changing the caller's value does not change what is stored"
		_, err = Clients.Delete(ctx, tx, v)
		return err
	})
}

// owner is "tenant/id" of the document with a value in a global index, read without a tenant; "" if there is none.
func (f *fixture) owner(t *testing.T, index, value string) string {
	t.Helper()
	doc, err := Clients.FindGlobal(t.Context(), f.Store, index, value)
	if apperr.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	v, err := doc.Value()
	require.NoError(t, err)
	return v.TenantID + "/" + v.ID
}

func client(id, key string, hosts ...string) Client {
	return Client{Meta: docstore.Meta{ID: id}, Key: key, Hosts: hosts}
}

func requireGlobalDuplicate(t *testing.T, err error, index string) {
	t.Helper()
	var dup *docstore.DuplicateError
	require.ErrorAs(t, err, &dup)
	require.Equal(t, "clients", dup.Collection)
	require.Equal(t, index, dup.Index)
	require.NotContains(t, err.Error(), "t1", "the error does not tell whose value it is")
	require.NotContains(t, err.Error(), "secret-")
	requireTaken(t, err, index)
}

func globalFound(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	require.NoError(t, f.insertClient(t1, client("a", "k1", "h1", "h2", "h1")))
	require.NoError(t, f.insertClient(t2, client("a", "k2")))
	require.NoError(t, f.insertClient(t2, client("b", "")))
	require.NoError(t, f.insertClient(t1, client("c", "", "")))

	require.Equal(t, "t1/a", f.owner(t, "key", "k1"))
	require.Equal(t, "t2/a", f.owner(t, "key", "k2"))
	require.Equal(t, "t1/a", f.owner(t, "hosts", "h2"))
	for _, absent := range []string{"", "k", "K1", "k3", "h1"} {
		require.Empty(t, f.owner(t, "key", absent), "%q", absent)
	}
	for _, index := range []string{"name", "id", ""} {
		_, err := Clients.FindGlobal(t.Context(), f.Store, index, "x")
		require.ErrorContains(t, err, "no global index")
	}
	_, err := Clients.Find(t.Context(), f.Store, "a")
	require.ErrorContains(t, err, "no tenant", "every other read needs a tenant")
	page, err := Clients.Page(t2, f.Store, docstore.Query{Filter: docstore.Eq("key", docstore.Text("k1")), Limit: 9})
	require.NoError(t, err)
	require.Empty(t, page.Docs, "a filter stays within its tenant")
	f.check(t)
}

func globalUnique(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	require.NoError(t, f.insertClient(t1, client("a", "secret-1", "secret-h")))
	requireGlobalDuplicate(t, f.insertClient(t1, client("b", "secret-1")), "key")
	requireGlobalDuplicate(t, f.insertClient(t2, client("b", "secret-1")), "key")
	requireGlobalDuplicate(t, f.insertClient(t2, client("b", "secret-2", "secret-h")), "hosts")
	require.Empty(t, f.owner(t, "key", "secret-2"), "a refused document leaves nothing")

	require.NoError(t, f.insertClient(t2, client("b", "secret-2")))
	requireGlobalDuplicate(t, f.changeClient(t2, "b", func(v *Client) { v.Key = "secret-1" }), "key")
	require.Equal(t, "t1/a", f.owner(t, "key", "secret-1"))
	require.Equal(t, "t2/b", f.owner(t, "key", "secret-2"))
	f.check(t)
}

func globalChanged(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	require.NoError(t, f.insertClient(t1, client("a", "k1", "h1", "h2")))
	require.NoError(t, f.changeClient(t1, "a", func(v *Client) { v.Name = "the other members keep their values" }))
	require.Equal(t, "t1/a", f.owner(t, "key", "k1"))

	// Twice in one transaction: the last write counts.
	require.NoError(t, f.write(t1, func(tx *docstore.Tx) error {
		v, err := Clients.Load(t1, tx, "a")
		if err != nil {
			return err
		}
		for _, key := range []string{"between", "k2"} {
			v.Key, v.Hosts = key, []string{"h2", "h3"}
			if _, err := Clients.Touch(t1, tx, v); err != nil {
				return err
			}
		}
		_, err = Clients.FindGlobal(t1, tx, "key", "k2")
		return err
	}))
	require.Empty(t, f.owner(t, "key", "k1"))
	require.Empty(t, f.owner(t, "key", "between"))
	require.Empty(t, f.owner(t, "hosts", "h1"))
	require.Equal(t, "t1/a", f.owner(t, "key", "k2"))
	require.Equal(t, "t1/a", f.owner(t, "hosts", "h3"))
	require.NoError(t, f.insertClient(t2, client("b", "k1", "h1")))

	require.NoError(t, f.deleteClient(t1, "a"))
	require.Empty(t, f.owner(t, "key", "k2"))
	require.NoError(t, f.insertClient(t2, client("c", "k2", "h2", "h3")))
	require.Equal(t, "t2/c", f.owner(t, "hosts", "h2"))
	f.check(t)
}

func globalDeletedWhere(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	for i := range 3 {
		require.NoError(t, f.insertClient(t1, client(docID(i), fmt.Sprint("k", i))))
	}
	require.NoError(t, f.insertClient(t2, client("z", "kz")))
	require.NoError(t, f.write(t1, func(tx *docstore.Tx) error {
		return Clients.DeleteWhere(t1, tx, docstore.Prefix("key", "k"), nil)
	}))
	require.Equal(t, "t2/z", f.owner(t, "key", "kz"))
	for i := range 3 {
		require.NoError(t, f.insertClient(t2, client(docID(i), fmt.Sprint("k", i))))
	}
}

// move moves a value from one tenant's document to another's, in one transaction.
func (f *fixture) move(key string, from, to context.Context) error {
	return f.write(from, func(tx *docstore.Tx) error {
		v, err := Clients.Load(from, tx, "a")
		if err != nil {
			return err
		}
		v.Key = ""
		if _, err := Clients.Replace(from, tx, v); err != nil {
			return err
		}
		w, err := Clients.Load(to, tx, "b")
		if err != nil {
			return err
		}
		w.Key = key
		_, err = Clients.Replace(to, tx, w)
		return err
	})
}

func globalMoved(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	require.NoError(t, f.insertClient(t1, client("a", "k")))
	require.NoError(t, f.insertClient(t2, client("b", "")))
	require.NoError(t, f.move("k", t1, t2))
	require.Equal(t, "t2/b", f.owner(t, "key", "k"))
	f.check(t)
}

func globalUndone(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	require.NoError(t, f.insertClient(t1, client("a", "k1")))
	stopped := func(write func(tx *docstore.Tx) error) {
		t.Helper()
		require.ErrorIs(t, f.write(t1, func(tx *docstore.Tx) error {
			if err := write(tx); err != nil {
				return err
			}
			return errStop
		}), errStop)
	}
	stopped(func(tx *docstore.Tx) error {
		c := client("b", "k2")
		_, err := Clients.Insert(t1, tx, &c)
		return err
	})
	stopped(func(tx *docstore.Tx) error {
		return Clients.DeleteWhere(t1, tx, docstore.ID("a"), nil)
	})
	dry := docstore.WithDryRun(t1)
	require.NoError(t, f.insertClient(dry, client("b", "k2")))
	require.NoError(t, f.deleteClient(dry, "a"))
	requireGlobalDuplicate(t, f.insertClient(docstore.WithDryRun(t2), client("b", "k1")), "key")
	require.Equal(t, "t1/a", f.owner(t, "key", "k1"))
	require.Empty(t, f.owner(t, "key", "k2"))
	require.NoError(t, f.insertClient(t2, client("b", "k2")))
	f.check(t)
}

func globalRace(t *testing.T, s *suite) {
	f := s.open(t)
	var won atomic.Int32
	for _, err := range together(32, func(i int) error {
		err := f.insertClient(in(t, fmt.Sprint("tenant-", i)), client("a", "one"))
		if err == nil {
			won.Add(1)
		}
		return err
	}) {
		if err != nil {
			requireGlobalDuplicate(t, err, "key")
		}
	}
	require.EqualValues(t, 1, won.Load(), "exactly one succeeds")
	require.NotEmpty(t, f.owner(t, "key", "one"))
	f.check(t)
}

// globalReadRace: a value that moves between two tenants is always found at one of them, together with that tenant's
// document.
func globalReadRace(t *testing.T, s *suite) {
	f, t1, t2 := s.open(t), in(t, "t1"), in(t, "t2")
	for _, ctx := range []context.Context{t1, t2} {
		require.NoError(t, f.insertClient(ctx, client("a", "")))
		require.NoError(t, f.insertClient(ctx, client("b", "")))
	}
	require.NoError(t, f.changeClient(t1, "a", func(v *Client) { v.Key = "k" }))
	moved := make(chan error, 1)
	go func() { moved <- f.move("k", t1, t2) }()
	for done := false; !done; {
		select {
		case err := <-moved:
			require.NoError(t, err)
			done = true
		default:
		}
		require.Contains(t, []string{"t1/a", "t2/b"}, f.owner(t, "key", "k"))
	}
	require.Equal(t, "t2/b", f.owner(t, "key", "k"))
}
