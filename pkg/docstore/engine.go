package docstore

import (
	"context"
	"fmt"
)

// Engine is what a database must do. All methods are safe for concurrent use and honour a cancelled context.
//
// Order: texts compare by their UTF-8 bytes, numbers by value; an absent value is the empty text or the least number, so it
// comes first. Rows with equal sort values are in the order of their id's bytes, in the last sort key's direction.
type Engine interface {
	Queries

	// Prepare makes or updates what the collections need: tables, indexes, and, where a collection's declaration has
	// changed, the index entries of the documents already there. It is called once, before all else.
	Prepare(ctx context.Context, defs []*Def) error

	// Write runs fn in a transaction: all of what it did is kept, durably, when Write returns nil; nothing of it otherwise.
	// fn may run more than once, and must do nothing slow. Its error is returned as it is; a panic in fn becomes an error.
	// Transactions are isolated: one that read what another has changed since is run again, and so is one that looked
	// for an id or a value of a unique index, found none, and would commit after another that has inserted it, or that
	// counted by a filter by which another has counted since.
	Write(ctx context.Context, fn func(EngineTx) error) error

	// Reserve hands out n numbers nobody else gets: first … first+n-1. The first ever is 1.
	Reserve(ctx context.Context, sequence string, n int64) (first int64, err error)

	// Due lists documents of all tenants whose Entry.Due is at most before, earliest first.
	Due(ctx context.Context, def *Def, before int64, limit int) ([]Ref, error)

	// NextTenant returns the tenant that follows after among those who have documents, in an order of the engine's own;
	// after "" the first, "" after the last.
	NextTenant(ctx context.Context, def *Def, after string) (string, error)

	// Pending lists about limit appended messages not yet Published whose Seq is more than after, the oldest first.
	// Those about one record come in the order of their transactions: with a message come all earlier ones about its
	// record, whatever their Seq. A message that is committed late can have a lower Seq than one that was listed before.
	Pending(ctx context.Context, after int64, limit int) ([]Message, error)

	// Published forgets messages. Unknown ones are no error.
	Published(ctx context.Context, seqs []int64) error

	// Backlog counts pending messages.
	Backlog(ctx context.Context) (int64, error)

	// Check looks for damage: the file's structure, index entries without documents and the other way round.
	Check(ctx context.Context) error

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Decode reads Row.Data into a *T.
	Decode(data []byte, into any) error

	// DataIsJSON says that Row.Data is the document's JSON form.
	DataIsJSON() bool

	// Close waits for running transactions.
	Close() error
}

// Queries are the reads that an Engine answers from its last committed state and an EngineTx from its own.
type Queries interface {
	// Get returns the documents that exist among ids, in no particular order.
	Get(ctx context.Context, def *Def, tenant string, ids []string) ([]Row, error)
	// Find returns the rows of a query in its order.
	Find(ctx context.Context, def *Def, tenant string, q Find) ([]Row, error)
	// Page is Find and Count for one filter and one state.
	Page(ctx context.Context, def *Def, tenant string, q Find, most int64) (rows []Row, total Total, err error)
	// Count counts exactly up to most, and further where that costs little: where the engine keeps the count. 0
	// counts all.
	Count(ctx context.Context, def *Def, tenant string, filter Filter, most int64) (Total, error)
}

// Total is how many documents a filter selects.
type Total struct {
	N    int64
	More bool // there are more than N, which were too many to be counted
}

// UpTo is the Total of n documents, of which one more than most were to be counted; 0 = all.
func UpTo(most, n int64) Total {
	if most > 0 && n > most {
		return Total{most, true}
	}
	return Total{N: n}
}

// EngineTx is one transaction. It is used by one goroutine, inside Write's function only. Its reads see its own writes.
//
// An engine may keep writes to send them together. Then a *DuplicateError comes later than from the write: from another
// call, from Flush, or as Write's result.
type EngineTx interface {
	Queries
	// Peek reads the same state, but what it finds may change before the transaction commits.
	Peek() Queries
	// Flush returns when all writes so far have been checked.
	Flush(ctx context.Context) error
	// Insert adds a document. *DuplicateError if its id or a unique value is taken.
	Insert(ctx context.Context, def *Def, e *Entry) error
	// Replace puts e in the place of the document of the same id whose stamp is expect. ErrNotFound, *VersionError,
	// *DuplicateError.
	Replace(ctx context.Context, def *Def, e *Entry, expect Stamp) error
	// Delete removes the document of that id whose stamp is expect. ErrNotFound, *VersionError.
	Delete(ctx context.Context, def *Def, tenant, id string, expect Stamp) error
	// Append adds a message for the relay; Seq is set by the engine.
	Append(ctx context.Context, m Message) error
}

