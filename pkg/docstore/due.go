package docstore

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/transaction"
)

// askAgain is how long a process relies on what it knows about the next Due time of a collection. Other processes may
// have written documents meanwhile that are due earlier. The process that has written a document knows at once.
const askAgain = 3 * time.Second

// dueTimes are the next Due times of the collections, as far as this process knows. So the tasks of an idle service,
// which ask several times a second, send the database a query every few seconds.
type dueTimes struct {
	mu sync.Mutex
	of map[string]*dueTime
}

type dueTime struct {
	next    int64     // nothing is due before; 0 if this is not known
	asked   time.Time // when the database was asked
	written int       // counts the documents with a Due time that this process has written
}

func (c *collection) listDue(ctx context.Context, s *Store, limit int) ([]Ref, error) {
	if err := transaction.Refuse("docstore: Due"); err != nil {
		return nil, err
	}
	now := s.clock.Now().Millis()
	learn, waits := s.due.waits(c.def.Name, now)
	if waits {
		return nil, nil
	}
	next, err := s.engine.NextDue(ctx, c.def)
	if err != nil {
		return nil, err
	}
	if next == 0 {
		next = math.MaxInt64
	}
	if learn(next); next > now {
		return nil, nil
	}
	return s.engine.Due(ctx, c.def, now, limit)
}

// waits reports whether nothing of a collection is due yet. Otherwise the caller asks the database, and calls learn
// with the next Due time. learn ignores an answer that may be older than a write of this process.
func (d *dueTimes) waits(collection string, now int64) (learn func(next int64), waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.get(collection)
	if known.next > now && time.Since(known.asked) < askAgain {
		return nil, true
	}
	asked, written := time.Now(), known.written
	return func(next int64) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if known.written == written {
			known.next, known.asked = next, asked
		}
	}, false
}

// write notes the Due times of written documents. It is called when the transaction has ended, even if it is not known
// whether it was committed.
func (d *dueTimes) write(earliest map[string]int64) {
	if len(earliest) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for collection, due := range earliest {
		known := d.get(collection)
		known.next = min(known.next, due)
		known.written++
	}
}

func (d *dueTimes) get(collection string) *dueTime {
	if d.of == nil {
		d.of = map[string]*dueTime{}
	}
	if d.of[collection] == nil {
		d.of[collection] = &dueTime{}
	}
	return d.of[collection]
}

// noteDue remembers the Due time of a document that the transaction writes.
func (tx *Tx) noteDue(def *Def, e *Entry) {
	if e.Due == 0 {
		return
	}
	if earliest, ok := tx.due[def.Name]; !ok || e.Due < earliest {
		tx.due[def.Name] = e.Due
	}
}
