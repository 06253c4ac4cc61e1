package sqlitestore_test

import (
	"flag"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/docstoretest"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) {
	// 20 random runs, unless the command line asks for more; each does about 30 transactions.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	leaks.Main(m)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	var paths sync.Map // by engine, for Reopen
	open := func(t *testing.T, path string) docstore.Engine {
		e, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		paths.Store(e, path)
		return e
	}
	docstoretest.Run(t,
		func(t *testing.T) docstore.Engine { return open(t, filepath.Join(t.TempDir(), "test.db")) },
		docstoretest.Options{Reopen: func(t *testing.T, closed docstore.Engine) docstore.Engine {
			path, _ := paths.Load(closed)
			return open(t, path.(string))
		}})
}
