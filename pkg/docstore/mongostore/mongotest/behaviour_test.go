package mongotest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

// behaviours are tests of what a server does. They run on the simulated replica set and on MongoDB: where the two
// differ, the simulation is wrong.
var behaviours = map[string]func(*testing.T, *server){
	"a transaction sees its own writes and no others": ownWritesOnly,
	"a snapshot stays": snapshotStays,
	"the first writer wins while it is in progress":          firstWriterInProgress,
	"the first writer wins when it has committed":            firstWriterCommitted,
	"an update that changes nothing conflicts with nobody":   noChangeNoConflict,
	"a unique value in progress is a conflict":               uniqueInProgress,
	"a unique value committed since is a conflict":           uniqueSince,
	"a unique value that is taken is a duplicate":            uniqueTaken,
	"a partial unique index leaves out absent values":        uniquePartial,
	"an id inserted and deleted is fenced":                   fencedID,
	"a unique value inserted and deleted is fenced":          fencedValue,
	"a write outside transactions waits":                     outsideWaits,
	"a commit can be repeated":                               commitAgain,
	"a failed statement aborts":                              failedStatementAborts,
	"a retried write is answered from its record":            retriedWrite,
	"an older number is refused":                             olderNumber,
	"an unknown transaction":                                 noSuchTransaction,
	"an open transaction is listed and can be ended":         openTransactionEnds,
	"values are in the order of their types":                 orderOfTypes,
	"lists match by any element, elemMatch by one":           listsMatch,
	"null is what is null or absent":                         nullMatches,
	"a query without an index is refused":                    noTableScan,
	"a cursor has batches":                                   cursorBatches,
	"collections are created again and indexes compared":     catalog,
	"an older snapshot does not see a new index":             snapshotBeforeIndex,
	"an upsert makes a document of the query and the change": upserts,
	"a bulk write counts":                                    bulkWrites,
	"a document that is too large":                           tooLarge,
}

type server struct {
	client *mongo.Client
	db     *mongo.Database
	docs   *mongo.Collection // with a unique partial index on "u", an index on "n" and one on "list"
	uri    string
}

func TestSimulatedBehaviour(t *testing.T) {
	t.Parallel()
	uri := simulated(t, replicaset.Options{}).URI()
	runBehaviours(t, uri)
}

func TestMongoDBBehaviour(t *testing.T) {
	t.Parallel()
	runBehaviours(t, MongoDB(t))
}

func runBehaviours(t *testing.T, uri string) {
	t.Helper()
	t.Run("group", func(t *testing.T) {
		for name, test := range behaviours {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				client, err := mongo.Connect(options.Client().ApplyURI(uri).SetReadConcern(readconcern.Majority()))
				require.NoError(t, err)
				s := &server{client: client, db: client.Database("test-" + bson.NewObjectID().Hex()), uri: uri}
				t.Cleanup(func() {
					require.NoError(t, s.db.Drop(context.Background()))
					require.NoError(t, client.Disconnect(context.Background()))
				})
				s.docs = s.db.Collection("docs")
				present := bson.D{{Key: "u", Value: bson.D{{Key: "$gt", Value: ""}}}}
				_, err = s.docs.Indexes().CreateMany(t.Context(), []mongo.IndexModel{
					{
						Keys:    bson.D{{Key: "u", Value: 1}},
						Options: options.Index().SetName("unique").SetUnique(true).SetPartialFilterExpression(present),
					},
					{Keys: bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 1}}, Options: options.Index().SetName("n")},
					{Keys: bson.D{{Key: "list", Value: 1}}, Options: options.Index().SetName("list")},
				})
				require.NoError(t, err)
				test(t, s)
			})
		}
	})
}

func is(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }

func set(name string, v any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: name, Value: v}}}}
}

func doc(id any, more ...bson.E) bson.D { return append(is(id), more...) }

func u(value string) bson.E { return bson.E{Key: "u", Value: value} }

