package mongotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// note is a document with an index that the tests change.
type note struct {
	docstore.Meta
	Text  string     `json:"text"`
	Tags  []string   `json:"tags"`
	Until clock.Time `json:"until"`
}

func byText(v *note) string   { return v.Text }
func byFolded(v *note) string { return strings.ToLower(v.Text) }
func byTags(v *note) []string { return v.Tags }
func due(v *note) clock.Time  { return v.Until }
func system() context.Context { return request.System(context.Background(), "t1") }
func newNote(id, s string) *note {
	return &note{Meta: docstore.Meta{ID: id}, Text: s, Tags: []string{"x"}}
}

func notes(revision int, indexes ...docstore.Index[note]) *docstore.Collection[note] {
	return docstore.Define(docstore.Schema[note]{Name: "notes", Noun: "note", Revision: revision, Due: due,
		Indexes: indexes})
}

var (
	first  = notes(1, docstore.ByText("text", byText), docstore.ByList("tags", byTags))
	second = notes(2, docstore.ByText("text", byFolded))
)

// engineCases run on every server.
var engineCases = map[string]func(*testing.T, *databases){
	"documents are readable":          documentsAreReadable,
	"a changed declaration":           changedDeclaration,
	"replicas start at the same time": replicasStartAtOnce,
	"a failed write is undone":        failedWriteIsUndone,
	"check finds damage":              checkFindsDamage,
	"clocks that differ":              clocksThatDiffer,
	"messages of another process":     messagesOfAnother,
}

func runEngineCases(t *testing.T, dbs *databases) {
	t.Helper()
	for name, test := range engineCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, dbs)
		})
	}
}

func openStore(t *testing.T, engine docstore.Engine, c *docstore.Collection[note]) *docstore.Store {
	t.Helper()
	store, err := docstore.Open(t.Context(), engine, clock.System, c.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func insert(t *testing.T, store *docstore.Store, c *docstore.Collection[note], all ...*note) {
	t.Helper()
	_, err := docstore.Write(system(), store, func(tx *docstore.Tx) (any, error) {
		for _, v := range all {
			if _, err := c.Insert(system(), tx, v); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	require.NoError(t, err)
}

// raw is the database as other tools see it.
func raw(t *testing.T, dbs *databases, engine docstore.Engine) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(dbs.options.URI))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Disconnect(context.Background())) })
	dbs.mu.Lock()
	defer dbs.mu.Unlock()
	return client.Database(dbs.names[engine])
}

func ids(t *testing.T, store *docstore.Store, c *docstore.Collection[note], f docstore.Filter) []string {
	t.Helper()
	page, err := c.Page(system(), store, docstore.Query{Filter: f, Limit: 100})
	require.NoError(t, err)
	list := []string{}
	for _, d := range page.Docs {
		list = append(list, d.ID)
	}
	return list
}

func documentsAreReadable(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	store := openStore(t, engine, first)
	at := clock.FromMillis(1_800_000_000_123)
	v := newNote("a", "京")
	v.Until = at
	insert(t, store, first, v)
	var stored bson.D
	require.NoError(t, raw(t, dbs, engine).Collection("notes").
		FindOne(t.Context(), bson.D{{Key: "_id", Value: "t1/a"}}).Decode(&stored))
	created := bson.DateTime(v.TimeCreated.Millis())
	require.Equal(t, bson.D{
		{Key: "_id", Value: "t1/a"}, {Key: "id", Value: "a"}, {Key: "tenant_id", Value: "t1"},
		{Key: "version", Value: int64(1)},
		{Key: "time_created", Value: created}, {Key: "time_modified", Value: created},
		{Key: "text", Value: "京"}, {Key: "tags", Value: bson.A{"x"}}, {Key: "until", Value: bson.DateTime(at.Millis())},
		{Key: "_due", Value: bson.DateTime(at.Millis())},
		{Key: "_ix", Value: bson.D{{Key: "text", Value: "京"}, {Key: "tags", Value: bson.A{"x"}}}},
	}, stored)
}

func changedDeclaration(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	store := openStore(t, engine, first)
	insert(t, store, first, newNote("a", "ADA"), newNote("b", "bo"), newNote("c", "ada"))
	db := raw(t, dbs, engine)
	_, err := db.Collection("notes").Indexes().CreateOne(t.Context(),
		mongo.IndexModel{Keys: bson.D{{Key: "text", Value: 1}}, Options: options.Index().SetName("by hand")})
	require.NoError(t, err)

	again := openStore(t, dbs.reopen(t, engine), second)
	ada := docstore.Eq("text", docstore.Text("ada"))
	require.Equal(t, []string{"a", "c"}, ids(t, again, second, ada))
	require.NoError(t, again.Check(t.Context()))
	specs, err := db.Collection("notes").Indexes().ListSpecifications(t.Context())
	require.NoError(t, err)
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	require.Contains(t, names, "order.text")
	require.Contains(t, names, "by hand", "an operator's index is not dropped")
	require.NotContains(t, names, "list.tags", "it is no longer declared")

	back := openStore(t, dbs.reopen(t, engine), first)
	require.Equal(t, []string{"c"}, ids(t, back, first, ada))
	require.Equal(t, []string{"a", "b", "c"}, ids(t, back, first, docstore.Eq("tags", docstore.Text("x"))))
}

