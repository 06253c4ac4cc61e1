package mongostore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Options say which database to use, and within which limits.
type Options struct {
	URI      string      // mongodb:// or mongodb+srv://, with credentials; never logged
	Database string      // the database of the service
	TLS      *tls.Config // nil means as the URI says
	// AllowStandalone accepts a server without transactions. Every start then logs an error that says what that means:
	// a crash during a write leaves a part of it, others see writes before they are complete, and writers may overwrite
	// documents that others relied on.
	AllowStandalone bool
	Log             *slog.Logger // required

	MaxPool uint64 // connections to each server; 0 means 100
	// Timeout bounds an operation whose context has no deadline, and a transaction with all its retries; 0 means 30 s.
	Timeout time.Duration
	// Select bounds the wait for a usable server, also over all retries of a transaction; 0 means 5 s.
	Select time.Duration

	Monitor *event.CommandMonitor // receives every command, if set
}

const (
	defaultMaxPool = 100
	defaultTimeout = 30 * time.Second
	defaultSelect  = 5 * time.Second

	probeAttempts = 5
	bulkWriteWire = 25 // the wire version of MongoDB 8.0
)

// The engine's own collections. The dot keeps them apart from declared ones.
const (
	outboxCollection    = "docstore.outbox"
	sequencesCollection = "docstore.sequences"
	schemasCollection   = "docstore.schemas"
	countsCollection    = "docstore.counts" // always empty: see fence
	probeCollection     = "docstore.probe"
)

// Engine is a docstore.Engine on MongoDB.
type Engine struct {
	client        *mongo.Client
	db            *mongo.Database
	log           *slog.Logger
	timeout       time.Duration
	patience      time.Duration // how long to wait for a server that is away
	transactional bool
	bulkWrite     bool // the server accepts writes to several collections in one command: MongoDB 8.0 and later
	pool          *pool
	numbers       numbers
	writer        string // this process's name in the messages that it appends
	turns         turns
	abandoned     abandoned
	outage        *outage

	defs      []*docstore.Def // set by Prepare
	noPartial bool            // set by Prepare: the server has neither transactions nor partial indexes

	closing sync.RWMutex // transactions hold it for reading
	closed  bool
}

var _ docstore.Engine = (*Engine)(nil)

// Open connects. It refuses a server on which transactions do not work, unless AllowStandalone is set. It fails with
// apperr.Unavailable if no server answers.
func Open(ctx context.Context, o Options) (*Engine, error) {
	timeout, patience := orDefault(o.Timeout, defaultTimeout), orDefault(o.Select, defaultSelect)
	connections, down := &pool{}, newOutage(patience)
	config := options.Client().ApplyURI(o.URI)
	if config.Validate() != nil {
		// The error's text may contain parts of the URI, and so of the password.
		return nil, errors.New("mongostore: the URI is not a MongoDB connection string")
	}
	config.SetAppName(appName).
		SetReadPreference(readpref.Primary()).
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(durable()).
		SetRetryReads(true).SetRetryWrites(true).
		SetMaxPoolSize(orDefault(o.MaxPool, defaultMaxPool)).
		SetTimeout(timeout).
		SetServerSelectionTimeout(patience).
		SetPoolMonitor(connections.monitor()).
		SetServerMonitor(down.monitor())
	setHeartbeats(config)
	if o.Monitor != nil {
		config.SetMonitor(o.Monitor)
	}
	if o.TLS != nil {
		config.SetTLSConfig(o.TLS)
	}
	client, err := mongo.Connect(config)
	if err != nil {
		return nil, errors.New("mongostore: the options do not fit the URI") // without the cause, as above
	}
	e := &Engine{
		client: client, db: client.Database(o.Database), log: o.Log, pool: connections, outage: down,
		timeout: timeout, patience: patience, writer: rand.Text(),
	}
	if e.transactional, err = e.probe(ctx); err == nil && !e.transactional {
		if o.AllowStandalone {
			o.Log.Error("MongoDB has no transactions here: a crash leaves incomplete writes, others see writes before "+
				"they are complete, and concurrent writers may overwrite documents that others relied on. "+
				"For development only", "database", o.Database)
		} else {
			err = errors.New("mongostore: transactions do not work on the server: MongoDB must be a replica set or a " +
				"sharded cluster (a single server becomes a replica set with --replSet and rs.initiate())")
		}
	}
	if err != nil {
		_ = client.Disconnect(context.WithoutCancel(ctx)) // the first error is returned
		return nil, err
	}
	return e, nil
}

