package basic

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Store opens a store for the test.
func Store(t testing.TB, clk clock.Clock, defs ...*docstore.Def) *docstore.Store {
	t.Helper()
	store, err := docstore.Open(context.Background(), Engine(t, Place{}), clk, defs...)
	require.NoError(t, err)
	return store
}

// Place says where an Engine has its documents: without a member, in a new database of the test.
type Place struct {
	File     string // of SQLite, also if there is a MongoDB
	Database string // of MongoDB
	Monitor  *event.CommandMonitor
}

// OnMongoDB reports whether tests run on the MongoDB that IDP_TEST_MONGO_URI names, and not on SQLite.
func OnMongoDB() bool { return os.Getenv("IDP_TEST_MONGO_URI") != "" }

// Engine opens an engine for the test, which closes it.
func Engine(t testing.TB, p Place) docstore.Engine {
	t.Helper()
	ctx := context.Background()
	var engine docstore.Engine
	var err error
	if OnMongoDB() && p.File == "" {
		if p.Database == "" {
			p.Database = NewDatabase()
		}
		engine, err = mongostore.Open(ctx, mongostore.Options{
			URI: os.Getenv("IDP_TEST_MONGO_URI"), Database: p.Database, Log: Log(t), Monitor: p.Monitor,
			Select: wait.Long,
		})
	} else {
		if p.File == "" {
			p.File = t.TempDir() + "/test.db"
		}
		engine, err = sqlitestore.Open(ctx, sqlitestore.Options{Path: p.File, Log: Log(t)})
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	if os.Getenv("IDP_TEST_TWICE") != "" {
		return twice{engine}
	}
	return engine
}

// NewDatabase makes a name for Place.Database.
func NewDatabase() string {
	return "test_" + strings.ToLower(strings.NewReplacer("-", "a", "_", "b").Replace(secret.Token(12)))
}