// begin starts a transaction and takes its snapshot.
func (s *server) begin(t *testing.T) (context.Context, *mongo.Session) {
	t.Helper()
	session, err := s.client.StartSession()
	require.NoError(t, err)
	t.Cleanup(func() { session.EndSession(context.Background()) })
	require.NoError(t, session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())))
	ctx := mongo.NewSessionContext(t.Context(), session)
	_, err = s.ids(ctx, is("nothing"))
	require.NoError(t, err)
	return ctx, session
}

func (s *server) ids(ctx context.Context, query bson.D) (ids []any, _ error) {
	cursor, err := s.docs.Find(ctx, query, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, err
	}
	var all []bson.D
	if err := cursor.All(ctx, &all); err != nil {
		return nil, err
	}
	for _, d := range all {
		ids = append(ids, d[0].Value)
	}
	return ids, nil
}

func (s *server) insert(t *testing.T, ctx context.Context, docs ...any) {
	t.Helper()
	_, err := s.docs.InsertMany(ctx, docs)
	require.NoError(t, err)
}

func (s *server) requireIDs(t *testing.T, ctx context.Context, want ...any) {
	t.Helper()
	have, err := s.ids(ctx, bson.D{})
	require.NoError(t, err)
	require.Equal(t, want, have)
}

func requireCode(t *testing.T, err error, code int, labels ...string) {
	t.Helper()
	var e mongo.ServerError
	require.ErrorAs(t, err, &e)
	require.True(t, e.HasErrorCode(code), "%v", err)
	for _, label := range labels {
		require.True(t, e.HasErrorLabel(label), "%v", err)
	}
}

const (
	transient     = "TransientTransactionError"
	writeConflict = 112
	noTransaction = 251
	duplicateKey  = 11000
)

func ownWritesOnly(t *testing.T, s *server) {
	ctx, session := s.begin(t)
	s.insert(t, ctx, doc("a"))
	s.requireIDs(t, ctx, "a")
	s.requireIDs(t, t.Context())
	require.NoError(t, session.CommitTransaction(t.Context()))
	s.requireIDs(t, t.Context(), "a")
	ctx, session = s.begin(t)
	_, err := s.docs.DeleteOne(ctx, is("a"))
	require.NoError(t, err)
	s.requireIDs(t, ctx)
	require.NoError(t, session.AbortTransaction(t.Context()))
	s.requireIDs(t, t.Context(), "a")
}

func snapshotStays(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a", bson.E{Key: "n", Value: 1}))
	ctx, _ := s.begin(t)
	s.insert(t, t.Context(), doc("b"))
	_, err := s.docs.UpdateOne(t.Context(), is("a"), set("n", 2))
	require.NoError(t, err)
	s.requireIDs(t, ctx, "a")
	n, err := s.docs.CountDocuments(ctx, bson.D{{Key: "n", Value: 1}})
	require.NoError(t, err)
	require.EqualValues(t, 1, n, "an index is read in the state of the snapshot, too")
}

func firstWriterInProgress(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"))
	one, first := s.begin(t)
	two, second := s.begin(t)
	_, err := s.docs.UpdateOne(one, is("a"), set("n", 1))
	require.NoError(t, err)
	_, err = s.docs.UpdateOne(two, is("a"), set("n", 2))
	requireCode(t, err, writeConflict, transient)
	_, err = s.ids(two, bson.D{})
	requireCode(t, err, noTransaction, transient)
	require.NoError(t, first.CommitTransaction(t.Context()))
	requireCode(t, second.CommitTransaction(t.Context()), noTransaction, transient)
}

func firstWriterCommitted(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"), doc("b"), doc("c"))
	for _, id := range []string{"a", "b", "c"} {
		ctx, _ := s.begin(t)
		_, err := s.docs.UpdateOne(t.Context(), is(id), set("n", 1))
		require.NoError(t, err)
		switch id {
		case "a":
			_, err = s.docs.UpdateOne(ctx, is(id), set("n", 2))
		case "b":
			_, err = s.docs.DeleteOne(ctx, is(id))
		default:
			err = s.docs.FindOneAndReplace(ctx, is(id), bson.D{{Key: "n", Value: 2}}).Err()
		}
		requireCode(t, err, writeConflict, transient)
	}
	ctx, session := s.begin(t)
	s.insert(t, t.Context(), doc("d"))
	result, err := s.docs.UpdateOne(ctx, is("d"), set("n", 2))
	require.NoError(t, err, "what is not in the snapshot cannot be written")
	require.Zero(t, result.MatchedCount)
	require.NoError(t, session.CommitTransaction(t.Context()))
}

