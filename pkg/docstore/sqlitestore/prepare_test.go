package sqlitestore_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
)

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	require.NoError(t, f.Close())
	f.script(t, "UPDATE meta SET value = '2' WHERE name = 'format'")
	_, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path})
	require.ErrorContains(t, err, "format 2")
	require.ErrorContains(t, err, "up to 1")
}

// SQLite keeps in memory what a savepoint may have to restore. For a rebuilt collection that is all of it, which may be
// more than there is memory.
func TestUpgradeNeedsNoSavepoint(t *testing.T) {
	t.Parallel()
	f := open(t)
	require.NoError(t, f.insert(tenant(t), newNote(1)))
	require.NoError(t, f.Close())
	f = openAt(t, f.path, docstore.Define(noteSchema(2)))
	require.Zero(t, f.spy.count("SAVEPOINT turn"))
	require.Positive(t, f.spy.count(`DROP TABLE "c_notes#old"`), "this test must rebuild something")
	require.NoError(t, f.Check(t.Context()))
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "no such folder",
		"x.db")})
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sqlitestore.Open(ctx, sqlitestore.Options{Path: filepath.Join(t.TempDir(), "x.db")})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDeclarationsAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "Notes", "1notes", "no-tes", `n"`, "notes.words"} {
		f := open(t)
		require.Error(t, f.engine.Prepare(t.Context(), []*docstore.Def{{Name: bad}}), "%q", bad)
		require.Error(t, f.engine.Prepare(t.Context(),
			[]*docstore.Def{{Name: "x", Indexes: []docstore.IndexDef{{Name: bad}}}}), "%q", bad)
	}
	f := open(t)
	require.ErrorContains(t, f.engine.Prepare(t.Context(), []*docstore.Def{notes.Def(), notes.Def()}), "twice")
	_, err := f.engine.Count(t.Context(), &docstore.Def{Name: "others"}, "t1", docstore.Filter{}, 0)
	require.ErrorContains(t, err, "others")
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	t.Parallel()
	f := open(t)
	require.NoError(t, f.insert(tenant(t), newNote(1)))
	copyTo(t, f.engine, f.path+".copy")
	files, err := filepath.Glob(filepath.Join(filepath.Dir(f.path), "*"))
	require.NoError(t, err)
	require.Len(t, files, 4, "the file, its log, its index of the log, the copy")
	for _, file := range files {
		if strings.HasSuffix(file, "-shm") {
			continue // it contains page numbers only
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), file)
	}
}

// TestFailedRebuild: a declaration that contradicts the documents changes nothing.
func TestFailedRebuild(t *testing.T) {
	t.Parallel()
	f := open(t)
	require.NoError(t, f.insert(tenant(t), newNote(1), newNote(8)))
	require.NoError(t, f.Close())

	strict := noteSchema(2)
	strict.Indexes[0] = docstore.Unique(strict.Indexes[0], "title") // both have the same title
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = docstore.Open(t.Context(), engine, clock.System, docstore.Define(strict).Def())
	var dup *docstore.DuplicateError
	require.ErrorAs(t, err, &dup)
	require.Equal(t, "title", dup.Index)
	require.ErrorContains(t, err, "notes")
	require.NoError(t, engine.Close())

	again := openAt(t, f.path, notes)
	require.EqualValues(t, 2, again.count(t))
	require.NoError(t, again.Check(t.Context()))
}

func TestRebuildIsLoggedAndKeepsBytes(t *testing.T) {
	t.Parallel()
	f := open(t)
	require.NoError(t, f.insert(tenant(t), newNote(1), newNote(2)))
	require.NoError(t, f.Close())
	// A member that the type no longer has.
	f.script(t,
		`UPDATE c_notes SET doc = CAST(replace(CAST(doc AS TEXT), '"title"', '"former":"kept","title"') AS BLOB)`)

	var log strings.Builder
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, docstore.Define(noteSchema(2)).Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.Contains(t, log.String(), "collection=notes documents=2")
	rows, err := engine.Get(t.Context(), notes.Def(), "t1", []string{"10001"})
	require.NoError(t, err)
	require.Contains(t, string(rows[0].Data), `"former":"kept"`)
	require.NoError(t, store.Check(t.Context()))
}
