package docstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/transaction"
)

// Store is the database of one service.
type Store struct {
	engine   Engine
	clock    clock.Clock
	keys     *secret.Keyring // for sealed members; nil if there are none
	keySince clock.Time      // since when the first key has been the first
	seals    bool            // a collection has sealed members
	appended chan struct{}
	due      dueTimes

	ids struct {
		sync.Mutex
		next, end int64
	}
}

// Open prepares the engine for the collections. From then on the store owns the engine.
func Open(ctx context.Context, engine Engine, clk clock.Clock, defs ...*Def) (*Store, error) {
	seals := slices.ContainsFunc(defs, func(d *Def) bool { return d.Seals })
	if seals {
		defs = append(slices.Clone(defs), sealed.Def(), sealingKeys.Def())
	}
	if slices.ContainsFunc(defs, func(d *Def) bool { return d.Points }) {
		defs = append(slices.Clone(defs), pointers.Def())
	}
	if err := engine.Prepare(ctx, defs); err != nil {
		return nil, fmt.Errorf("prepare the store: %w", err)
	}
	return &Store{engine: engine, clock: clk, seals: seals, appended: make(chan struct{}, 1)}, nil
}

// queries refuses reads through the store inside a Write: they would not see the state of the transaction.
func (s *Store) queries() (Queries, error) {
	return s.engine, transaction.Refuse("docstore: a read through the store")
}
func (s *Store) store() *Store { return s }

// Now returns the time of the store's clock.
func (s *Store) Now() clock.Time { return s.clock.Now() }

// Appended receives a signal after a transaction that appended messages. Several transactions may share one signal.
func (s *Store) Appended() <-chan struct{} { return s.appended }

// Pending lists messages for the relay that are not yet Published: see Engine.Pending.
func (s *Store) Pending(ctx context.Context, after int64, limit int) ([]Message, error) {
	if err := transaction.Refuse("docstore: Pending"); err != nil {
		return nil, err
	}
	return s.engine.Pending(ctx, after, limit)
}

// Published removes messages that NATS has acknowledged. Unknown ones are no error.
func (s *Store) Published(ctx context.Context, seqs []int64) error {
	if err := transaction.Refuse("docstore: Published"); err != nil {
		return err
	}
	return s.engine.Published(ctx, seqs)
}

// Backlog returns the number of messages that are not yet Published.
func (s *Store) Backlog(ctx context.Context) (int64, error) {
	if err := transaction.Refuse("docstore: Backlog"); err != nil {
		return 0, err
	}
	return s.engine.Backlog(ctx)
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := transaction.Refuse("docstore: Ping"); err != nil {
		return err
	}
	return s.engine.Ping(ctx)
}

// Check looks for damage: see Engine.Check.
func (s *Store) Check(ctx context.Context) error {
	if err := transaction.Refuse("docstore: Check"); err != nil {
		return err
	}
	return s.engine.Check(ctx)
}

// Close waits for running transactions and closes the engine.
func (s *Store) Close() error { return s.engine.Close() }

const (
	// Ids start with seven digits. As long as all have the same length, their texts sort in the order of their making.
	firstID = 1 << 20
	lastID  = 1<<53 - 1 // the greatest integer that every JSON reader keeps exactly (RFC 8259, section 6)
	idBlock = 1000      // how many ids are reserved in the database at a time
)

// NewIDs returns n new ids: decimal numbers below 2^53 that were never returned before, not even before a restart. They
// come from a block that is reserved in the database; a crash loses at most the rest of a block. Inside a Write it
// always fails, even if the block has ids left.
func (s *Store) NewIDs(ctx context.Context, n int) ([]string, error) {
	if err := transaction.Refuse("docstore: NewIDs"); err != nil {
		return nil, err
	}
	s.ids.Lock()
	defer s.ids.Unlock()
	ids := make([]string, n)
	for i := range ids {
		if s.ids.next == s.ids.end {
			size := max(idBlock, int64(n-i))
			first, err := s.engine.Reserve(ctx, "id", size)
			if err != nil {
				return nil, fmt.Errorf("reserve ids: %w", err)
			}
			if first+firstID+size > lastID {
				return nil, fmt.Errorf("no ids left")
			}
			s.ids.next, s.ids.end = first+firstID, first+firstID+size
		}
		ids[i] = strconv.FormatInt(s.ids.next, 10)
		s.ids.next++
	}
	return ids, nil
}

// StartIDsAt makes all later ids at least first. It is for a store that may have given out ids below first without a
// record of it. Inside a Write it always fails.
func (s *Store) StartIDsAt(ctx context.Context, first int64) error {
	if err := transaction.Refuse("docstore: StartIDsAt"); err != nil {
		return err
	}
	s.ids.Lock()
	defer s.ids.Unlock()
	s.ids.next, s.ids.end = 0, 0
	reserved, err := s.engine.Reserve(ctx, "id", 1)
	if below := first - firstID - reserved - 1; err == nil && below > 0 {
		_, err = s.engine.Reserve(ctx, "id", below)
	}
	if err != nil {
		return fmt.Errorf("raise ids: %w", err)
	}
	return nil
}