func noChangeNoConflict(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a", bson.E{Key: "n", Value: 1}))
	one, _ := s.begin(t)
	two, second := s.begin(t)
	_, err := s.docs.UpdateOne(one, is("a"), set("n", 2))
	require.NoError(t, err)
	result, err := s.docs.UpdateOne(two, is("a"), set("n", 1))
	require.NoError(t, err)
	require.EqualValues(t, 1, result.MatchedCount)
	require.Zero(t, result.ModifiedCount)
	require.NoError(t, second.CommitTransaction(t.Context()))
}

func uniqueInProgress(t *testing.T, s *server) {
	one, _ := s.begin(t)
	s.insert(t, one, doc("a", u("x")))
	two, _ := s.begin(t)
	_, err := s.docs.InsertOne(two, doc("b", u("x")))
	requireCode(t, err, writeConflict, transient)
	three, _ := s.begin(t)
	_, err = s.docs.InsertOne(three, doc("a"))
	requireCode(t, err, writeConflict, transient)
}

func uniqueSince(t *testing.T, s *server) {
	one, _ := s.begin(t)
	two, _ := s.begin(t)
	s.insert(t, t.Context(), doc("a", u("x")))
	_, err := s.docs.InsertOne(one, doc("b", u("x")))
	requireCode(t, err, writeConflict, transient)
	_, err = s.docs.InsertOne(two, doc("a"))
	requireCode(t, err, writeConflict, transient)
}

func uniqueTaken(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a", u("x")), doc("b"))
	ctx, session := s.begin(t)
	_, err := s.docs.InsertOne(ctx, doc("c", u("x")))
	requireCode(t, err, duplicateKey)
	var e mongo.WriteException
	require.ErrorAs(t, err, &e)
	require.Equal(t, int32(1), e.WriteErrors[0].Raw.Lookup("keyPattern", "u").Int32())
	require.Equal(t, "x", e.WriteErrors[0].Raw.Lookup("keyValue", "u").StringValue())
	requireCode(t, session.CommitTransaction(t.Context()), noTransaction)
	err = s.docs.FindOneAndUpdate(t.Context(), is("b"), set("u", "x")).Err()
	requireCode(t, err, duplicateKey)
	var c mongo.CommandError
	require.ErrorAs(t, err, &c)
	require.Equal(t, "x", c.Raw.Lookup("keyValue", "u").StringValue())
	_, err = s.docs.InsertOne(t.Context(), doc("a"))
	requireCode(t, err, duplicateKey)
}

func uniquePartial(t *testing.T, s *server) {
	s.insert(
		t,
		t.Context(),
		doc("a", u("")),
		doc("b", u("")),
		doc("c"),
		doc("d"),
		doc("e", bson.E{Key: "u", Value: bson.A{"x", "y"}}),
	)
	_, err := s.docs.InsertOne(t.Context(), doc("f", bson.E{Key: "u", Value: bson.A{"y", "z"}}))
	requireCode(t, err, duplicateKey)
	_, err = s.docs.UpdateOne(t.Context(), is("e"), set("u", "x"))
	require.NoError(t, err)
	s.insert(t, t.Context(), doc("f", bson.E{Key: "u", Value: bson.A{"y", "z", "z"}}))
}

func fencedID(t *testing.T, s *server) {
	s.fenced(t, doc("a"), doc("a"))
}

