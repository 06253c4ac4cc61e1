package docstore

import (
	"context"
	"errors"
	"fmt"
)

// Engine is what a database adapter implements. All methods are safe for concurrent use and stop when their context is
// cancelled.
//
// Order: texts compare by their UTF-8 bytes, numbers by value. An absent value is the empty text or the least number,
// so it comes first. Rows with equal sort values are in the order of their ids' bytes, in the direction of the last
// sort key.
type Engine interface {
	Queries

	// Prepare creates or updates what the collections need: tables, indexes and, where the declaration of a collection
	// has changed, the index entries of its stored documents. It is called once, before all other methods.
	Prepare(ctx context.Context, defs []*Def) error

	// Write runs fn in a transaction. When Write returns nil, all that fn did is stored durably; otherwise nothing is.
	// fn may run more than once and must do nothing slow. fn's error is returned unchanged; a panic in fn becomes an
	// error. Transactions are isolated: fn runs again if another transaction that has committed since
	//   - changed a document that fn read,
	//   - inserted an id, or a value of a unique index, that fn looked for and did not find,
	//   - counted by a filter by which fn counted.
	Write(ctx context.Context, fn func(EngineTx) error) error

	// Reserve hands out n numbers that no other call gets: first … first+n-1. The first number ever is 1.
	Reserve(ctx context.Context, sequence string, n int64) (first int64, err error)

	// Due lists documents of all tenants whose Entry.Due is at most before, earliest first.
	Due(ctx context.Context, def *Def, before int64, limit int) ([]Ref, error)

	// NextDue returns the earliest Entry.Due of all tenants' documents; 0 if none has one.
	NextDue(ctx context.Context, def *Def) (int64, error)

	// NextTenant returns the tenant that follows after among the tenants with documents, in an order of the engine's
	// own: the first for "", and "" after the last.
	NextTenant(ctx context.Context, def *Def, after string) (string, error)

	// Pending lists about limit appended messages that are not yet Published and whose Seq is greater than after,
	// oldest first. Messages about one record come in the order of their transactions: all earlier messages about a
	// record come with or before a later one, whatever their Seq. A transaction that commits late can add a message
	// with a lower Seq than one already listed.
	Pending(ctx context.Context, after int64, limit int) ([]Message, error)

	// Published removes messages. Unknown ones are no error.
	Published(ctx context.Context, seqs []int64) error

	// Backlog returns the number of pending messages.
	Backlog(ctx context.Context) (int64, error)

	// Check looks for damage: in the structure of the file, index entries without documents, and documents without
	// entries.
	Check(ctx context.Context) error

	// Ping reports whether the database answers.
	Ping(ctx context.Context) error

	// Decode decodes Row.Data into a *T.
	Decode(data []byte, into any) error

	// DataIsJSON reports whether Row.Data is the document's JSON form.
	DataIsJSON() bool

	// Close waits for running transactions.
	Close() error
}

// Queries are the reads that an Engine answers from the last committed state and an EngineTx from the state of its
// transaction.
type Queries interface {
	// Get returns the documents that exist among ids, in no particular order.
	Get(ctx context.Context, def *Def, tenant string, ids []string) ([]Row, error)
	// Find returns the rows that a query selects, in its order.
	Find(ctx context.Context, def *Def, tenant string, q Find) ([]Row, error)
	// Page is Find and Count for one filter, in one state of the database.
	Page(ctx context.Context, def *Def, tenant string, q Find, exactTo int64) (rows []Row, total Total, err error)
	// Count returns the number of documents that the filter selects. It is exact up to exactTo, and beyond if the
	// engine keeps the number anyway. With exactTo = 0 it is always exact.
	Count(ctx context.Context, def *Def, tenant string, filter Filter, exactTo int64) (Total, error)
}

// Total is the number of documents that a filter selects.
type Total struct {
	N    int64
	More bool // there are more than N; counting stopped
}

// UpTo is the Total of n counted documents, if counting stops after exactTo + 1. With exactTo = 0 all were counted.
func UpTo(exactTo, n int64) Total {
	if exactTo > 0 && n > exactTo {
		return Total{exactTo, true}
	}
	return Total{N: n}
}

// EngineTx is one transaction. Only one goroutine uses it, inside the function given to Write. Its reads see its own
// writes.
//
// An engine may keep writes back to send them together. A *DuplicateError then comes later than from the write itself:
// from a later call, from Flush, or from Write.
type EngineTx interface {
	Queries
	// Peek returns reads of the same state on which the transaction does not depend: what they find may change before
	// it commits.
	Peek() Queries
	// ReadAhead prepares later calls of Get for single documents, where each would cost a round trip. The transaction
	// does not depend on the documents yet.
	ReadAhead(ctx context.Context, def *Def, tenant string, ids []string) error
	// ExpectVersion makes the transaction depend on a document that is at a version, unread. If the document is not
	// there or at another version, Assume, a later call or Write returns ErrStale. It is not for a document that the
	// transaction changes.
	ExpectVersion(ctx context.Context, def *Def, tenant, id string, version int64) error
	// Flush returns when the database has checked all writes so far.
	Flush(ctx context.Context) error
	// Insert adds a document. It returns *DuplicateError if the id or a unique value is taken.
	Insert(ctx context.Context, def *Def, e *Entry) error
	// Replace stores e in place of the document with the same id, whose stamp must be expect. It returns ErrNotFound,
	// *VersionError or *DuplicateError.
	Replace(ctx context.Context, def *Def, e *Entry, expect Stamp) error
	// Delete removes the document with the id, whose stamp must be expect. It returns ErrNotFound or *VersionError.
	Delete(ctx context.Context, def *Def, tenant, id string, expect Stamp) error
	// Append adds a message for the relay. The engine sets its Seq.
	Append(ctx context.Context, m Message) error
}

