package mongostore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	reservedPrefix  = "reserved." // before the names of Reserve's counters
	publishedAtOnce = 1000
	recordIndex     = "record"
)

// message is a docstore.Message as stored.
type message struct {
	Seq      int64  `bson:"_id"`
	ID       string `bson:"event_id"`
	Subject  string `bson:"subject"`
	Record   string `bson:"record"`
	Payload  []byte `bson:"payload"`
	Sequence int64  `bson:"sequence"`
	Writer   string `bson:"writer"` // a random name of the process
}

// numbers makes the Seq of messages, in the order of this process's clock. Another process may make the same number:
// the server then refuses a transaction, which runs again.
type numbers struct {
	mu   sync.Mutex
	last int64
}

// numbersStart is earlier than any number: 2026-01-01, in milliseconds.
const numbersStart = 1_767_225_600_000

// numbersRandom is the number of low bits of a number that begin at random. The other bits are milliseconds, which
// suffice until 2095.
const numbersRandom = 22

// take returns the first of n consecutive numbers.
func (m *numbers) take(n int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := (time.Now().UnixMilli()-numbersStart)<<numbersRandom + rand.Int64N(1<<numbersRandom)
	first := max(m.last+1, now)
	m.last = first + int64(n) - 1
	return first
}

// Reserve hands out n numbers that no other call gets: first … first+n-1. The first number ever is 1. A call that fails
// may have used numbers.
func (e *Engine) Reserve(ctx context.Context, sequence string, n int64) (int64, error) {
	is := bson.D{{Key: fieldKey, Value: reservedPrefix + sequence}}
	add := bson.D{{Key: "$inc", Value: bson.D{{Key: "value", Value: n}}}}
	o := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
	var now struct {
		Value int64 `bson:"value"`
	}
	asking, cancel := e.bounded(ctx)
	defer cancel()
	err := upserted(ctx, "reserve numbers", func() error {
		return e.db.Collection(sequencesCollection).FindOneAndUpdate(asking, is, add, o).Decode(&now)
	})
	return now.Value - n + 1, err
}

// Pending lists appended messages that are not yet Published and whose Seq is greater than after. Seq follows the
// clocks of processes, which may differ, so Pending looks for earlier messages about the same records separately.
func (e *Engine) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	page, err := e.messages(ctx, numbersAfter(after), fieldKey, limit)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	latest := map[string]int64{}
	listed := map[int64]bool{}
	for _, m := range page {
		latest[m.Record] = max(latest[m.Record], m.Sequence)
		listed[m.Seq] = true
	}
	var earlier bson.A
	for record, sequence := range latest {
		earlier = append(earlier, bson.D{
			{Key: "record", Value: record}, {Key: "sequence", Value: bson.D{{Key: "$lt", Value: sequence}}},
		})
	}
	more, err := e.messages(ctx, bson.D{{Key: "$or", Value: earlier}}, "sequence", limit+len(page))
	if err != nil {
		return nil, err
	}
	more = slices.DeleteFunc(more, func(m docstore.Message) bool { return listed[m.Seq] })
	return inOrder(append(page, more...)), nil
}

// inOrder sorts the messages about each record, within the places that they have in the list.
func inOrder(messages []docstore.Message) []docstore.Message {
	of := map[string][]docstore.Message{}
	for _, m := range messages {
		of[m.Record] = append(of[m.Record], m)
	}
	for _, list := range of {
		slices.SortStableFunc(list, func(a, b docstore.Message) int {
			return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Seq, b.Seq))
		})
	}
	for i, m := range messages {
		messages[i], of[m.Record] = of[m.Record][0], of[m.Record][1:]
	}
	return messages
}

func (e *Engine) messages(ctx context.Context, filter bson.D, by string, limit int) ([]docstore.Message, error) {
	o := options.Find().SetSort(ascending(by)).SetLimit(int64(limit))
	asking, cancel := e.bounded(ctx)
	defer cancel()
	cursor, err := e.db.Collection(outboxCollection).Find(asking, filter, o)
	if err != nil {
		return nil, failure(ctx, "read the outbox", err)
	}
	var stored []message
	if err := cursor.All(asking, &stored); err != nil {
		return nil, failure(ctx, "read the outbox", err)
	}
	messages := make([]docstore.Message, len(stored))
	for i, m := range stored {
		messages[i] = docstore.Message{
			Seq: m.Seq, ID: m.ID, Subject: m.Subject, Record: m.Record, Payload: m.Payload, Sequence: m.Sequence,
			Elsewhere: m.Writer != e.writer,
		}
	}
	return messages, nil
}

// Published removes messages. Unknown ones are no error.
func (e *Engine) Published(ctx context.Context, seqs []int64) error {
	asking, cancel := e.bounded(ctx)
	defer cancel()
	for len(seqs) > 0 {
		n := min(len(seqs), publishedAtOnce)
		part := bson.D{{Key: fieldKey, Value: bson.D{{Key: "$in", Value: seqs[:n]}}}}
		if _, err := e.db.Collection(outboxCollection).DeleteMany(asking, part); err != nil {
			return failure(ctx, "remove published messages", err)
		}
		seqs = seqs[n:]
	}
	return nil
}

// Backlog returns the number of pending messages.
func (e *Engine) Backlog(ctx context.Context) (int64, error) {
	asking, cancel := e.bounded(ctx)
	defer cancel()
	n, err := e.db.Collection(outboxCollection).CountDocuments(asking, numbersAfter(math.MinInt64))
	return n, failure(ctx, "count the outbox", err)
}

// numbersAfter selects messages by their key, so that the index serves the query and counting reads no payload.
func numbersAfter(seq int64) bson.D {
	return bson.D{{Key: fieldKey, Value: bson.D{{Key: "$gt", Value: seq}}}}
}

// post adds a transaction's messages to its writes. It is the last step before they are sent. Another transaction about
// the same record either has committed before, with lower numbers if the clocks agree, or conflicts with this one.
func (t *tx) post() error {
	first := t.engine.numbers.take(len(t.messages))
	for i, m := range t.messages {
		raw, err := bson.Marshal(message{
			Seq: first + int64(i), Sequence: m.Sequence, Record: m.Record,
			ID: m.ID, Subject: m.Subject, Payload: m.Payload, Writer: t.engine.writer,
		})
		if err != nil {
			return fmt.Errorf("mongostore: encode a message: %w", err)
		}
		if len(raw) > maxDocument {
			return fmt.Errorf("mongostore: message %s has %d bytes; the limit is %d", m.Subject, len(raw),
				maxDocument)
		}
		t.add(statement{kind: insertOne, collection: outboxCollection, document: bson.Raw(raw)})
	}
	return nil
}
