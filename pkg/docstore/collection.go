package docstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/transaction"
)

// Meta holds the members that every document has. Embed it as the first member.
type Meta struct {
	ID           string     `json:"id"`
	TenantID     string     `json:"tenant_id"`
	Version      int64      `json:"version"`
	TimeCreated  clock.Time `json:"time_created"`
	TimeModified clock.Time `json:"time_modified"`

	counts int64 // see Stamp
}

func (m *Meta) meta() *Meta { return m }

func (m *Meta) stamp() Stamp { return Stamp{m.Version, m.counts} }

type document interface{ meta() *Meta }

// Index declares one index of documents of type T. The functions below make one.
type Index[T any] struct {
	def     IndexDef
	key     func(*T) Value
	list    func(*T) []string
	members []string // of a unique index: the members that its values come from
	global  bool     // see Global
}

// ByText indexes one text per document.
func ByText[T any](name string, f func(*T) string) Index[T] {
	return Index[T]{def: IndexDef{Name: name}, key: func(t *T) Value { return Text(f(t)) }}
}

// ByNumber indexes one number or time per document.
func ByNumber[T any](name string, f func(*T) Value) Index[T] {
	return Index[T]{def: IndexDef{Name: name, Number: true}, key: f}
}

// ByList indexes a list of texts per document.
func ByList[T any](name string, f func(*T) []string) Index[T] {
	return Index[T]{def: IndexDef{Name: name, Many: true}, list: f}
}

// Facet turns a text index with few different values into one that combines with orders. The orders are names of other
// single-value indexes. Engines make sure, each in its own way, that the documents with one or several of the facet's
// values are found in these orders, and in ranges of these indexes, without reading all other documents. An engine may
// also keep the number of documents for each value.
func Facet[T any](ix Index[T], orders ...string) Index[T] {
	ix.def.Orders = orders
	return ix
}

// Grouped is for a text index with many different values, by which documents are found in one order: the name of
// another single-value index. Engines make sure that the documents with one or several of the values are found in this
// order, and in ranges of that index, at the cost of the page. The collection cannot be sorted by the index itself.
func Grouped[T any](ix Index[T], order string) Index[T] {
	ix.def.GroupedBy = order
	return ix
}

// Counted makes the number of documents with one or several of a text index's values cheap where the engine keeps these
// numbers, as it does for a Facet. Engines that would slow writes down by it count the documents.
func Counted[T any](ix Index[T]) Index[T] {
	ix.def.Counted = true
	return ix
}

// Spanned makes the ranges and the order of an index combine well with any other filter, at the cost of slower writes.
// A span is a range of width numbers, or the texts with the same first width bytes. Engines may keep, for each span,
// which documents have a value in it. Choose width so that the ranges of queries cover many spans and a span has many
// documents. A list index can be spanned only if it is Unique.
func Spanned[T any](ix Index[T], width int64) Index[T] {
	ix.def.Span = width
	return ix
}

// Schema declares a collection of documents of type T.
type Schema[T any] struct {
	Name    string // lower-case letters, digits, underscore
	Noun    string // what error messages call a document
	Indexes []Index[T]

	// Sortable are the names of the indexes that a List can be sorted by. The first is the default.
	Sortable []string

	// Revision must grow when an index function changes its results, so that the index entries of stored documents are
	// made again.
	Revision int

	// Due is the time from which the stored document is out of date, such as the end of a lock. Settle brings it up to
	// date. Every read settles the documents that it returns; a schedule stores the settled form (Collection.Due).
	// Settle must not change values of Global indexes.
	Due    func(*T) clock.Time // the zero time means never
	Settle func(*T, clock.Time)

	// Sealed are the secret members of a document. Their values are stored apart, encrypted; the document has a mask in
	// their place. Index functions must not use them. See Reveal.
	Sealed func(*T) []Sealed
	// Counts are members that follow from other records, such as the number of children. A write that changes nothing
	// else leaves version and time_modified as they are. The Tag of a document changes with its counts, too.
	Counts func(*T) []*int64

	// Part marks documents that belong to a record of another collection and have its id. If-Match is never checked
	// against them.
	Part bool
}

// Collection is a declared collection. Its methods take the tenant from the context.
type Collection[T any] struct {
	schema Schema[T]
	def    *Def
}