// Def is the definition of a collection, as engines see it.
type Def struct {
	Name     string // lower-case letters, digits, underscore
	Indexes  []IndexDef
	Revision int  // Schema.Revision; a change makes engines rebuild the index entries
	Seals    bool // its documents have sealed members, whose values are in another collection
	Points   bool // it has a Global index, whose values are in another collection
	// Extract makes the index entries of a stored document again.
	Extract func(engine Engine, data []byte) (*Entry, error)
	// Blank returns a pointer to an empty document, for engines whose driver decodes by type.
	Blank func() any
}

// Index returns the index with the name, nil if there is none.
func (d *Def) Index(name string) *IndexDef {
	for i := range d.Indexes {
		if d.Indexes[i].Name == name {
			return &d.Indexes[i]
		}
	}
	return nil
}

// IndexDef is the definition of one index. Every index starts with the tenant.
type IndexDef struct {
	Name   string
	Many   bool // a list of texts per document (without order, repetitions or empty texts), otherwise one value
	Number bool // the value is a number, otherwise a text; never together with Many
	Unique bool // no two documents of a tenant have the same value; absent values are not compared
	Slot   int  // position in Entry.Keys or, with Many, in Entry.Lists

	// Orders are names of other indexes. If there are any, this index is a facet: see Facet.
	Orders []string `json:",omitempty"`
	// GroupedBy is the name of the index whose order the documents of each value are found in: see Grouped.
	GroupedBy string `json:",omitempty"`
	// Counted says that the number of documents for each value may be kept: see Counted. It is no part of the stored
	// declaration: entries of indexes are the same with it and without.
	Counted bool `json:"-"`
	// Span is the width of a span, in numbers or in leading bytes of texts: see Spanned. 0 means no spans.
	Span int64 `json:",omitempty"`
}

// sorts reports whether a collection can be sorted by the index.
func (d *IndexDef) sorts() bool { return !d.Many && d.GroupedBy == "" }

// Stamp identifies one stored state of a document: every write increments one of its two numbers. A document that was
// stored before Counts existed has Counts 0.
type Stamp struct {
	Version int64 // also a member of the document
	Counts  int64 // the number of writes that left the version as it was; kept beside the document
}

// Revision is the number of writes of either kind.
func (s Stamp) Revision() int64 { return s.Version + s.Counts }

// Entry is a document to be stored, with its index entries.
type Entry struct {
	Tenant, ID string
	Stamp
	Due   int64 // milliseconds; 0 = never
	Keys  []Value
	Lists [][]string
	Doc   any    // *T
	JSON  []byte // the JSON form of Doc

	refusal refusal // makes the client's error if a unique index refuses the entry
}

// Row is a stored document.
type Row struct {
	ID string
	Stamp
	Due  int64
	Data []byte  // in the engine's own form; must not be changed, because a cache may share it
	Sort []Value // the values of the indexes in Find.Sort
}

// Ref identifies a document.
type Ref struct{ Tenant, ID string }

// Message is an event on its way to NATS. It is written in the transaction of the change that it reports.
type Message struct {
	Seq     int64
	ID      string // the Nats-Msg-Id header
	Subject string
	Record  string // the key of the order: messages with equal Record are published one after the other
	Payload []byte

	// Sequence orders messages with equal Record. Messages with equal Sequence are in the order in which they were
	// appended. An engine whose Seq is in the order of its transactions need not store it.
	Sequence int64

	// Elsewhere tells of a pending message that another process has appended, which publishes it as long as it lives.
	// Engines that one process uses never set it.
	Elsewhere bool
}

// Find is a query, as engines see it.
type Find struct {
	Filter Filter
	Sort   []Order // by single-value indexes; the id is always the last key
	After  *Position
	Offset int
	Limit  int  // > 0
	Bare   bool // rows have only ID and Sort
}

// Order sorts by an index.
type Order struct {
	Index string
	Desc  bool
}

// Position is a place between rows: directly after the row with these sort values and this id.
type Position struct {
	Values []Value
	ID     string
}

// Value is an indexed value: a text or a number.
type Value struct {
	Text string
	Num  int64
}

// ErrNotFound reports that the tenant has no such document.
var ErrNotFound = fmt.Errorf("docstore: not found")

// ErrStale reports that a document is not at the version that a transaction assumes. Nothing has changed.
var ErrStale = errors.New("docstore: a document is not at the assumed version")

// DuplicateError reports that a unique value is taken. Index is "" if it is the id.
type DuplicateError struct {
	Collection, Index string
	Value             string // the index value; never shown to clients: it may be folded or hashed

	// Entry is the one that was refused. An engine that sends several entries together sets it, because the refused one
	// may not be that of the current call.
	Entry *Entry
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("docstore: duplicate %s.%s", e.Collection, e.Index)
}

// VersionError reports that the document is not in the expected state. Current is its version.
type VersionError struct{ Current int64 }

func (e *VersionError) Error() string { return fmt.Sprintf("docstore: version is %d", e.Current) }
