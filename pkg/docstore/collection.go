package docstore

import (
	"fmt"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Meta holds the members that every document has. Embed it as the first member.
type Meta struct {
	ID           string     `json:"id" readOnly:"true" doc:"Given by the platform; never used again" example:"1048577"`
	TenantID     string     `json:"tenant_id" readOnly:"true" doc:"The tenant that it belongs to" example:"acme"`
	Version      int64      `json:"version" readOnly:"true" doc:"Grows by one with every change; If-Match takes it" example:"1"`
	TimeCreated  clock.Time `json:"time_created" readOnly:"true" doc:"When it was created" example:"2026-01-31T09:30:00.000Z"`
	TimeModified clock.Time `json:"time_modified" readOnly:"true" doc:"When it last changed" example:"2026-01-31T09:30:00.000Z"`

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
