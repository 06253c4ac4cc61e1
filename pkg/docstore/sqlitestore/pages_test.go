package sqlitestore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// selects returns how many SELECTs fn runs. Other statements may still end an earlier write.
func (f *fixture) selects(fn func()) int {
	seen := func() (n int) {
		f.spy.mu.Lock()
		defer f.spy.mu.Unlock()
		for _, sql := range f.spy.seen {
			if strings.HasPrefix(sql, "SELECT") {
				n++
			}
		}
		return n
	}
	before := seen()
	fn()
	return seen() - before
}

func (f *fixture) retitle(ctx context.Context, id, title string) error {
	return docstore.Do(ctx, f.Store, func(tx *docstore.Tx) error {
		n, err := notes.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		n.Title = title
		_, err = notes.Replace(ctx, tx, n)
		return err
	})
}

// TestPagesAreKept: the first page of a list is read once, until a document of the tenant changes, also by another
// process. From then on it costs one statement.
func TestPagesAreKept(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	other := openAt(t, f.path, notes)
	for i := range 30 {
		require.NoError(t, f.insert(ctx, newNote(i)))
	}
	list := func(q docstore.Query, first string) (selects int) {
		t.Helper()
		return f.selects(func() {
			page, err := notes.Page(ctx, f.Store, q)
			require.NoError(t, err)
			require.Len(t, page.Docs, q.Limit)
			n, err := page.Docs[0].Value()
			require.NoError(t, err)
			require.Equal(t, first, n.Title)
			if q.Count {
				require.EqualValues(t, 30, page.Total)
			}
		})
	}
	for _, q := range []docstore.Query{{Limit: 10}, {Limit: 10, Count: true}, {Limit: 12}, {Limit: 10, Offset: 1}} {
		first := newNote(q.Offset).Title
		require.Greater(t, list(q, first), 1)
		require.Equal(t, 1, list(q, first))
	}

	q := docstore.Query{Limit: 10, Count: true}
	require.NoError(t, f.retitle(ctx, newNote(0).ID, "mine"))
	require.Greater(t, list(q, "mine"), 1)
	require.NoError(t, other.retitle(ctx, newNote(0).ID, "the other's"))
	require.Greater(t, list(q, "the other's"), 1)

	undo := errors.New("undo")
	require.ErrorIs(t, docstore.Do(ctx, f.Store, func(tx *docstore.Tx) error {
		n, err := notes.Load(ctx, tx, newNote(0).ID)
		require.NoError(t, err)
		n.Title = "undone"
		_, err = notes.Replace(ctx, tx, n)
		require.NoError(t, err)
		page, err := notes.Page(ctx, tx, q)
		require.NoError(t, err)
		n, err = page.Docs[0].Value()
		require.NoError(t, err)
		require.Equal(t, "undone", n.Title, "a transaction sees its own changes")
		return undo
	}), undo)
	require.Equal(t, 1, list(q, "the other's"), "an undone write has changed nothing")
	elsewhere := request.With(context.Background(), request.Info{Tenant: "t2"})
	require.NoError(t, f.insert(elsewhere, newNote(5000)))
	require.Equal(t, 1, list(q, "the other's"), "these are another tenant's documents")
}

// TestLargePagesAreNotKept: one page takes an eighth of the cache at most.
func TestLargePagesAreNotKept(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	for i := range 10 {
		n := newNote(i)
		n.Title = strings.Repeat("long ", 30_000)
		require.NoError(t, f.insert(ctx, n))
	}
	list := func(limit int) int {
		return f.selects(func() {
			_, err := notes.Page(ctx, f.Store, docstore.Query{Limit: limit})
			require.NoError(t, err)
		})
	}
	for range 2 {
		require.Greater(t, list(8), 1)
	}
	require.Greater(t, list(5), 1)
	require.Equal(t, 1, list(5))
}