// Def is a collection as an engine sees it.
type Def struct {
	Name     string // lower case letters, digits, underscore
	Indexes  []IndexDef
	Revision int  // the declaration's; a change makes engines rebuild the index entries
	Seals    bool // its documents have sealed members, which another collection holds
	Points   bool // it has a Global index, whose values another collection holds
	// Extract makes the index entries of a stored document anew.
	Extract func(engine Engine, data []byte) (*Entry, error)
	// Blank gives a pointer to an empty document, for engines whose driver decodes by type.
	Blank func() any
}

// Index finds an index by name; nil if there is none.
func (d *Def) Index(name string) *IndexDef {
	for i := range d.Indexes {
		if d.Indexes[i].Name == name {
			return &d.Indexes[i]
		}
	}
	return nil
}

// IndexDef declares one index. Every index starts with the tenant.
type IndexDef struct {
	Name   string
	Many   bool // a list of texts per document (no order, no duplicates, no empty text), else one value
	Number bool // the value is a number, else a text. Never with Many
	Unique bool // no two documents of a tenant have the same value; absent values do not count
	Slot   int  // position in Entry.Keys or, with Many, in Entry.Lists

	// Orders makes the index a facet: see Facet. They are names of other indexes.
	Orders []string `json:",omitempty"`
	// Span, if it is not 0, is how many numbers, or texts of how many equal bytes at the start, are a span: see Spanned.
	Span int64 `json:",omitempty"`
}

// Stamp tells one stored state of a document from all others: every write makes one of its numbers greater by one. A
// document that was stored before there were Counts has none.
type Stamp struct {
	Version int64 // also a member of the document
	Counts  int64 // writes that left the version as it was; kept beside the document
}

// Revision is how many writes there have been, of whichever kind.
func (s Stamp) Revision() int64 { return s.Version + s.Counts }

// Entry is a document to be stored and its index entries.
type Entry struct {
	Tenant, ID string
	Stamp
	Due   int64 // milliseconds; 0 = never
	Keys  []Value
	Lists [][]string
	Doc   any    // *T
	JSON  []byte // its JSON form

	refusal refusal // of a write
}

// Row is a stored document.
type Row struct {
	ID string
	Stamp
	Due  int64
	Data []byte  // as the engine keeps it; owned by the receiver
	Sort []Value // the values of Find.Sort's indexes
}

// Ref names a document.
type Ref struct{ Tenant, ID string }

// Message is an event on its way to NATS, written with the change that it tells of.
type Message struct {
	Seq     int64
	ID      string // Nats-Msg-Id
	Subject string
	Record  string // what must stay in order: messages with equal Record are published one after the other
	Payload []byte

	// Sequence is the order of messages with equal Record; of those with equal Sequence the one that was appended first
	// comes first. An engine whose Seq is in the order of its transactions need not keep it.
	Sequence int64
}

// Find is a query to an engine.
type Find struct {
	Filter Filter
	Sort   []Order // over single-value indexes; the id is always the last key
	After  *Position
	Offset int
	Limit  int  // > 0
	Bare   bool // rows have nothing but ID and Sort
}

// Order sorts by an index.
type Order struct {
	Index string
	Desc  bool
}

// Position is a place between rows: just after the row with these sort values and this id.
type Position struct {
	Values []Value
	ID     string
}

// Value is an indexed value: a text or a number.
type Value struct {
	Text string
	Num  int64
}

// ErrNotFound says that no such document is in the tenant.
var ErrNotFound = fmt.Errorf("docstore: not found")

// DuplicateError says that a unique value is taken. Index is "" for the id itself.
type DuplicateError struct {
	Collection, Index string
	Value             string // the index value, never for clients: it may be folded or hashed

	// Entry is the one refused. An engine sets it where that is not the one that it is being given, since it writes
	// several at once.
	Entry *Entry
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("docstore: duplicate %s.%s", e.Collection, e.Index)
}

// VersionError says that the document is in another state than the one expected. Current is its version.
type VersionError struct{ Current int64 }

func (e *VersionError) Error() string { return fmt.Sprintf("docstore: version is %d", e.Current) }