// Define declares a collection. It panics on programming errors: a T that does not embed Meta, a Facet, Grouped or
// Sortable that names an unknown order, a list that is Spanned but not Unique, or a Counted index of other than texts.
func Define[T any](s Schema[T]) *Collection[T] {
	if _, ok := any(new(T)).(document); !ok {
		panic("docstore: the documents of " + s.Name + " must embed Meta")
	}
	c := &Collection[T]{schema: s, def: &Def{Name: s.Name, Revision: s.Revision, Seals: s.Sealed != nil}}
	keys, lists := 0, 0
	for i := range s.Indexes {
		d := s.Indexes[i].def
		if d.Many {
			d.Slot, lists = lists, lists+1
		} else {
			d.Slot, keys = keys, keys+1
		}
		c.def.Indexes = append(c.def.Indexes, d)
	}
	for i, d := range c.def.Indexes {
		if s.Indexes[i].global {
			if d.Number {
				panic("docstore: the Global index " + d.Name + " of " + s.Name + " must be ByText or ByList")
			}
			c.def.Points = true
		}
		if d.Span < 0 || d.Span > 0 && (d.Many && !d.Unique || len(d.Orders) > 0) {
			panic("docstore: the index " + d.Name + " of " + s.Name + " cannot be Spanned")
		}
		if d.Counted && (d.Many || d.Number || d.Unique) {
			panic("docstore: the index " + d.Name + " of " + s.Name + " cannot be Counted")
		}
		if d.GroupedBy != "" && !c.def.canBeGrouped(&d) {
			panic("docstore: the index " + d.Name + " of " + s.Name + " cannot be Grouped by " + d.GroupedBy)
		}
		for _, name := range d.Orders {
			if order := c.def.Index(name); order == nil || order.Many || d.Many || d.Number || d.Unique {
				panic("docstore: " + s.Name + " has no order by " + name + " for the facet " + d.Name)
			}
		}
	}
	for _, name := range s.Sortable {
		if order := c.def.Index(name); order == nil || !order.sorts() {
			panic("docstore: " + s.Name + " has no order by " + name)
		}
	}
	c.def.Blank = func() any { return new(T) }
	c.def.Extract = func(engine Engine, data []byte) (*Entry, error) {
		v := new(T)
		if err := engine.Decode(data, v); err != nil {
			return nil, err
		}
		return c.entry(v)
	}
	return c
}

// canBeGrouped reports whether an index is a plain text index and is grouped by one that documents can be sorted by.
func (d *Def) canBeGrouped(ix *IndexDef) bool {
	order := d.Index(ix.GroupedBy)
	return order != nil && order.sorts() && !ix.Many && !ix.Number && !ix.Unique && ix.Span == 0 && len(ix.Orders) == 0
}

// Def is the collection's definition, for Open.
func (c *Collection[T]) Def() *Def { return c.def }

func metaOf[T any](v *T) *Meta { return any(v).(document).meta() }

func (c *Collection[T]) encode(v *T) ([]byte, error) {
	body, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("docstore: encode %s: %w", c.def.Name, err)
	}
	return body, nil
}

func (c *Collection[T]) entry(v *T) (*Entry, error) {
	body, err := c.encode(v)
	if err != nil {
		return nil, err
	}
	return c.entryOf(v, body), nil
}

// entryOf makes the entry of a document whose JSON form is known.
func (c *Collection[T]) entryOf(v *T, body []byte) *Entry {
	m := metaOf(v)
	e := &Entry{Tenant: m.TenantID, ID: m.ID, Stamp: m.stamp(), Doc: v, JSON: body}
	if c.schema.Due != nil {
		if due := c.schema.Due(v); !due.IsZero() {
			e.Due = due.Millis()
		}
	}
	for i := range c.schema.Indexes {
		if ix := &c.schema.Indexes[i]; ix.def.Many {
			e.Lists = append(e.Lists, distinct(ix.list(v)))
		} else {
			e.Keys = append(e.Keys, ix.key(v))
		}
	}
	return e
}

// Reader is what a read reads from: a *Store (the last committed state) or a *Tx (the state of its transaction).
type Reader interface {
	queries() (Queries, error)
	store() *Store
}