func fencedValue(t *testing.T, s *server) {
	s.fenced(t, doc("a", u("x")), doc("b", u("x")))
	s.fenced(t, doc("c", bson.E{Key: "u", Value: bson.A{"l"}}), doc("d", bson.E{Key: "u", Value: bson.A{"k", "l"}}))
}

// fenced tests what mongostore's fence relies on.
func (s *server) fenced(t *testing.T, placeholder, inserted bson.D) {
	t.Helper()
	fence := func(ctx context.Context) error {
		_, err := s.docs.InsertOne(ctx, placeholder)
		if err == nil {
			_, err = s.docs.DeleteOne(ctx, is(placeholder[0].Value))
		}
		return err
	}
	ctx, session := s.begin(t)
	other, _ := s.begin(t)
	require.NoError(t, fence(ctx))
	_, err := s.docs.InsertOne(other, inserted)
	requireCode(t, err, writeConflict, transient)

	other, _ = s.begin(t)
	require.NoError(t, session.CommitTransaction(t.Context()))
	_, err = s.docs.InsertOne(other, inserted)
	requireCode(t, err, writeConflict, transient)

	ctx, _ = s.begin(t)
	s.insert(t, t.Context(), inserted)
	requireCode(t, fence(ctx), writeConflict, transient)
	have, err := s.ids(
		t.Context(),
		bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{placeholder[0].Value, inserted[0].Value}}}}},
	)
	require.NoError(t, err)
	require.Equal(t, []any{inserted[0].Value}, have)
}

func outsideWaits(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"))
	ctx, session := s.begin(t)
	_, err := s.docs.UpdateOne(ctx, is("a"), set("n", 1))
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.docs.UpdateOne(short, is("a"), set("late", 2)) // whether the server gives up in time or not
	require.True(t, mongo.IsTimeout(err), "%v", err)
	done := make(chan error, 1)
	go func() {
		_, err := s.docs.UpdateOne(t.Context(), is("a"), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 10}}}})
		done <- err
	}()
	require.NoError(t, session.CommitTransaction(t.Context()))
	require.NoError(t, <-done)
	n, err := s.docs.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 11}})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func commitAgain(t *testing.T, s *server) {
	ctx, session := s.begin(t)
	s.insert(t, ctx, doc("a"))
	require.NoError(t, session.CommitTransaction(t.Context()))
	require.NoError(t, session.CommitTransaction(t.Context()))
	s.requireIDs(t, t.Context(), "a")
}

func failedStatementAborts(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"))
	ctx, session := s.begin(t)
	s.insert(t, ctx, doc("b"))
	_, err := s.docs.InsertMany(ctx, []any{doc("c"), doc("a"), doc("d")})
	requireCode(t, err, duplicateKey)
	_, err = s.ids(ctx, bson.D{})
	requireCode(t, err, noTransaction, transient)
	require.NoError(t, session.AbortTransaction(t.Context()))
	s.requireIDs(t, t.Context(), "a")
	_, err = s.docs.InsertMany(t.Context(), []any{doc("c"), doc("a"), doc("d")})
	requireCode(t, err, duplicateKey)
	s.requireIDs(t, t.Context(), "a", "c")
}

// send sends a command without the driver, which would number its writes itself.
func (s *server) send(t *testing.T, command bson.D) bson.Raw {
	t.Helper()
	address := strings.TrimPrefix(s.uri, "mongodb://")
	address, _, _ = strings.Cut(address, "/")
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: s.db.Name()}))
	require.NoError(t, err)
	_, m := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	m = append(wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(m, 0), wiremessage.SingleDocument), body...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	_, err = conn.Write(m)
	require.NoError(t, err)
	header := make([]byte, 21)
	_, err = io.ReadFull(conn, header)
	require.NoError(t, err)
	reply := make([]byte, binary.LittleEndian.Uint32(header)-21)
	_, err = io.ReadFull(conn, reply)
	require.NoError(t, err)
	return reply
}

func session() bson.D {
	id := bson.NewObjectID()
	return bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: append(id[:], 1, 2, 3, 4)}}}
}