// replicasStartAtOnce: several replicas start at the same time, on an empty database and on one with an older
// declaration.
func replicasStartAtOnce(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	start := func(c *docstore.Collection[note]) {
		t.Helper()
		replicas := []docstore.Engine{engine}
		for range 3 {
			replicas = append(replicas, dbs.reopen(t, engine))
		}
		var starting errgroup.Group
		for _, e := range replicas {
			starting.Go(func() error { return e.Prepare(t.Context(), []*docstore.Def{c.Def()}) })
		}
		require.NoError(t, starting.Wait())
		for _, e := range replicas {
			require.NoError(t, e.Check(t.Context()))
		}
		for _, e := range replicas[1:] {
			require.NoError(t, e.Close())
		}
	}
	start(first)
	store := openStore(t, dbs.reopen(t, engine), first)
	insert(t, store, first, newNote("a", "ADA"), newNote("b", "ada"))
	start(second)
	changed := openStore(t, engine, second)
	require.Equal(t, []string{"a", "b"}, ids(t, changed, second, docstore.Eq("text", docstore.Text("ada"))))
}

// failedWriteIsUndone: what a failed write did is undone, even without transactions.
func failedWriteIsUndone(t *testing.T, dbs *databases) {
	store := openStore(t, dbs.open(t), first)
	insert(t, store, first, newNote("replaced", "old"), newNote("deleted", "old"))
	failure := errors.New("stop")
	_, err := docstore.Write(system(), store, func(tx *docstore.Tx) (any, error) {
		if _, err := first.Insert(system(), tx, newNote("inserted", "new")); err != nil {
			return nil, err
		}
		replaced, err := first.Load(system(), tx, "replaced")
		if err != nil {
			return nil, err
		}
		for i := range 2 {
			replaced.Text = fmt.Sprint("new", i)
			if _, err := first.Replace(system(), tx, replaced); err != nil {
				return nil, err
			}
		}
		if _, err := first.Delete(system(), tx, replaced); err != nil {
			return nil, err
		}
		deleted, err := first.Load(system(), tx, "deleted")
		if err != nil {
			return nil, err
		}
		if _, err := first.Delete(system(), tx, deleted); err != nil {
			return nil, err
		}
		if err := tx.Append(system(), docstore.Message{ID: "m"}); err != nil {
			return nil, err
		}
		return nil, failure
	})
	require.Equal(t, failure, err)
	require.Equal(t, []string{"deleted", "replaced"}, ids(t, store, first, docstore.Eq("text", docstore.Text("old"))))
	require.Equal(t, []string{"deleted", "replaced"}, ids(t, store, first, docstore.Filter{}))
	backlog, err := store.Backlog(t.Context())
	require.NoError(t, err)
	require.Zero(t, backlog)
}

func checkFindsDamage(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	store := openStore(t, engine, first)
	insert(t, store, first, newNote("a", "old"))
	require.NoError(t, store.Check(t.Context()))
	collection := raw(t, dbs, engine).Collection("notes")
	_, err := collection.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "t1/a"}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "text", Value: "by hand"}}}})
	require.NoError(t, err)
	require.ErrorContains(t, store.Check(t.Context()), "t1/a")
	require.NoError(t, collection.Indexes().DropOne(t.Context(), "order.text"))
	require.ErrorContains(t, store.Check(t.Context()), "order.text")
}

// clocksThatDiffer: messages have numbers from the clocks of their processes. Those about one record come in the order
// of its sequences.
func clocksThatDiffer(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	store := openStore(t, engine, first)
	outbox := raw(t, dbs, engine).Collection("docstore.outbox")
	add := func(number int64, record string, sequence int64) {
		row := bson.D{{Key: "_id", Value: number}, {Key: "event_id", Value: fmt.Sprint(record, "/", sequence)},
			{Key: "subject", Value: "s"}, {Key: "record", Value: record}, {Key: "payload", Value: []byte("{}")},
			{Key: "sequence", Value: sequence}}
		_, err := outbox.InsertOne(t.Context(), row)
		require.NoError(t, err)
	}
	pending := func(after int64, limit int) (ids []string) {
		list, err := store.Pending(t.Context(), after, limit)
		require.NoError(t, err)
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		return ids
	}
	const now = 1 << 57
	add(now+1, "a", 30) // made by a process whose clock is slow
	add(now+2, "b", 20)
	add(now+3, "a", 10)
	add(now+4, "c", 10)
	add(now+5, "a", 20)
	require.Equal(t, []string{"a/10", "b/20", "a/20", "c/10", "a/30"}, pending(0, 10))
	require.Equal(t, []string{"a/10", "b/20", "a/20", "a/30"}, pending(0, 3), "earlier ones from another page")
	require.Equal(t, []string{"c/10", "a/10", "a/20"}, pending(now+3, 2))
	require.NoError(t, store.Published(t.Context(), []int64{now + 3}))
	require.Equal(t, []string{"a/20", "b/20", "c/10", "a/30"}, pending(0, 10))
}

// messagesOfAnother: a relay leaves to another process what that one has appended, for a while.
func messagesOfAnother(t *testing.T, dbs *databases) {
	engine := dbs.open(t)
	one := openStore(t, engine, first)
	two := openStore(t, dbs.reopen(t, engine), first)
	for id, store := range map[string]*docstore.Store{"one": one, "two": two} {
		_, err := docstore.Write(system(), store, func(tx *docstore.Tx) (any, error) {
			return nil, tx.Append(system(), docstore.Message{ID: id, Subject: "s", Record: id})
		})
		require.NoError(t, err)
	}
	elsewhere := func(store *docstore.Store) map[string]bool {
		list, err := store.Pending(t.Context(), 0, 10)
		require.NoError(t, err)
		found := map[string]bool{}
		for _, m := range list {
			found[m.ID] = m.Elsewhere
		}
		return found
	}
	require.Equal(t, map[string]bool{"one": false, "two": true}, elsewhere(one))
	require.Equal(t, map[string]bool{"one": true, "two": false}, elsewhere(two))
}
