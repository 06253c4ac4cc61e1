package audit

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// open opens the store of a new log. The context is that of tenant acme.
func open(t *testing.T) (context.Context, *docstore.Store) {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{
		Path: t.TempDir() + "/audit.db", Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, Collections()...)
	require.NoError(t, err)
	return request.System(t.Context(), "acme"), store
}

// All filters find the entries that they select.
func TestFilters(t *testing.T) {
	t.Parallel()
	ctx, store := open(t)
	defer func() { require.NoError(t, store.Close()) }()
	const n = 1000
	var all []*Entry
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		all = nil
		for i := range n {
			all = append(all, sample(i))
		}
		return insert(ctx, tx, all)
	}))
	log := Log{Store: store}
	for mask := range 1 << len(filterNames) {
		filter, want := filterLike(all[n/2+1], mask), 0
		for _, entry := range all {
			if filter.selects(entry) {
				want++
			}
		}
		require.Positive(t, want)
		page, err := log.List(ctx, filter, docstore.Paging{Num: 1, Size: n})
		require.NoError(t, err)
		require.Len(t, page.Docs, want, combination(mask))
		require.EqualValues(t, want, page.Total, combination(mask))
	}
}

// measured reads an export, and measures how much memory is in use meanwhile.
type measured struct {
	lines, writes int
	most          uint64
}

func (m *measured) Write(b []byte) (int, error) {
	m.lines += strings.Count(string(b), "\n")
	if m.writes++; m.writes%50 == 0 {
		debug.FreeOSMemory()
		m.most = max(m.most, inUse())
	}
	return len(b), nil
}

func inUse() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// An export of many entries, here some 20 MiB, takes little memory. It runs alone, because memory is the program's.
func TestExportTakesLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	ctx, store := open(t)
	defer func() { require.NoError(t, store.Close()) }()
	const n = 30_000
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		var list []*Entry
		for i := range n {
			list = append(list, sample(i))
		}
		return insert(ctx, tx, list)
	}))
	debug.FreeOSMemory()
	before, reader := inUse(), &measured{}
	log := Log{Store: store}
	require.NoError(t, log.Export(ctx, Filter{}, reader))
	require.Equal(t, n, reader.lines)
	require.Greater(t, reader.writes, 100)
	require.Less(t, reader.most, before+5<<20)
}