func insertion(session bson.D, number int64, docs ...any) bson.D {
	return bson.D{
		{Key: "insert", Value: "docs"},
		{Key: "documents", Value: docs},
		{Key: "lsid", Value: session},
		{Key: "txnNumber", Value: number},
	}
}

func retriedWrite(t *testing.T, s *server) {
	same := session()
	for attempt := range 3 {
		reply := s.send(t, insertion(same, 7, doc("a"), doc("b")))
		require.EqualValues(t, 2, reply.Lookup("n").AsInt64(), "%s", reply)
		require.Equal(t, attempt > 0, reply.Lookup("retriedStmtIds").Type != 0)
	}
	s.requireIDs(t, t.Context(), "a", "b")
	increase := bson.D{{Key: "findAndModify", Value: "docs"}, {Key: "query", Value: is("a")}, {Key: "new", Value: true},
		{
			Key:   "update",
			Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
		}, {Key: "lsid", Value: same}, {Key: "txnNumber", Value: int64(8)}}
	for range 3 {
		reply := s.send(t, increase)
		require.EqualValues(t, 1, reply.Lookup("value", "n").AsInt64(), "%s", reply)
	}
}

func olderNumber(t *testing.T, s *server) {
	same := session()
	require.EqualValues(t, 1, s.send(t, insertion(same, 7, doc("a"))).Lookup("n").AsInt64())
	require.EqualValues(t, 225, s.send(t, insertion(same, 6, doc("b"))).Lookup("code").AsInt64())
}

func noSuchTransaction(t *testing.T, s *server) {
	for _, end := range []string{"commitTransaction", "abortTransaction"} {
		reply := s.send(
			t,
			bson.D{{Key: end, Value: 1}, {Key: "lsid", Value: session()}, {Key: "txnNumber", Value: int64(1)},
				{Key: "autocommit", Value: false}, {Key: "$db", Value: "admin"}},
		)
		require.EqualValues(t, noTransaction, reply.Lookup("code").AsInt64(), "%s", reply)
	}
	reply := s.send(t, append(insertion(session(), 1, doc("a")), bson.E{Key: "autocommit", Value: false}))
	require.EqualValues(t, noTransaction, reply.Lookup("code").AsInt64(), "%s", reply)
	require.Contains(t, reply.Lookup("errorLabels").String(), transient)
}

func orderOfTypes(t *testing.T, s *server) {
	ordered := []any{nil, int64(-1 << 62), -1, 0, int64(1), "", "\x00", "a", "a\x00", "ab", "b", "é", "京", "🙂",
		bson.NewObjectID(), false, true, bson.DateTime(-1), bson.DateTime(1)}
	for i, v := range ordered {
		d := doc(i, bson.E{Key: "n", Value: v})
		if v == nil && i == 0 {
			d = doc(i) // an absent value is equal to null
		}
		s.insert(t, t.Context(), d)
	}
	for _, direction := range []int{1, -1} {
		cursor, err := s.docs.Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "n", Value: direction}}))
		require.NoError(t, err)
		var docs []bson.D
		require.NoError(t, cursor.All(t.Context(), &docs))
		for i, d := range docs {
			want := i
			if direction < 0 {
				want = len(ordered) - 1 - i
			}
			require.EqualValues(t, want, d[0].Value, "place %d", i)
		}
	}
	strings, err := s.ids(t.Context(), bson.D{{Key: "n", Value: bson.D{{Key: "$gt", Value: ""}}}})
	require.NoError(t, err)
	require.Len(t, strings, 8, "a range contains values of one type")
	numbers, err := s.ids(t.Context(), bson.D{{Key: "n", Value: bson.D{{Key: "$lte", Value: 1.0}}}})
	require.NoError(t, err)
	require.Len(t, numbers, 4)
}