func orDefault[T uint64 | time.Duration](v, unset T) T {
	if v == 0 {
		return unset
	}
	return v
}

// probe reports whether transactions work: a server that says it has them must undo an aborted write. Some servers that
// speak MongoDB's protocol accept startTransaction and ignore it.
func (e *Engine) probe(ctx context.Context) (bool, error) {
	var hello struct {
		SetName string `bson:"setName"`
		Msg     string `bson:"msg"`
		Wire    int32  `bson:"maxWireVersion"`
	}
	err := e.client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	if err != nil {
		return false, failure(ctx, "ask the server what it is", err)
	}
	if hello.SetName == "" && hello.Msg != "isdbgrid" {
		return false, nil
	}
	e.bulkWrite = hello.Wire >= bulkWriteWire
	if err := e.create(ctx, probeCollection); err != nil {
		return false, err
	}
	for attempt := 1; ; attempt++ {
		holds, err := e.probeTransaction(ctx)
		if !hasLabel(err, labelTransient) || attempt == probeAttempts {
			return holds, err
		}
	}
}

// probeTransaction reports whether an aborted write is undone. Its error may be transient, like that of any
// transaction.
func (e *Engine) probeTransaction(ctx context.Context) (bool, error) {
	session, err := e.client.StartSession()
	if err != nil {
		return false, failure(ctx, "start a session", err)
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	if err := session.StartTransaction(transactionOptions()); err != nil {
		return false, failure(ctx, "start a transaction", err)
	}
	probe := bson.D{{Key: fieldKey, Value: bson.NewObjectID()}}
	if _, err := e.db.Collection(probeCollection).InsertOne(mongo.NewSessionContext(ctx, session), probe); err != nil {
		return false, failure(ctx, "write in a transaction", err)
	}
	if err := session.AbortTransaction(ctx); err != nil {
		return false, failure(ctx, "abort a transaction", err)
	}
	left, err := e.db.Collection(probeCollection).DeleteOne(ctx, probe)
	if err != nil {
		return false, failure(ctx, "look for an aborted write", err)
	}
	return left.DeletedCount == 0, nil
}

// durable writes are on disk on a majority of servers before they are acknowledged.
func durable() *writeconcern.WriteConcern {
	journal := true
	return &writeconcern.WriteConcern{W: "majority", Journal: &journal}
}

func transactionOptions() *options.TransactionOptionsBuilder {
	return options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(durable()).
		SetReadPreference(readpref.Primary())
}

// Ping reports whether the primary answers.
func (e *Engine) Ping(ctx context.Context) error {
	asking, cancel := e.bounded(ctx)
	defer cancel()
	return failure(ctx, "ping", e.client.Ping(asking, readpref.Primary()))
}

// Close waits for running transactions and closes all connections. Later calls fail; a second Close does nothing.
func (e *Engine) Close() error {
	e.closing.Lock()
	defer e.closing.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	within := e.timeout
	if _, is := e.outage.away(); is {
		within = abortWithin
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	defer e.outage.close()
	if err := e.client.Disconnect(ctx); err != nil {
		return fmt.Errorf("mongostore: disconnect: %w", err)
	}
	return nil
}

func (e *Engine) collection(def *docstore.Def) *mongo.Collection { return e.db.Collection(def.Name) }
