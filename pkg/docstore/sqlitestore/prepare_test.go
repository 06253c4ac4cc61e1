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
	f.script(t, "UPDATE meta SET value = '6' WHERE name = 'format'")
	_, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path})
	require.ErrorContains(t, err, "format 6")
	require.ErrorContains(t, err, "up to 5")
}

// A file of format 1 has other row ids. It is written again when it is opened.
func TestOlderFormatIsUpgraded(t *testing.T) {
	t.Parallel()
	f := open(t)
	for i := range 5 {
		require.NoError(t, f.insert(tenant(t), newNote(i)))
	}
	f.script(t, "UPDATE c_notes SET rid = rid + 1000", `UPDATE "c_notes.words" SET first = first + 1000`,
		`UPDATE "c_notes.keys" SET rid = rid + 1000`)
	require.ErrorContains(t, f.Check(t.Context()), "has row")
	require.NoError(t, f.Close())
	f.script(t, "ALTER TABLE c_notes DROP COLUMN counts", "UPDATE meta SET value = '1' WHERE name = 'format'",
		`UPDATE meta SET value = json_remove(value, '$.Format') WHERE name = 'collection notes'`)
	f = openAt(t, f.path, notes)
	require.NoError(t, f.Check(t.Context()))
	require.EqualValues(t, 5, f.count(t))
	doc, err := notes.Find(tenant(t), f.Store, "10003")
	require.NoError(t, err)
	require.EqualValues(t, 1, doc.Version)
}

// A file of format 3 has a row for each word of each document. Its collections with postings are written again.
func TestPostingsAreMade(t *testing.T) {
	t.Parallel()
	f := open(t)
	for i := range 50 {
		require.NoError(t, f.insert(tenant(t), newNote(i)))
	}
	require.NoError(t, f.Close())
	f.script(t, `DROP TABLE "c_notes.words"`,
		`CREATE TABLE "c_notes.words" (tenant TEXT NOT NULL, value TEXT NOT NULL, `+
			`rid INTEGER NOT NULL, PRIMARY KEY (tenant, value, rid)) WITHOUT ROWID, STRICT`,
		`INSERT INTO "c_notes.words" SELECT tenant, 'all', rid FROM c_notes`,
		"ALTER TABLE counters DROP COLUMN changes", "UPDATE meta SET value = '3' WHERE name = 'format'",
		`UPDATE meta SET value = json_set(value, '$.Format', 2) WHERE name = 'collection notes'`)
	f = openAt(t, f.path, notes)
	require.NoError(t, f.Check(t.Context()))
	page, err := notes.Page(tenant(t), f.Store, docstore.Query{Filter: docstore.Eq("words", docstore.Text("all")),
		Limit: 3, Count: true})
	require.NoError(t, err)
	require.EqualValues(t, 50, page.Total)
}

// A file of format 2 has documents without counts. The column is added to the existing tables, in one transaction with
// everything else.
func TestCountsAreAdded(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := tenant(t)
	require.NoError(t, f.insert(ctx, newNote(1), newNote(8)))
	require.NoError(t, f.Close())
	f.script(t, "ALTER TABLE c_notes DROP COLUMN counts", "UPDATE meta SET value = '2' WHERE name = 'format'")

	strict := noteSchema(2)
	strict.Indexes[0] = docstore.Unique(strict.Indexes[0], "title") // both have the same title
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = docstore.Open(t.Context(), engine, clock.System, docstore.Define(strict).Def())
	require.Error(t, err)
	require.NoError(t, engine.Close())
	f.script(t, "ALTER TABLE c_notes ADD COLUMN counts ANY",
		"ALTER TABLE c_notes DROP COLUMN counts") // it fails if the column exists

	var log strings.Builder
	engine, err = sqlitestore.Open(t.Context(), sqlitestore.Options{Path: f.path,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	f.Store, err = docstore.Open(t.Context(), engine, clock.System, notes.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Empty(t, log.String(), "no collection is written again")
	require.NoError(t, f.Check(ctx))
	revised, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[note], error) {
		n, err := notes.Load(ctx, tx, "10001")
		if err != nil {
			return docstore.Doc[note]{}, err
		}
		return notes.Revise(ctx, tx, n)
	})
	require.NoError(t, err)
	require.Equal(t, docstore.Stamp{Version: 1, Counts: 1}, revised.Stamp)
	found, err := notes.FindMany(ctx, f.Store, []string{"10001", "10008"})
	require.NoError(t, err)
	require.EqualValues(t, 3, found[0].Revision()+found[1].Revision())
	require.NoError(t, f.Check(ctx))
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
