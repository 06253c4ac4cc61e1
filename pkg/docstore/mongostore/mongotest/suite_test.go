package mongotest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/docstoretest"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
)

func TestMongoDB(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(MongoDB(t))
	t.Run("suite", func(t *testing.T) {
		docstoretest.Run(t, dbs.open, docstoretest.Options{SkipPhantoms: phantoms, Reopen: dbs.reopen})
	})
	t.Run("engine", func(t *testing.T) { runEngineCases(t, dbs) })
}

// phantoms is why transactions do not notice what others add, on any server.
const phantoms = "MongoDB has snapshot isolation, and two transactions that query and insert need not write a common " +
	"index key: both sides must change a common document, as in absence/with a common document"

// databases makes an engine on a new database for each test.
type databases struct {
	options mongostore.Options

	mu    sync.Mutex
	names map[docstore.Engine]string
}

func newDatabases(uri string) *databases {
	return &databases{options: mongostore.Options{URI: uri}, names: map[docstore.Engine]string{}}
}

func (d *databases) open(t *testing.T) docstore.Engine {
	t.Helper()
	name := "test-" + bson.NewObjectID().Hex()
	t.Cleanup(func() { drop(t, d.options.URI, name) })
	return d.openNamed(t, name)
}

func (d *databases) reopen(t *testing.T, closed docstore.Engine) docstore.Engine {
	t.Helper()
	d.mu.Lock()
	name := d.names[closed]
	d.mu.Unlock()
	return d.openNamed(t, name)
}

func (d *databases) openNamed(t *testing.T, name string) docstore.Engine {
	t.Helper()
	o := d.options
	o.Database, o.Log = name, slog.New(slog.NewTextHandler(t.Output(), nil))
	engine, err := mongostore.Open(t.Context(), o)
	require.NoError(t, err)
	d.mu.Lock()
	d.names[engine] = name
	d.mu.Unlock()
	return engine
}

func drop(t *testing.T, uri, name string) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	require.NoError(t, err)
	require.NoError(t, client.Database(name).Drop(context.Background()))
	require.NoError(t, client.Disconnect(context.Background()))
}
