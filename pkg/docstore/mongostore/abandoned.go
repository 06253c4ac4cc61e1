package mongostore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// A process that dies between a transaction's writes and its commit leaves the transaction open, and the documents that
// it wrote locked, until the server's limit (a minute, unless configured). Others see only conflicts. So a transaction
// that keeps meeting conflicts looks for open ones that have not sent a command for some time, and ends them. That is
// safe even if the other process lives, because it has committed nothing: its next command fails, and it tries again.
const (
	// suspectAfter is how long a transaction meets conflicts before it looks for abandoned ones.
	suspectAfter = time.Second
	// abandonedAfter is how long an open transaction sends no command until it is ended. Nothing waits within a
	// transaction of a process that lives.
	abandonedAfter = 4 * time.Second
	// looksEvery is the least time between two looks, by all transactions of this engine.
	looksEvery = 500 * time.Millisecond
	lookWithin = 2 * time.Second
)

const appName = "idplatform" // by which the server knows the connections of this platform's processes

// abandoned notes when open transactions of any process were first seen as they still are.
type abandoned struct {
	mu     sync.Mutex
	looked time.Time
	seen   map[string]sighting // by session
	failed bool                // logged once
}

// sighting is an open transaction between two commands.
type sighting struct {
	number int64 // txnNumber
	active int64 // the time for which it has run commands, in µs: it changes with each command
	since  time.Time
}

// idleSession is what $currentOp tells about an open transaction between two commands. The server of a sharded cluster
// tells it for each shard that the transaction has reached.
type idleSession struct {
	Session struct {
		ID bson.Binary `bson:"id"`
	} `bson:"lsid"`
	Transaction struct {
		Parameters struct {
			Number int64 `bson:"txnNumber"`
		} `bson:"parameters"`
		Active int64 `bson:"timeActiveMicros"`
	} `bson:"transaction"`
}

// endAbandoned ends the transactions that no process goes on with. It does nothing if it was called just before.
func (e *Engine) endAbandoned(ctx context.Context) {
	a := &e.abandoned
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Sub(a.looked) < looksEvery {
		return
	}
	a.looked = now
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	idle, err := e.idleSessions(ctx)
	if err == nil {
		err = e.kill(ctx, a.note(idle, now))
	}
	if err != nil && ctx.Err() == nil && !unreachable(err) && !a.failed {
		a.failed = true
		e.log.Warn("transactions of processes that have died cannot be found or ended: after a crash, changes of the "+
			"same records wait until the server's transactionLifetimeLimitSeconds is over. In a sharded cluster the "+
			"database user needs the role clusterMonitor", "error", err)
	}
}

// note notes the idle sessions and returns those that have been idle for too long.
func (a *abandoned) note(idle []idleSession, now time.Time) (dead bson.A) {
	seen := make(map[string]sighting, len(idle))
	for _, s := range idle {
		id := string(s.Session.ID.Data)
		open := seen[id]
		open.number, open.active = s.Transaction.Parameters.Number, open.active+s.Transaction.Active // of all shards
		seen[id] = open
	}
	for id, open := range seen {
		known, ok := a.seen[id]
		if !ok || known.number != open.number || known.active != open.active {
			known = sighting{open.number, open.active, now}
		}
		seen[id] = known
		if now.Sub(known.since) >= abandonedAfter {
			delete(seen, id)
			dead = append(dead, bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte(id)}}})
		}
	}
	a.seen = seen
	return dead
}

// idleSessions lists the open transactions, of all processes with this engine's user, that are between two commands.
func (e *Engine) idleSessions(ctx context.Context) (idle []idleSession, _ error) {
	local := options.Database().SetReadConcern(readconcern.Local()) // $currentOp has no other
	cursor, err := e.client.Database("admin", local).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$currentOp", Value: bson.D{{Key: "idleSessions", Value: true}}}},
		{{Key: "$match", Value: bson.D{{Key: "type", Value: "idleSession"}, {Key: "appName", Value: appName}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("list open transactions: %w", err)
	}
	if err := cursor.All(ctx, &idle); err != nil {
		return nil, fmt.Errorf("list open transactions: %w", err)
	}
	return idle, nil
}

func (e *Engine) kill(ctx context.Context, sessions bson.A) error {
	if len(sessions) == 0 { // the command takes an empty list for all sessions
		return nil
	}
	e.log.Warn("transactions of a process that has died, or hangs, are ended: others wait for them", "transactions",
		len(sessions))
	err := e.client.Database("admin").RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err()
	if err != nil {
		return fmt.Errorf("end abandoned transactions: %w", err)
	}
	return nil
}