// Find returns the document with the id. The error is apperr.NotFound if the tenant has none.
func (c *Collection[T]) Find(ctx context.Context, r Reader, id string) (Doc[T], error) {
	docs, err := c.FindMany(ctx, r, []string{id})
	if err != nil {
		return Doc[T]{}, err
	}
	if len(docs) == 0 {
		return Doc[T]{}, c.missing()
	}
	return docs[0], nil
}

// FindMany returns the documents that exist among ids, in no particular order.
func (c *Collection[T]) FindMany(ctx context.Context, r Reader, ids []string) ([]Doc[T], error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	from, err := r.queries()
	if err != nil {
		return nil, err
	}
	rows, err := from.Get(ctx, c.def, tenant, ids)
	if err != nil {
		return nil, err
	}
	return c.docs(r, rows)
}

// First returns the first document that the filter selects. The error is apperr.NotFound if there is none.
func (c *Collection[T]) First(ctx context.Context, r Reader, f Filter) (Doc[T], error) {
	page, err := c.Page(ctx, r, Query{Filter: f, Limit: 1})
	if err != nil {
		return Doc[T]{}, err
	}
	if len(page.Docs) == 0 {
		return Doc[T]{}, c.missing()
	}
	return page.Docs[0], nil
}

// Count returns the exact number of documents that the filter selects. Its cost grows with that number.
func (c *Collection[T]) Count(ctx context.Context, r Reader, f Filter) (int64, error) {
	total, err := c.CountTo(ctx, r, f, 0)
	return total.N, err
}

// CountTo is Count, but exact only up to a number at least; with 0 it is always exact. Its cost does not grow beyond
// that number.
func (c *Collection[T]) CountTo(ctx context.Context, r Reader, f Filter, exactTo int64) (Total, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return Total{}, err
	}
	if err := c.def.check(f, nil); err != nil {
		return Total{}, err
	}
	from, err := r.queries()
	if err != nil {
		return Total{}, err
	}
	return from.Count(ctx, c.def, tenant, f, exactTo)
}

