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

// open opens the store of a log with the collections of a version of the program. The context is that of tenant acme.
func open(t *testing.T, path string, collections ...*docstore.Def) (context.Context, *docstore.Store) {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, collections...)
	require.NoError(t, err)
	return request.System(t.Context(), "acme"), store
}

// firstEntries is the log's collection as the first version defined it.
var firstEntries = docstore.Define(docstore.Schema[Entry]{
	Name: "audit_log", Noun: "audit log entry", Sortable: []string{byTime},
	Indexes: []docstore.Index[Entry]{
		docstore.ByText(byEvent, func(e *Entry) string { return e.EventID }),
		docstore.ByNumber(byTime, func(e *Entry) docstore.Value { return docstore.Moment(e.Time) }),
		docstore.ByText("actor", func(e *Entry) string { return e.Actor + "\x00" + e.Time.String() }),
		docstore.ByText(byRecord, func(e *Entry) string { return e.Record + "\x00" + e.Time.String() }),
		docstore.ByText(byKind, func(e *Entry) string { return e.Entity + "." + e.Action + "\x00" + e.Time.String() }),
	},
})

// All filters find the entries of a log of the first version, which had other indexes and no kinds.
func TestLogOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/audit.db"
	ctx, store := open(t, path, firstEntries.Def())
	const n = 1000
	var all []*Entry
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		all = nil
		for i := range n {
			all = append(all, sample(i))
			if _, err := firstEntries.Insert(ctx, tx, sample(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, store.Close())

	ctx, store = open(t, path, Collections()...)
	defer func() { require.NoError(t, store.Close()) }()
	require.NoError(t, learnKinds(ctx, store))
	log := Log{Store: store}
	for mask := range 1 << len(filterNames) {
		filter, want := filterLike(all[n/2+1], mask), 0
		for _, entry := range all {
			if filter.selects(entry) {
				want++
			}
		}
		require.Positive(t, want)
		page, err := log.List(ctx, filter, docstore.Paging{Num: 1, Size: n, Count: true})
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
	ctx, store := open(t, t.TempDir()+"/audit.db", Collections()...)
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