// NewID is NewIDs for one.
func (s *Store) NewID(ctx context.Context) (string, error) {
	ids, err := s.NewIDs(ctx, 1)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// Tx is a running transaction.
type Tx struct {
	Now clock.Time // the time of the transaction; it does not change while it runs

	st       *Store
	engine   EngineTx
	loaded   map[loadedKey]loaded
	last     map[string]int64 // the sequence of the last message about each record
	due      map[string]int64 // the earliest Due time that it has written, by collection
	appended bool
}

type loadedKey struct{ collection, id string }

// loaded is a document before it is changed. Replace compares the new value with it.
type loaded struct {
	data []byte // the engine's form
	json []byte // the JSON form that this transaction has written; data is then nil
}

func (tx *Tx) queries() (Queries, error) { return tx.engine, nil }
func (tx *Tx) store() *Store             { return tx.st }

// Peek returns a Reader of the same state on which the transaction does not depend. A transaction runs again if another
// changes what it has read through tx before it commits; what it has read through Peek may change. Use it for data that
// are only shown.
func (tx *Tx) Peek() Reader { return peek{tx} }

type peek struct{ tx *Tx }

func (p peek) queries() (Queries, error) { return p.tx.engine.Peek(), nil }
func (p peek) store() *Store             { return p.tx.st }

func (tx *Tx) remember(def *Def, id string, l loaded) {
	if tx.loaded == nil {
		tx.loaded = map[loadedKey]loaded{}
	}
	tx.loaded[loadedKey{def.Name, id}] = l
}

// perRevision bounds the number of messages about one revision of a record.
const perRevision = 10

// FirstSequence is the sequence of the first message about a revision of a record. It is greater than those of all
// earlier revisions.
func FirstSequence(revision int64) int64 { return revision * perRevision }

// Sequence returns the sequence of a message about a revision of a record that this transaction has written. Each call
// for a record returns a greater number. It fails after 10 messages about one revision, and for a revision that is
// earlier than that of the last message.
func (tx *Tx) Sequence(record string, revision int64) (int64, error) {
	sequence := FirstSequence(revision)
	if last, ok := tx.last[record]; ok && last >= sequence {
		sequence = last + 1
	}
	if sequence >= FirstSequence(revision+1) {
		return 0, fmt.Errorf("docstore: more than %d messages about revision %d of %s, "+
			"or an earlier message was about a later revision", perRevision, revision, record)
	}
	if tx.last == nil {
		tx.last = map[string]int64{}
	}
	tx.last[record] = sequence
	return sequence, nil
}

// Append adds a message for the relay.
func (tx *Tx) Append(ctx context.Context, m Message) error {
	tx.appended = true
	return tx.engine.Append(ctx, m)
}

var errDryRun = errors.New("docstore: dry run")

// Write runs fn in a transaction and returns its result. fn may run more than once. It must be short and free of side
// effects: no I/O except the transaction's, no hashing, no waiting. Calls that would wait for the store or for another
// service (another Write, NewIDs, bus.Ask) or would read outside the transaction fail inside fn with
// transaction.ErrInside. With WithDryRun, Write returns the result and undoes everything. The function that OnCommit
// put into the context runs after fn, in the same transaction. If a unique index refuses a value, the error is
// apperr.AlreadyExists at the members that Unique names; it wraps the *DuplicateError, and may come from Write only,
// after fn has returned.
func Write[R any](ctx context.Context, s *Store, fn func(*Tx) (R, error)) (R, error) {
	var result R
	if err := transaction.Refuse("docstore: Write"); err != nil {
		return result, err
	}
	appended, due := false, map[string]int64{}
	err := s.engine.Write(ctx, func(engine EngineTx) error {
		transaction.Enter()
		defer transaction.Leave()
		tx := &Tx{Now: s.clock.Now(), st: s, engine: engine, due: due}
		var err error
		if result, err = fn(tx); err != nil {
			return err
		}
		if IsDryRun(ctx) {
			if err := engine.Flush(ctx); err != nil {
				return err
			}
			return errDryRun
		}
		if hook, ok := ctx.Value(commitKey{}).(func(context.Context, *Tx, any) error); ok {
			if err := hook(ctx, tx, result); err != nil {
				return err
			}
		}
		appended = tx.appended
		return nil
	})
	if errors.Is(err, errDryRun) {
		return result, nil
	}
	s.due.write(due)
	if err != nil {
		var zero R
		return zero, s.refused(ctx, err)
	}
	if appended {
		select {
		case s.appended <- struct{}{}:
		default:
		}
	}
	return result, nil
}

// Do is Write for a function without a result.
func Do(ctx context.Context, s *Store, fn func(*Tx) error) error {
	_, err := Write(ctx, s, func(tx *Tx) (struct{}, error) { return struct{}{}, fn(tx) })
	return err
}

// appender is a document that makes its JSON form by itself, where the time for it counts. The form must be the one
// that encode would make.
type appender interface{ AppendJSON(b []byte) []byte }

// encode makes the JSON form of every document: without HTML escapes, in the order of the struct's members.
func encode(v any) ([]byte, error) {
	if v, ok := v.(appender); ok {
		return v.AppendJSON(nil), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// distinct returns the list sorted, without duplicates and without the empty text.
func distinct(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	if list[0] == "" {
		list = list[1:]
	}
	return list
}
