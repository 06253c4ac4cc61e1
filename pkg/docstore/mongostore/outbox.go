package mongostore

import (
	"context"
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// outboxSequence numbers messages. Its name cannot be a Reserve sequence's: those have a prefix.
const (
	outboxSequence  = "outbox"
	reservedPrefix  = "reserved."
	publishedAtOnce = 1000
)

// message is a docstore.Message as stored.
type message struct {
	Seq     int64  `bson:"_id"`
	ID      string `bson:"event_id"`
	Subject string `bson:"subject"`
	Record  string `bson:"record"`
	Payload []byte `bson:"payload"`
}

// Reserve hands out n numbers nobody else gets: first … first+n-1. The first ever is 1. A call that fails may have used numbers up.
func (e *Engine) Reserve(ctx context.Context, sequence string, n int64) (int64, error) {
	return e.advance(ctx, reservedPrefix+sequence, n)
}

// advance adds n to a counter, outside of any transaction, and returns the first of the n new numbers.
func (e *Engine) advance(ctx context.Context, counter string, n int64) (int64, error) {
	is := bson.D{{Key: fieldKey, Value: counter}}
	add := bson.D{{Key: "$inc", Value: bson.D{{Key: "value", Value: n}}}}
	o := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
	var now struct {
		Value int64 `bson:"value"`
	}
	err := upserted(ctx, "reserve numbers", func() error {
		return e.db.Collection(sequencesCollection).FindOneAndUpdate(ctx, is, add, o).Decode(&now)
	})
	return now.Value - n + 1, err
}

// Pending lists appended messages not yet Published whose Seq is more than after, oldest first.
func (e *Engine) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	cursor, err := e.db.Collection(outboxCollection).Find(ctx, numbersAfter(after), options.Find().SetSort(ascending(fieldKey)).SetLimit(int64(limit)))
	if err != nil {
		return nil, failure(ctx, "read the outbox", err)
	}
	var stored []message
	if err := cursor.All(ctx, &stored); err != nil {
		return nil, failure(ctx, "read the outbox", err)
	}
	messages := make([]docstore.Message, len(stored))
	for i, m := range stored {
		messages[i] = docstore.Message(m)
	}
	return messages, nil
}

// Published forgets messages. Unknown ones are no error.
func (e *Engine) Published(ctx context.Context, seqs []int64) error {
	for len(seqs) > 0 {
		n := min(len(seqs), publishedAtOnce)
		some := bson.D{{Key: fieldKey, Value: bson.D{{Key: "$in", Value: seqs[:n]}}}}
		if _, err := e.db.Collection(outboxCollection).DeleteMany(ctx, some); err != nil {
			return failure(ctx, "forget published messages", err)
		}
		seqs = seqs[n:]
	}
	return nil
}

// Backlog counts pending messages.
func (e *Engine) Backlog(ctx context.Context) (int64, error) {
	n, err := e.db.Collection(outboxCollection).CountDocuments(ctx, numbersAfter(math.MinInt64))
	return n, failure(ctx, "count the outbox", err)
}

// numbersAfter selects messages by their key, so that the index serves and no payload is read to count.
func numbersAfter(seq int64) bson.D {
	return bson.D{{Key: fieldKey, Value: bson.D{{Key: "$gt", Value: seq}}}}
}

// send writes a transaction's messages. It is the last that the transaction does: all its records are written, so another one
// about the same record has either committed, and has lower numbers, or is refused by the server. The numbers themselves are taken
// outside the transaction, or all transactions would conflict on the counter.
func (t *tx) send(ctx context.Context) error {
	first, err := t.engine.advance(ctx, outboxSequence, int64(len(t.messages)))
	if err != nil {
		return err
	}
	documents := make([]any, len(t.messages))
	for i, m := range t.messages {
		m.Seq = first + int64(i)
		raw, err := bson.Marshal(message(m))
		if err != nil {
			return fmt.Errorf("mongostore: encode a message: %w", err)
		}
		if len(raw) > maxDocument {
			return fmt.Errorf("mongostore: message %s has %d bytes; the store takes %d", m.Subject, len(raw), maxDocument)
		}
		documents[i] = bson.Raw(raw)
	}
	if _, err := t.outbox().InsertMany(t.in(ctx), documents); err != nil {
		return failure(ctx, "append messages", err)
	}
	return nil
}

func (t *tx) outbox() *mongo.Collection { return t.engine.db.Collection(outboxCollection) }