func listsMatch(t *testing.T, s *server) {
	list := func(id string, v ...any) bson.D { return doc(id, bson.E{Key: "list", Value: append(bson.A{}, v...)}) }
	s.insert(
		t,
		t.Context(),
		list("a", "ab", "z"),
		list("b", "a", "c"),
		list("c"),
		doc("d", bson.E{Key: "list", Value: "abc"}),
	)
	for name, c := range map[string]struct {
		condition any
		want      []any
	}{
		"equal": {"z", []any{"a"}},
		"in":    {bson.D{{Key: "$in", Value: bson.A{"c", "z"}}}, []any{"a", "b"}},
		"both":  {bson.D{{Key: "$gte", Value: "b"}, {Key: "$lt", Value: "b"}}, []any{"a", "b"}},
		"elem match": {bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$gte", Value: "ab"},
			{Key: "$lt", Value: "ac"}}}}, []any{"a"}},
		"regex": {bson.D{{Key: "$regex", Value: "b"}}, []any{"a", "d"}},
	} {
		have, err := s.ids(t.Context(), bson.D{{Key: "list", Value: c.condition}})
		require.NoError(t, err, name)
		require.Equal(t, c.want, have, name)
	}
}

func nullMatches(t *testing.T, s *server) {
	s.insert(
		t,
		t.Context(),
		doc("absent"),
		doc("empty", bson.E{Key: "list", Value: bson.A{}}),
		doc("list", bson.E{Key: "list", Value: bson.A{nil, "a"}}),
		doc("null", bson.E{Key: "list", Value: nil}),
		doc("text", bson.E{Key: "list", Value: ""}),
	)
	have, err := s.ids(t.Context(), bson.D{{Key: "list", Value: nil}})
	require.NoError(t, err)
	require.Equal(t, []any{"absent", "list", "null"}, have)
	have, err = s.ids(
		t.Context(),
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: "b"}}}, {Key: "list", Value: nil}},
	)
	require.NoError(t, err)
	require.Equal(t, []any{"list", "null"}, have)
}

func noTableScan(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"))
	err := s.docs.FindOne(t.Context(), bson.D{{Key: "other", Value: 1}}).Err()
	requireCode(t, err, 291)
	_, err = s.ids(
		t.Context(),
		bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "other", Value: 1}}}}},
	)
	require.NoError(t, err, "the sort's index serves")
	err = s.docs.FindOne(t.Context(),
		bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "other", Value: 1}}}}}).
		Err()
	requireCode(t, err, 291)
}

func cursorBatches(t *testing.T, s *server) {
	var docs []any
	for i := range 250 {
		docs = append(docs, doc(i, bson.E{Key: "n", Value: i % 2}))
	}
	s.insert(t, t.Context(), docs...)
	const unset = -1
	for size, left := range map[int32][]int{unset: {101, 149}, 0: {250}, 100: {100, 100, 50}, 250: {250}} {
		o := options.Find().SetSort(is(1))
		if size != unset {
			o.SetBatchSize(size)
		}
		cursor, err := s.docs.Find(t.Context(), bson.D{}, o)
		require.NoError(t, err)
		var have []int
		for n := 0; cursor.Next(t.Context()); n++ {
			if cursor.RemainingBatchLength() == 0 {
				have = append(have, n+1)
				n = -1
			}
		}
		require.NoError(t, cursor.Close(t.Context()))
		require.Equal(t, left, have, "batch size %d", size)
	}
	reply := s.send(t, bson.D{{Key: "getMore", Value: int64(1 << 40)}, {Key: "collection", Value: "docs"}})
	require.EqualValues(t, 43, reply.Lookup("code").AsInt64())
	n, err := s.docs.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 1}}, options.Count().SetSkip(5).SetLimit(50))
	require.NoError(t, err)
	require.EqualValues(t, 50, n)
}

