package moderncdriver_test

import (
	"flag"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/docstoretest"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore/moderncdriver"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string, driver sqlitestore.Driver) *sqlitestore.Engine {
	t.Helper()
	e, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path, Driver: driver,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return e
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var paths sync.Map // by engine, for Reopen
	at := func(t *testing.T, path string) docstore.Engine {
		e := open(t, path, moderncdriver.Open)
		paths.Store(e, path)
		return e
	}
	docstoretest.Run(t,
		func(t *testing.T) docstore.Engine { return at(t, filepath.Join(t.TempDir(), "a file?.db")) },
		docstoretest.Options{Reopen: func(t *testing.T, closed docstore.Engine) docstore.Engine {
			path, _ := paths.Load(closed)
			return at(t, path.(string))
		}})
}

// TestFilesAreInterchangeable: changing from one driver to the other, and back, needs no more than opening the file.
func TestFilesAreInterchangeable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	for i, driver := range []sqlitestore.Driver{moderncdriver.Open, sqlitestore.Default, moderncdriver.Open} {
		e := open(t, path, driver)
		store, err := docstore.Open(t.Context(), e, clock.System, docstoretest.Things.Def())
		require.NoError(t, err)
		require.NoError(t, store.Check(t.Context()))
		n, err := e.Reserve(t.Context(), "s", 1)
		require.NoError(t, err)
		require.EqualValues(t, i+1, n)
		require.NoError(t, e.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")))
		require.NoError(t, store.Close())
	}
}
