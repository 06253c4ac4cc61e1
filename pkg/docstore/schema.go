package docstore

import "github.com/idplatform/idplatform/pkg/clock"

// Index declares one index of documents of type T. The functions below make one.
type Index[T any] struct{ anyIndex }

// anyIndex is an Index whose functions take a *T as any.
type anyIndex struct {
	def     IndexDef
	key     func(any) Value
	list    func(any) []string
	members []string // of a unique index: the members that its values come from
	global  bool     // see Global
}

// ByText indexes one text per document.
func ByText[T any](name string, f func(*T) string) Index[T] {
	return Index[T]{anyIndex{def: IndexDef{Name: name}, key: func(v any) Value { return Text(f(v.(*T))) }}}
}

// ByNumber indexes one number or time per document.
func ByNumber[T any](name string, f func(*T) Value) Index[T] {
	return Index[T]{anyIndex{def: IndexDef{Name: name, Number: true}, key: ofAny(f)}}
}

// ByList indexes a list of texts per document.
func ByList[T any](name string, f func(*T) []string) Index[T] {
	return Index[T]{anyIndex{def: IndexDef{Name: name, Many: true}, list: ofAny(f)}}
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

// ofAny makes a function take its argument, a *T, as any. It is nil if f is.
func ofAny[T, R any](f func(*T) R) func(any) R {
	if f == nil {
		return nil
	}
	return func(v any) R { return f(v.(*T)) }
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

	// Due is the time from which the stored document is out of date, such as the end of a lock. ApplyDue brings it up
	// to date. Every read applies it to the documents that it returns; a schedule stores the result (Collection.Due).
	// ApplyDue must not change values of Global indexes.
	Due      func(*T) clock.Time // the zero time means never
	ApplyDue func(*T, clock.Time)

	// Sealed are the secret members of a document. Their values are stored apart, encrypted; the document has a mask in
	// their place. Index functions must not use them. See Reveal.
	Sealed func(*T) []Sealed
	// Counts are members that follow from other records, such as the number of children. A write that changes nothing
	// else leaves version and time_modified as they are. The Tag of a document changes with its counts, too.
	Counts func(*T) []*int64

	// NoIfMatch marks documents that belong to a record of another collection and have its id. If-Match is never
	// checked against them.
	NoIfMatch bool
}