func catalog(t *testing.T, s *server) {
	require.NoError(t, s.db.CreateCollection(t.Context(), "docs"))
	indexes := s.docs.Indexes()
	make := func(name string, keys ...string) error {
		d := bson.D{}
		for _, k := range keys {
			d = append(d, bson.E{Key: k, Value: 1})
		}
		_, err := indexes.CreateOne(t.Context(), mongo.IndexModel{Keys: d, Options: options.Index().SetName(name)})
		return err
	}
	require.NoError(t, make("n", "n", "_id"))
	requireCode(t, make("n", "n"), 86)
	requireCode(t, make("m", "n", "_id"), 85)
	requireCode(t, indexes.DropOne(t.Context(), "m"), 27)
	require.NoError(t, indexes.DropOne(t.Context(), "n"))
	specs, err := indexes.ListSpecifications(t.Context())
	require.NoError(t, err)
	require.Len(t, specs, 3)
	require.Equal(t, "_id_", specs[0].Name)
	require.True(t, *specs[1].Unique)
	none, err := s.db.Collection("none").Indexes().ListSpecifications(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	s.insert(t, t.Context(), doc("a", bson.E{Key: "x", Value: 1}), doc("b", bson.E{Key: "x", Value: 1}))
	_, err = indexes.CreateOne(
		t.Context(),
		mongo.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}, Options: options.Index().SetUnique(true)},
	)
	requireCode(t, err, duplicateKey)
}

func snapshotBeforeIndex(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"))
	session, err := s.client.StartSession()
	require.NoError(t, err)
	defer session.EndSession(context.Background())
	require.NoError(t, session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())))
	ctx := mongo.NewSessionContext(t.Context(), session)
	require.NoError(t, s.db.CreateCollection(t.Context(), "others"))
	require.ErrorIs(
		t,
		s.db.Collection("others").FindOne(ctx, is("a")).Err(),
		mongo.ErrNoDocuments,
	) // this takes the snapshot
	_, err = s.docs.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "new", Value: 1}}})
	require.NoError(t, err)
	_, err = s.docs.UpdateOne(ctx, is("a"), set("new", 1))
	var labeled mongo.LabeledError
	require.ErrorAs(t, err, &labeled)
	require.True(t, labeled.HasErrorLabel(transient), "%v", err)
}

func upserts(t *testing.T, s *server) {
	count := func(by int32) int64 {
		t.Helper()
		var now struct {
			N int64 `bson:"n"`
		}
		o := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
		err := s.docs.FindOneAndUpdate(t.Context(), is("counter"),
			bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: by}}}}, o).
			Decode(&now)
		require.NoError(t, err)
		return now.N
	}
	require.EqualValues(t, 3, count(3))
	require.EqualValues(t, 5, count(2))
	by := bson.D{{Key: "_id", Value: "x"}, {Key: "n", Value: 9}}
	result, err := s.docs.UpdateOne(t.Context(), by, set("list", "l"), options.UpdateOne().SetUpsert(true))
	require.NoError(t, err)
	require.Equal(t, "x", result.UpsertedID)
	var d bson.D
	require.NoError(t, s.docs.FindOne(t.Context(), is("x")).Decode(&d))
	require.Equal(t, bson.D{{Key: "_id", Value: "x"}, {Key: "n", Value: int32(9)}, {Key: "list", Value: "l"}}, d)
	_, err = s.docs.UpdateOne(
		t.Context(),
		bson.D{{Key: "_id", Value: "x"}, {Key: "n", Value: 8}},
		set("list", "l"),
		options.UpdateOne().SetUpsert(true),
	)
	requireCode(t, err, duplicateKey)
	_, err = s.docs.UpdateOne(t.Context(), is("x"), set("_id", "y"))
	requireCode(t, err, 66)
	_, err = s.docs.UpdateOne(
		t.Context(),
		is("x"),
		bson.D{
			{Key: "$unset", Value: bson.D{{Key: "list", Value: ""}}},
			{Key: "$set", Value: bson.D{{Key: "c.d", Value: 1}, {Key: "b", Value: 2}}},
		},
	)
	require.NoError(t, err)
	require.NoError(t, s.docs.FindOne(t.Context(), is("x")).Decode(&d))
	require.Equal(
		t,
		bson.D{
			{Key: "_id", Value: "x"},
			{Key: "n", Value: int32(9)},
			{Key: "b", Value: int32(2)},
			{Key: "c", Value: bson.D{{Key: "d", Value: int32(1)}}},
		},
		d,
	)
}

