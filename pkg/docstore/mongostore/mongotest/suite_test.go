package mongotest

import (
	"context"
	"log/slog"
	"strings"
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

// ferretCannot has the reason for each case that FerretDB 1.24 fails whatever the engine sends, by the subtest's name.
var ferretCannot = map[string]string{
	"filters/prefixes":        noElemMatch,
	"keys/awkward_characters": noElemMatch,
	"searches/random_texts":   noElemMatch,

	"unique/one_value":                                 noPartialIndexes,
	"unique/each_of_a_list":                            noPartialIndexes,
	"unique/freed_by_delete_and_replace":               noPartialIndexes,
	"unique/in_a_replace":                              noPartialIndexes,
	"unique/32_at_once/index_code":                     noPartialIndexes,
	"tenants/unique_values_are_per_tenant":             noPartialIndexes,
	"reopened/all_documents_are_there":                 noPartialIndexes,
	"reopened/another_revision":                        noPartialIndexes,
	"reopened/one_index_added,_one_removed,_one_moved": noPartialIndexes,

	"unique/32_at_once/index_logins": noPartialIndexes,

	"counts/of_a_facet_that_is_new":                  manyUpdates,
	"counts/of_an_index_that_is_counted_from_now_on": manyUpdates,
	"reopened/an_index_of_another_type":              manyUpdates,

	"write/delete_where": "FerretDB 1.24 deletes some 20 documents a second",

	"concurrency/no_update_is_lost":             notAtomic,
	"concurrency/one_of_two_deletes_succeeds":   notAtomic,
	"messages/those_of_one_record_are_in_order": notAtomic,
	"write/numbers_from_a_sequence":             notAtomic,
	"write/new_ids":                             notAtomic,
	"revisions/counts_by_many_callers":          notAtomic,
	"contexts/cancelled_while_others_write":     "without transactions a cancelled insert may have been done",
}

const (
	noElemMatch      = "FerretDB 1.24: $elemMatch lets each condition be met by another element"
	noPartialIndexes = "FerretDB 1.24 has no partial indexes, so nothing enforces uniqueness"
	manyUpdates      = "FerretDB 1.24 blocks itself on an update command with many updates"
	notAtomic        = "FerretDB 1.24: findAndModify reads and writes in two steps"
)

var ferretLacks = map[docstoretest.Feature]string{
	docstoretest.Transactions:    "FerretDB 1.24 is a standalone server",
	docstoretest.Serializable:    "FerretDB 1.24 is a standalone server",
	docstoretest.UniqueIfPresent: noPartialIndexes,
	docstoretest.NulInText:       noElemMatch,
}

func TestFerretDB(t *testing.T) {
	t.Parallel()
	uri := FerretDB(t)
	var mu sync.Mutex
	skipped := map[string]bool{}
	dbs := newDatabases(uri, true)
	t.Run("suite", func(t *testing.T) {
		docstoretest.Run(t, func(t *testing.T) docstore.Engine {
			_, name, _ := strings.Cut(t.Name(), "/suite/")
			if reason := ferretCannot[name]; reason != "" {
				mu.Lock()
				skipped[name] = true
				mu.Unlock()
				t.Skip(reason)
			}
			return dbs.open(t)
		}, docstoretest.Options{Lacks: ferretLacks, Reopen: dbs.reopen})
	})
	t.Run("engine", func(t *testing.T) { runEngineCases(t, dbs) })
	t.Run("is refused", func(t *testing.T) {
		_, err := mongostore.Open(t.Context(), mongostore.Options{URI: uri, Database: "db",
			Log: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, "replica set")
	})
	for name := range ferretCannot {
		require.True(t, skipped[name], "%s is not the name of a case", name)
	}
}

func TestMongoDB(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(MongoDB(t), false)
	t.Run("suite", func(t *testing.T) {
		docstoretest.Run(t, dbs.open, docstoretest.Options{Lacks: mongoLacks, Reopen: dbs.reopen})
	})
	t.Run("engine", func(t *testing.T) { runEngineCases(t, dbs) })
}

// mongoLacks are the features that mongostore lacks on any server.
var mongoLacks = map[docstoretest.Feature]string{
	docstoretest.Phantoms: "MongoDB has snapshot isolation, and two transactions that query and insert need not " +
		"write a common index key: both sides must change a common document, as in absence/with a common document",
}

// databases makes an engine on a new database for each test.
type databases struct {
	options mongostore.Options

	mu    sync.Mutex
	names map[docstore.Engine]string
}

func newDatabases(uri string, standalone bool) *databases {
	return &databases{options: mongostore.Options{URI: uri, AllowStandalone: standalone},
		names: map[docstore.Engine]string{}}
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