// Each calls fn for every document that the filter selects, in the order of ids. It reads a page at a time: changes
// that others make meanwhile make it neither repeat a document nor skip one. It stops at fn's first error.
func (c *Collection[T]) Each(ctx context.Context, r Reader, f Filter, fn func(Doc[T]) error) error {
	q := Query{Filter: f}
	for stride := (Stride{}); ; {
		q.Limit = stride.Next()
		page, err := c.Page(ctx, r, q)
		if err != nil {
			return err
		}
		bytes := 0
		for _, d := range page.Docs {
			bytes += len(d.body)
			if err := fn(d); err != nil {
				return err
			}
		}
		stride.Took(len(page.Docs), bytes)
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// Indexed is a document's id and its value in a text index.
type Indexed struct{ ID, Text string }

// Texts lists the values of a text index for the documents that the filter selects, in the index's order, at most limit
// of them. It reads index entries and, if the filter is about another index, the values that are stored beside
// documents. It decodes no documents.
func (c *Collection[T]) Texts(ctx context.Context, r Reader, index string, f Filter, limit int) ([]Indexed, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	find := Find{Filter: f, Sort: []Order{{Index: index}}, Limit: limit, Bare: true}
	if err := c.def.check(f, find.Sort); err != nil {
		return nil, err
	}
	if c.def.Index(index).Number {
		return nil, fmt.Errorf("docstore: %s has no texts in %q", c.def.Name, index)
	}
	from, err := r.queries()
	if err != nil {
		return nil, err
	}
	rows, err := from.Find(ctx, c.def, tenant, find)
	if err != nil {
		return nil, err
	}
	texts := make([]Indexed, len(rows))
	for i := range rows {
		texts[i] = Indexed{rows[i].ID, rows[i].Sort[0].Text}
	}
	return texts, nil
}

// NextTenant returns the tenant that follows after among the tenants with documents, in an arbitrary order: the first
// for "", and "" after the last.
func (c *Collection[T]) NextTenant(ctx context.Context, s *Store, after string) (string, error) {
	if err := transaction.Refuse("docstore: NextTenant"); err != nil {
		return "", err
	}
	return s.engine.NextTenant(ctx, c.def, after)
}

// EachTenant calls fn for every tenant with documents, with a context for work on them. It stops at fn's first error.
func (c *Collection[T]) EachTenant(ctx context.Context, s *Store, fn func(ctx context.Context) error) error {
	for tenant := ""; ; {
		next, err := c.NextTenant(ctx, s, tenant)
		if err != nil || next == "" {
			return err
		}
		if err := fn(request.System(ctx, next)); err != nil {
			return err
		}
		tenant = next
	}
}

// Load returns a document to be changed in this transaction, as stored (not settled). The error is apperr.NotFound if
// the tenant has none, and apperr.VersionMismatch if the request's If-Match is about this document and asks for another
// version.
func (c *Collection[T]) Load(ctx context.Context, tx *Tx, id string) (*T, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.engine.Get(ctx, c.def, tenant, []string{id})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, c.missing()
	}
	if want := expectedVersion(ctx, id); !c.schema.Part && want != nil && !want(rows[0].Version) {
		return nil, errVersion(rows[0].Version)
	}
	return c.load(tx, &rows[0])
}

// LoadMany is Load for those of the ids that exist, in no particular order. It does not check If-Match.
func (c *Collection[T]) LoadMany(ctx context.Context, tx *Tx, ids []string) ([]*T, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.engine.Get(ctx, c.def, tenant, ids)
	if err != nil {
		return nil, err
	}
	return c.loadAll(tx, rows)
}

// LoadWhere is LoadMany for the first documents that the filter selects, in the order of an index, or in the order of
// ids if the index is "".
func (c *Collection[T]) LoadWhere(ctx context.Context, tx *Tx, f Filter, by string, limit int) ([]*T, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	find := Find{Filter: f, Limit: limit}
	if by != "" {
		find.Sort = []Order{{Index: by}}
	}
	if err := c.def.check(f, find.Sort); err != nil {
		return nil, err
	}
	rows, err := tx.engine.Find(ctx, c.def, tenant, find)
	if err != nil {
		return nil, err
	}
	return c.loadAll(tx, rows)
}

func (c *Collection[T]) loadAll(tx *Tx, rows []Row) ([]*T, error) {
	all := make([]*T, len(rows))
	for i := range rows {
		var err error
		if all[i], err = c.load(tx, &rows[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *Collection[T]) load(tx *Tx, row *Row) (*T, error) {
	v := new(T)
	if err := tx.st.engine.Decode(row.Data, v); err != nil {
		return nil, fmt.Errorf("docstore: decode %s %s: %w", c.def.Name, row.ID, err)
	}
	metaOf(v).counts = row.Counts
	tx.remember(c.def, row.ID, loaded{data: row.Data})
	return v, nil
}

// Assume makes the transaction depend on a document that the caller knows in a version, without reading it, as if the
// transaction had read it in that version. It saves a round trip for what seldom changes. If the document has changed
// or is gone, Write returns ErrStale. It is not for a document that the transaction changes.
func (c *Collection[T]) Assume(ctx context.Context, tx *Tx, id string, version int64) error {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return err
	}
	return tx.engine.Assume(ctx, c.def, tenant, id, version)
}

// Insert adds a document, whose id must be set. It sets the tenant, version 1, time_created if it is zero, and
// time_modified to time_created.
func (c *Collection[T]) Insert(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	return c.insert(ctx, tx, v, 1, c.refusal(inPlace, v))
}

// InsertAfter is Insert with the version that follows another one. It is for a record that takes the place of a deleted
// one, so that an If-Match for that does not accept it.
func (c *Collection[T]) InsertAfter(ctx context.Context, tx *Tx, v *T, version int64) (Doc[T], error) {
	return c.insert(ctx, tx, v, version+1, c.refusal(inPlace, v))
}

// InsertMany is Insert for several documents. at returns where in the request the i-th document stands, such as
// items[3]; faults about taken values name it.
func (c *Collection[T]) InsertMany(ctx context.Context, tx *Tx, at func(i int) string, all ...*T) ([]Doc[T], error) {
	docs := make([]Doc[T], len(all))
	taken := c.refusal(at, all...)
	for i, v := range all {
		var err error
		if docs[i], err = c.insert(ctx, tx, v, 1, taken); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// inPlace is the place of a document that is the whole request body.
func inPlace(int) string { return "" }

func (c *Collection[T]) insert(ctx context.Context, tx *Tx, v *T, version int64, taken refusal) (Doc[T], error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return Doc[T]{}, err
	}
	m := metaOf(v)
	m.TenantID, m.Version, m.counts = tenant, version, 0
	if m.TimeCreated.IsZero() {
		m.TimeCreated = tx.Now
	}
	m.TimeModified = m.TimeCreated
	if _, err := c.seal(ctx, tx, v, func() (*T, error) { return new(T), nil }); err != nil {
		return Doc[T]{}, err
	}
	e, err := c.entry(v)
	if err != nil {
		return Doc[T]{}, err
	}
	e.refusal = taken
	if err := tx.engine.Insert(ctx, c.def, e); err != nil {
		return Doc[T]{}, withEntry(err, e)
	}
	tx.noteDue(c.def, e)
	if err := c.point(ctx, tx, e, nil, c.globals(v)); err != nil {
		return Doc[T]{}, err
	}
	return c.written(v, e, nil), nil
}

// Delete removes a document and returns it as it was. The removal is a revision of its own. The error is
// apperr.NotFound or apperr.VersionMismatch if the stored document is not at the revision of v.
func (c *Collection[T]) Delete(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	m := metaOf(v)
	globals, err := c.globalsBefore(tx, v)
	if err != nil {
		return Doc[T]{}, err
	}
	if err := tx.engine.Delete(ctx, c.def, m.TenantID, m.ID, m.stamp()); err != nil {
		return Doc[T]{}, c.translate(err)
	}
	if err := c.point(ctx, tx, &Entry{}, globals, nil); err != nil {
		return Doc[T]{}, err
	}
	m.counts++
	return c.written(v, &Entry{ID: m.ID, Stamp: m.stamp()}, nil), c.unseal(ctx, tx, m.ID)
}

// DeleteWhere removes the documents that the filter selects. It calls each, unless that is nil, with every removed
// document, in the form that Delete returns.
func (c *Collection[T]) DeleteWhere(ctx context.Context, tx *Tx, f Filter, each func(Doc[T]) error) error {
	for {
		page, err := c.Page(ctx, tx, Query{Filter: f, Limit: 500})
		if err != nil {
			return err
		}
		for _, d := range page.Docs {
			if err := tx.engine.Delete(ctx, c.def, request.Tenant(ctx), d.ID, d.Stamp); err != nil {
				return c.translate(err)
			}
			if c.def.Points {
				v, err := d.Value()
				if err != nil {
					return err
				}
				if err := c.point(ctx, tx, &Entry{}, c.globals(v), nil); err != nil {
					return err
				}
			}
			if err := c.unseal(ctx, tx, d.ID); err != nil {
				return err
			}
			d.Counts++
			d.written = true
			if each != nil {
				if err := each(d); err != nil {
					return err
				}
			}
		}
		if page.Next == "" {
			return nil
		}
	}
}

// translate turns an engine's conflict errors into errors for clients.
func (c *Collection[T]) translate(err error) error {
	if version, ok := errors.AsType[*VersionError](err); ok {
		return apperr.New(apperr.VersionMismatch, "the record has changed; its version is now %d", version.Current).
			Because(err)
	}
	if errors.Is(err, ErrNotFound) {
		return c.missing()
	}
	return err
}

func (c *Collection[T]) missing() error { return apperr.Missing(c.schema.Noun) }

func (c *Collection[T]) docs(r Reader, rows []Row) ([]Doc[T], error) {
	docs := make([]Doc[T], len(rows))
	for i := range rows {
		d, err := c.doc(r.store(), &rows[i])
		if err != nil {
			return nil, err
		}
		docs[i] = d
	}
	return docs, nil
}

// doc makes the Doc of a row, settled.
func (c *Collection[T]) doc(s *Store, row *Row) (Doc[T], error) {
	d := Doc[T]{ID: row.ID, Stamp: row.Stamp, body: row.Data, engine: s.engine, counted: c.schema.Counts != nil}
	var now clock.Time
	due := row.Due != 0 && c.schema.Settle != nil
	if due { // reading the clock for every document of a list would cost as much as all else
		now = s.clock.Now()
		due = row.Due <= now.Millis()
	}
	if !due {
		d.encoded = s.engine.DataIsJSON()
		return d, nil
	}
	v, err := d.Value()
	if err != nil {
		return d, err
	}
	c.schema.Settle(v, now)
	d.body = nil
	return d.with(v)
}

func (c *Collection[T]) written(v *T, e *Entry, before []byte) Doc[T] {
	d := Doc[T]{ID: e.ID, Stamp: e.Stamp, body: e.JSON, encoded: e.JSON != nil, was: &former{body: before},
		counted: c.schema.Counts != nil, written: true}
	d.value = new(T)
	*d.value = *v
	return d
}

// Doc is a document that was read or written. It holds the JSON form; the value is decoded when it is first asked for.
// A Doc is not safe for concurrent use. It is small, because a list has many.
type Doc[T any] struct {
	ID string
	Stamp

	value   *T
	body    []byte  // the JSON form if encoded; otherwise the engine's own form, or nil if only value is known
	was     *former // nil unless the document was written
	engine  Engine
	encoded bool
	counted bool // the document's type has Counts
	written bool
}

// former is the JSON form of a document before it was written.
type former struct {
	body []byte        // if it is known
	make func() []byte // makes body; nil if body is known or the document is new
}

// Value returns the decoded document. Changes to it do not change what is stored.
func (d *Doc[T]) Value() (*T, error) {
	if d.value == nil {
		v := new(T)
		if err := d.engine.Decode(d.body, v); err != nil {
			return nil, fmt.Errorf("docstore: decode %s: %w", d.ID, err)
		}
		metaOf(v).counts = d.Counts
		d.value = v
	}
	return d.value, nil
}

// JSON returns the document's JSON form. The caller must not change the bytes.
func (d *Doc[T]) JSON() ([]byte, error) {
	if d.encoded {
		return d.body, nil
	}
	v, err := d.Value()
	if err != nil {
		return nil, err
	}
	body, err := encode(v)
	if err != nil {
		return nil, err
	}
	d.body, d.encoded = body, true
	return body, nil
}

func (d Doc[T]) with(v *T) (Doc[T], error) {
	d.value = v
	_, err := d.JSON()
	return d, err
}

// Previous returns the members that this write changed, with their former values, without version and time_modified. It
// is nil for an inserted document and for one that was not changed.
func (d *Doc[T]) Previous() map[string]json.RawMessage {
	was := d.was
	if was == nil {
		return nil
	}
	if was.make != nil {
		was.body, was.make = was.make(), nil
	}
	if was.body == nil || string(was.body) == string(d.body) {
		return nil
	}
	return difference(was.body, d.body)
}

// Changed reports whether the write changed the document. It is true for an inserted and for a deleted one.
func (d *Doc[T]) Changed() bool {
	return d.was == nil || d.was.make != nil || d.was.body == nil || string(d.was.body) != string(d.body)
}

// Written reports whether this transaction inserted, replaced or deleted the document. Only then is the revision new,
// so that no event about it exists yet.
func (d *Doc[T]) Written() bool { return d.written }

// Tag identifies the document's content: it changes whenever any member does. It is the version; if the type has
// Counts, a dash and a number that stands for them follow.
func (d *Doc[T]) Tag() string {
	tag := strconv.FormatInt(d.Version, 10)
	if d.counted {
		tag += "-" + strconv.FormatInt(d.Counts, 10)
	}
	return tag
}

// Stored is the document's JSON form and Tag, for code that does not know the document's type.
func (d Doc[T]) Stored() (body []byte, tag string, err error) {
	body, err = d.JSON()
	return body, d.Tag(), err
}

// Deleted is the answer to the deletion of one document.
type Deleted struct {
	ID string `json:"id" example:"1048577"`
}

// Batch is the answer to a batch: its records in the order of the items.
type Batch struct {
	Items []json.RawMessage `json:"items"`
}

// BatchOf makes a Batch of the documents that a batch wrote.
func BatchOf[D stored](docs []D) (Batch, error) {
	b := Batch{make([]json.RawMessage, len(docs))}
	for i, doc := range docs {
		var err error
		if b.Items[i], _, err = doc.Stored(); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// stored is implemented by Doc[T] for every T.
type stored interface {
	Stored() (body []byte, tag string, err error)
}
