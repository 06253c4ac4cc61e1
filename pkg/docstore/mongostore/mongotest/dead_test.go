package mongotest

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

// The environment of a process that is to be killed in the middle of a change.
const (
	envDyingURI      = "MONGOTEST_DYING_URI"
	envDyingDatabase = "MONGOTEST_DYING_DATABASE"
)

const held = "the transaction has written"

// A process that is killed between a transaction's writes and its commit stops nobody: what it wrote is free long
// before the server would end its transaction. The simulated server would do so after an hour.
func TestDeadProcess(t *testing.T) {
	t.Parallel()
	for name, uri := range map[string]func(*testing.T) string{
		"simulated": func(t *testing.T) string {
			return simulated(t, replicaset.Options{Lifetime: time.Hour}).URI()
		},
		"simulated, without bulkWrite": func(t *testing.T) string {
			return simulated(t, replicaset.Options{Lifetime: time.Hour, Wire: 21}).URI()
		},
		"MongoDB": func(t *testing.T) string { return MongoDB(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			survive(t, newDatabases(uri(t)))
		})
	}
}

func survive(t *testing.T, dbs *databases) {
	t.Helper()
	name := "test-" + bson.NewObjectID().Hex()
	t.Cleanup(func() { drop(t, dbs.options.URI, name) })
	store := openStore(t, dbs.openNamed(t, name), first)
	insert(t, store, first, newNote("common", "at first"))

	dying := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDyingProcess$")
	dying.Env = append(os.Environ(), envDyingURI+"="+dbs.options.URI, envDyingDatabase+"="+name)
	out, err := dying.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, dying.Start())
	for lines := bufio.NewScanner(out); ; {
		require.True(t, lines.Scan(), "the process has ended by itself")
		if lines.Text() == held {
			break
		}
	}
	require.NoError(t, dying.Process.Kill())
	require.Error(t, dying.Wait())

	require.NoError(t, write(store, "of the survivor", nil))
	doc, err := first.Find(system(), store, "common")
	require.NoError(t, err)
	v, err := doc.Value()
	require.NoError(t, err)
	require.Equal(t, "of the survivor", v.Text)
	require.Empty(t, ids(t, store, first, docstore.ID("new")), "of the dead process")
}

// A process begins although another has died between its messages and the commit: it makes no index that is there,
// because that would wait for the transaction.
func TestOpenBesideADeadTransaction(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(simulated(t, replicaset.Options{Lifetime: time.Hour}).URI())
	name := "test-" + bson.NewObjectID().Hex()
	t.Cleanup(func() { drop(t, dbs.options.URI, name) })
	openStore(t, dbs.openNamed(t, name), first)
	client, err := mongo.Connect(options.Client().ApplyURI(dbs.options.URI))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	session, err := client.StartSession()
	require.NoError(t, err)
	t.Cleanup(func() { session.EndSession(context.Background()) })
	require.NoError(t, session.StartTransaction(options.Transaction().
		SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())))
	for _, collection := range []string{"docstore.outbox", "docstore.schemas", "docstore.counts", first.Def().Name} {
		_, err := client.Database(name).Collection(collection).InsertOne(mongo.NewSessionContext(t.Context(), session),
			bson.D{{Key: "_id", Value: "dead"}})
		require.NoError(t, err, collection)
	}
	openStore(t, dbs.openNamed(t, name), first)
}

// write changes the common note and calls then before the commit.
func write(store *docstore.Store, text string, then func(*docstore.Tx) error) error {
	return docstore.Do(system(), store, func(tx *docstore.Tx) error {
		common, err := first.Load(system(), tx, "common")
		if err != nil {
			return err
		}
		common.Text = text
		if _, err = first.Replace(system(), tx, common); err != nil || then == nil {
			return err
		}
		return then(tx)
	})
}

// TestDyingProcess is the process that TestDeadProcess kills.
func TestDyingProcess(t *testing.T) {
	uri := os.Getenv(envDyingURI)
	if uri == "" {
		t.Skip("TestDeadProcess runs this one in its own process")
	}
	engine, err := mongostore.Open(t.Context(), mongostore.Options{URI: uri, Database: os.Getenv(envDyingDatabase),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	require.NoError(t, write(openStore(t, engine, first), "of the dead", func(tx *docstore.Tx) error {
		if _, err := first.Insert(system(), tx, newNote("new", "of the dead")); err != nil {
			return err
		}
		if _, err := first.Count(system(), tx, docstore.Filter{}); err != nil { // sends the writes
			return err
		}
		fmt.Println(held)
		<-context.Background().Done() // never
		return nil
	}))
}
