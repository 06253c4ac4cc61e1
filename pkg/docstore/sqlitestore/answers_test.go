package sqlitestore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// TestAnswersAreKept: a search runs once, until the tenant's documents change in any way.
func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	other := openAt(t, f.path, notes)
	var all []*note
	for i := range 200 {
		all = append(all, newNote(i))
	}
	require.NoError(t, f.insert(ctx, all...))
	searched := func(total int, ids ...string) (again bool) {
		t.Helper()
		f.spy.mu.Lock()
		f.spy.seen = nil
		f.spy.mu.Unlock()
		page, err := notes.Page(ctx, f.Store, docstore.Query{Filter: word("w1").filter, Sort: sorts[1], Limit: 3,
			Count: true})
		require.NoError(t, err)
		require.Equal(t, ids, idsOf(page))
		require.EqualValues(t, total, page.Total)
		f.spy.mu.Lock()
		defer f.spy.mu.Unlock()
		return slices.ContainsFunc(f.spy.seen, func(sql string) bool { return strings.Contains(sql, "c_notes.words") })
	}
	write := func(f *fixture, fn func(tx *docstore.Tx) error) error {
		_, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (int, error) { return 0, fn(tx) })
		return err
	}
	change := func(id string, how func(tx *docstore.Tx, n *note) error) func(tx *docstore.Tx) error {
		return func(tx *docstore.Tx) error {
			n, err := notes.Load(ctx, tx, id)
			if err != nil {
				return err
			}
			return how(tx, n)
		}
	}
	title := func(title string) func(tx *docstore.Tx, n *note) error {
		return func(tx *docstore.Tx, n *note) error {
			n.Title = title
			_, err := notes.Replace(ctx, tx, n)
			return err
		}
	}
	remove := func(tx *docstore.Tx, n *note) error { _, err := notes.Delete(ctx, tx, n); return err }

	require.True(t, searched(20, "10021", "10091", "10161"))
	require.False(t, searched(20, "10021", "10091", "10161"))
	require.NoError(t, write(f, change("10001", title("a"))))
	require.True(t, searched(20, "10001", "10021", "10091"))
	require.NoError(t, write(other, change("10001", title("zzz"))))
	require.True(t, searched(20, "10021", "10091", "10161"), "another engine has changed the file")
	require.NoError(t, write(f, change("10021", remove)))
	require.True(t, searched(19, "10091", "10161", "10071"))

	undo := errors.New("undo")
	require.ErrorIs(t, write(f, func(tx *docstore.Tx) error {
		if err := change("10091", remove)(tx); err != nil {
			return err
		}
		page, err := notes.Page(ctx, tx, docstore.Query{Filter: word("w1").filter, Sort: sorts[1], Limit: 3})
		require.NoError(t, err)
		require.Equal(t, []string{"10161", "10071", "10141"}, idsOf(page), "a transaction sees its own changes")
		return undo
	}), undo)
	require.False(t, searched(19, "10091", "10161", "10071"), "an undone write has changed nothing")
	elsewhere := request.With(context.Background(), request.Info{Tenant: "t2"})
	require.NoError(t, f.insert(elsewhere, newNote(5000)))
	require.False(t, searched(19, "10091", "10161", "10071"), "these are another tenant's documents")
}
