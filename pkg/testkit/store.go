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
	engine, _ := newEngine(t, Options{})
	store, err := docstore.Open(context.Background(), engine, clk, defs...)
	require.NoError(t, err)
	return store
}

// newEngine opens what the options name, or a database for the test.
func newEngine(t testing.TB, o Options) (engine docstore.Engine, commands *commandCounter) {
	t.Helper()
	ctx := context.Background()
	var err error
	if uri := os.Getenv("IDP_TEST_MONGO_URI"); uri != "" && o.File == "" {
		commands = &commandCounter{of: map[string]int{}}
		if o.Database == "" {
			o.Database = NewDatabase()
		}
		engine, err = mongostore.Open(ctx, mongostore.Options{
			URI: uri, Database: o.Database, Log: Log(t), Monitor: commands.monitor(),
		})
	} else {
		if o.File == "" {
			o.File = t.TempDir() + "/test.db"
		}
		engine, err = sqlitestore.Open(ctx, sqlitestore.Options{Path: o.File, Log: Log(t)})
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	return engine, commands
}

// NewDatabase makes a name for Options.Database.
func NewDatabase() string {
	return "test_" + strings.ToLower(strings.NewReplacer("-", "a", "_", "b").Replace(secret.Token(12)))
}

// borrowed is an engine that another store has prepared and will close.
type borrowed struct{ docstore.Engine }

func (borrowed) Prepare(context.Context, []*docstore.Def) error { return nil }
func (borrowed) Close() error                                   { return nil }
