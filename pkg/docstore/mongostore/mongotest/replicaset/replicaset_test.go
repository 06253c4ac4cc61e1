package replicaset

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// These are tests of what a server does only on request or by chance. What every MongoDB does is tested by mongotest's
// behaviours.

func start(t *testing.T, o Options) (*Server, *mongo.Client, *mongo.Collection) {
	t.Helper()
	s, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	client, docs := connect(t, s)
	return s, client, docs
}

func connect(t *testing.T, s *Server) (*mongo.Client, *mongo.Collection) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()).SetTimeout(20 * time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Disconnect(context.Background())) })
	docs := client.Database("db").Collection("docs")
	require.NoError(t, client.Database("db").CreateCollection(t.Context(), "docs"))
	return client, docs
}

func begin(t *testing.T, client *mongo.Client) (context.Context, *mongo.Session) {
	t.Helper()
	session, err := client.StartSession()
	require.NoError(t, err)
	t.Cleanup(func() { session.EndSession(context.Background()) })
	require.NoError(t, session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())))
	return mongo.NewSessionContext(t.Context(), session), session
}

func doc(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }

func requireLabel(t *testing.T, err error, label string) {
	t.Helper()
	var labeled mongo.LabeledError
	require.ErrorAs(t, err, &labeled)
	require.True(t, labeled.HasErrorLabel(label), "%v", err)
}

func count(t *testing.T, docs *mongo.Collection) int64 {
	t.Helper()
	n, err := docs.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: ""}}}})
	require.NoError(t, err)
	return n
}

func TestUnknownIsNamed(t *testing.T) {
	t.Parallel()
	s, err := Start(Options{})
	require.NoError(t, err)
	t.Run("client", func(t *testing.T) { // it disconnects before the server stops
		client, docs := connect(t, s)
		require.Error(t, client.Database("db").RunCommand(t.Context(), bson.D{{Key: "mapReduce", Value: "docs"}}).Err())
		_, err := docs.UpdateOne(t.Context(), doc("a"), bson.D{{Key: "$rename", Value: bson.D{{Key: "a", Value: "b"}}}})
		require.Error(t, err)
		require.Error(
			t,
			docs.FindOne(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$nin", Value: bson.A{}}}}}).Err(),
		)
		require.Error(t, docs.FindOne(t.Context(), doc("a"), options.FindOne().SetHint("_id_")).Err())
		_, err = docs.Aggregate(
			t.Context(),
			bson.A{bson.D{{Key: "$match", Value: doc("a")}}, bson.D{{Key: "$out", Value: "x"}}},
		)
		require.Error(t, err)
	})
	err = s.Close()
	for _, name := range []string{"command mapReduce", "update operator $rename", "query operator $nin", "hint of find",
		"aggregation $out"} {
		require.ErrorContains(t, err, name)
	}
}

func TestExpiredTransaction(t *testing.T) {
	t.Parallel()
	s, client, docs := start(t, Options{})
	ctx, session := begin(t, client)
	_, err := docs.InsertOne(ctx, doc("a"))
	require.NoError(t, err)
	s.Expire()
	_, err = docs.InsertOne(ctx, doc("b"))
	requireLabel(t, err, labelTransient)
	requireLabel(t, session.CommitTransaction(t.Context()), labelTransient)
	require.Zero(t, count(t, docs))
}

// TestLifetime: others can write what a dead client's transaction has written, once its lifetime is over.
func TestLifetime(t *testing.T) {
	t.Parallel()
	_, client, docs := start(t, Options{Lifetime: 50 * time.Millisecond})
	ctx, _ := begin(t, client)
	_, err := docs.InsertOne(ctx, doc("a"))
	require.NoError(t, err)
	_, err = docs.InsertOne(t.Context(), doc("a"))
	require.NoError(t, err, "it waits, and then continues")
}

func TestStepDown(t *testing.T) {
	t.Parallel()
	s, client, docs := start(t, Options{Members: 3})
	for n := range 4 {
		ctx, session := begin(t, client)
		_, err := docs.InsertOne(ctx, doc("lost"))
		require.NoError(t, err)
		s.StepDown()
		_, err = docs.InsertOne(ctx, doc("too"))
		requireLabel(t, err, labelTransient)
		_ = session.AbortTransaction(t.Context())
		_, err = docs.InsertOne(t.Context(), doc(string(rune('a'+n))))
		require.NoError(t, err, "the driver finds the new primary")
		require.EqualValues(t, n+1, count(t, docs))
	}
}

// TestFaults: every write is done exactly once, whatever fault its command meets.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]Fault{
		"lose request": LoseRequest, "lose reply": LoseReply, "conflict": Conflict, "expire": Expire,
		"step down": StepDown, "unknown": UnknownCommit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, client, docs := start(t, Options{Members: 3})
			session, err := client.StartSession()
			require.NoError(t, err)
			defer session.EndSession(context.Background())
			s.Inject(fault, 3)
			_, err = session.WithTransaction(t.Context(), func(ctx context.Context) (any, error) {
				if _, err := docs.InsertOne(ctx, doc("a")); err != nil {
					return nil, err
				}
				_, err := docs.InsertOne(ctx, doc("b"))
				return nil, err
			}, options.Transaction().SetReadConcern(readconcern.Snapshot()))
			require.NoError(t, err)
			require.EqualValues(t, 2, count(t, docs))
			s.Inject(fault, 1)
			_, err = docs.InsertOne(t.Context(), doc("c"))
			require.NoError(t, err)
			s.Inject(fault, 1)
			result, err := docs.UpdateOne(
				t.Context(),
				doc("c"),
				bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
			)
			require.NoError(t, err)
			require.EqualValues(t, 1, result.ModifiedCount)
			n, err := docs.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: "c"}, {Key: "n", Value: 1}})
			require.NoError(t, err)
			require.EqualValues(t, 1, n, "a repeated statement is not done again")
		})
	}
}

// TestOrderIsTheSeeds: of the same commands, in any order of arrival, the same one runs first and the same one meets
// the fault.
func TestOrderIsTheSeeds(t *testing.T) {
	t.Parallel()
	order := func(seed uint64, backwards bool) (names []string) {
		synctest.Test(t, func(*testing.T) { // so that a turn's goroutine is heard before the next turn
			closing := make(chan struct{})
			s := newScheduler(
				Schedule{Seed: seed, Settle: 10 * time.Millisecond, Faults: []Fault{LoseReply}, Every: 3},
				closing,
			)
			var running, waiting sync.WaitGroup
			running.Go(s.run)
			var mu sync.Mutex
			commands := []string{"a", "b", "c", "d", "e", "f"}
			if backwards {
				slices.Reverse(commands)
			}
			for i, name := range commands {
				body := marshal(bson.D{{Key: "insert", Value: name}, {Key: "lsid", Value: bson.NewObjectID()}})
				c := &command{request: &request{body: body}, name: "insert", conn: int64(i)}
				arrived := make(chan struct{})
				waiting.Go(func() {
					close(arrived)
					f, _ := s.turn(c)
					mu.Lock()
					defer mu.Unlock()
					names = append(names, name+string(rune('0'+f)))
				})
				<-arrived
			}
			waiting.Wait()
			close(closing)
			running.Wait()
		})
		return names
	}
	differ := false
	for seed := uint64(1); seed <= 3; seed++ {
		one := order(seed, false)
		require.Equal(t, one, order(seed, true))
		differ = differ || !slices.Equal(one, order(seed+1, false))
	}
	require.True(t, differ, "another seed gives another order")
}
