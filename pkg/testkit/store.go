package testkit

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Store opens a store for the test. A service that is started on it closes it.
func Store(t testing.TB, clk clock.Clock, defs ...*docstore.Def) *docstore.Store {
	t.Helper()
	engine, _ := newEngine(t, "")
	store, err := docstore.Open(context.Background(), engine, clk, defs...)
	require.NoError(t, err)
	return store
}

// newEngine opens the SQLite file, or a database for the test if file is "".
func newEngine(t testing.TB, file string) (engine docstore.Engine, commands *commandCounter) {
	t.Helper()
	ctx := context.Background()
	var err error
	if uri := os.Getenv("IDP_TEST_MONGO_URI"); uri != "" && file == "" {
		commands = &commandCounter{of: map[string]int{}}
		name := "test_" + strings.ToLower(strings.NewReplacer("-", "a", "_", "b").Replace(secret.Token(12)))
		engine, err = mongostore.Open(ctx, mongostore.Options{
			URI: uri, Database: name, Log: Log(t), Monitor: commands.monitor(),
		})
	} else {
		if file == "" {
			file = t.TempDir() + "/test.db"
		}
		engine, err = sqlitestore.Open(ctx, sqlitestore.Options{Path: file, Log: Log(t)})
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	return engine, commands
}

// borrowed is an engine that another store has prepared and will close.
type borrowed struct{ docstore.Engine }

func (borrowed) Prepare(context.Context, []*docstore.Def) error { return nil }
func (borrowed) Close() error                                   { return nil }