func bulkWrites(t *testing.T, s *server) {
	s.insert(t, t.Context(), doc("a"), doc("b"))
	other := s.db.Collection("others")
	require.NoError(t, s.db.CreateCollection(t.Context(), "others"))
	ctx, tx := s.begin(t)
	ops := []mongo.ClientBulkWrite{
		{
			Database:   s.db.Name(),
			Collection: "docs",
			Model:      mongo.NewClientUpdateOneModel().SetFilter(is("a")).SetUpdate(set("n", 1)),
		},
		{Database: s.db.Name(), Collection: "docs", Model: mongo.NewClientDeleteOneModel().SetFilter(is("b"))},
		{Database: s.db.Name(), Collection: "others", Model: mongo.NewClientInsertOneModel().SetDocument(doc("c"))},
		{
			Database:   s.db.Name(),
			Collection: "docs",
			Model:      mongo.NewClientReplaceOneModel().SetFilter(is("d")).SetReplacement(doc("d")).SetUpsert(true),
		},
	}
	result, err := s.client.BulkWrite(ctx, ops)
	require.NoError(t, err)
	have := []int64{
		result.InsertedCount,
		result.UpsertedCount,
		result.MatchedCount,
		result.ModifiedCount,
		result.DeletedCount,
	}
	require.Equal(t, []int64{1, 1, 1, 1, 1}, have)
	n, err := other.CountDocuments(t.Context(), is("c"))
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, tx.CommitTransaction(t.Context()))
	s.requireIDs(t, t.Context(), "a", "d")
	_, err = s.client.BulkWrite(t.Context(), append(ops[2:3], ops[0]))
	var e mongo.ClientBulkWriteException
	require.True(t, errors.As(err, &e), "%v", err)
	require.Equal(t, duplicateKey, e.WriteErrors[0].Code)
}

func tooLarge(t *testing.T, s *server) {
	reply := s.send(t, insertion(session(), 1, doc("a", bson.E{Key: "x", Value: strings.Repeat("x", 16<<20)})))
	code := reply.Lookup("code")
	if code.Type == 0 {
		code = reply.Lookup("writeErrors", "0", "code")
	}
	require.EqualValues(t, 10334, code.AsInt64(), "%s", reply)
}

// openTransactionEnds: killSessions of another client's open transaction frees what it has written.
func openTransactionEnds(t *testing.T, s *server) {
	ctx, session := s.begin(t)
	_, err := s.docs.InsertOne(ctx, doc("a"))
	require.NoError(t, err)
	admin := s.client.Database("admin", options.Database().SetReadConcern(readconcern.Local()))
	cursor, err := admin.Aggregate(t.Context(), mongo.Pipeline{
		{{Key: "$currentOp", Value: bson.D{{Key: "idleSessions", Value: true}}}},
		{{Key: "$match", Value: bson.D{{Key: "type", Value: "idleSession"}}}},
	})
	require.NoError(t, err)
	var open []bson.Raw
	require.NoError(t, cursor.All(t.Context(), &open))
	_, own := session.ID().Lookup("id").Binary()
	i := slices.IndexFunc(open, func(op bson.Raw) bool {
		_, id := op.Lookup("lsid", "id").Binary()
		return bytes.Equal(id, own)
	})
	require.NotEqual(t, -1, i, "%s", open)
	_, ok := open[i].Lookup("transaction", "parameters", "txnNumber").AsInt64OK()
	require.True(t, ok)
	active, ok := open[i].Lookup("transaction", "timeActiveMicros").AsInt64OK()
	require.True(t, ok)
	require.Positive(t, active)
	kill := bson.D{{Key: "killSessions", Value: bson.A{session.ID()}}}
	require.NoError(t, admin.RunCommand(t.Context(), kill).Err())
	_, err = s.docs.InsertOne(t.Context(), doc("a"))
	require.NoError(t, err)
	_, err = s.docs.InsertOne(ctx, doc("b"))
	requireCode(t, err, noTransaction, transient)
}
