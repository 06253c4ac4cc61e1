package sqlitestore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// TestFarPagesHaveMarks: rows before a far page are walked once, until the tenant's documents change.
func TestFarPagesHaveMarks(t *testing.T) {
	t.Parallel()
	f, ctx := open(t), tenant(t)
	var all []*note
	var ids []string
	for i := range 2600 {
		all = append(all, newNote(i))
		ids = append(ids, all[i].ID)
	}
	require.NoError(t, f.insert(ctx, all...))
	walked := func(offset int, ids []string) bool {
		t.Helper()
		f.spy.mu.Lock()
		f.spy.seen = nil
		f.spy.mu.Unlock()
		page, err := notes.Page(ctx, f.Store, docstore.Query{Offset: offset, Limit: 3})
		require.NoError(t, err)
		require.Equal(t, append([]string{}, ids...), append([]string{}, idsOf(page)...))
		f.spy.mu.Lock()
		defer f.spy.mu.Unlock()
		return slices.ContainsFunc(f.spy.seen, func(sql string) bool {
			return strings.HasPrefix(sql, "SELECT rid FROM")
		})
	}
	require.False(t, walked(900, ids[900:903]), "near pages need no marks")
	require.True(t, walked(2020, ids[2020:2023]))
	require.False(t, walked(2020, ids[2020:2023]))
	require.False(t, walked(1000, ids[1000:1003]), "exactly at a mark")
	require.False(t, walked(2499, ids[2499:2502]))
	require.True(t, walked(2599, ids[2599:]), "marks are added")
	require.True(t, walked(9000, nil), "past the end")
	require.False(t, walked(1500, ids[1500:1503]), "the marks before stay")

	require.NoError(t, f.insert(ctx, newNote(2600)))
	require.True(t, walked(2599, []string{ids[2599], newNote(2600).ID}), "after a change they are found again")
}
