package docstore

import (
	"context"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Collection is a declared collection. Its methods take the tenant from the context.
type Collection[T any] struct{ untyped *collection }

// Define declares a collection. It panics on programming errors: a T that does not embed Meta, a Facet, Grouped or
// Sortable that names an unknown order, a list that is Spanned but not Unique, or a Counted index of other than texts.
func Define[T any](s Schema[T]) *Collection[T] {
	if _, ok := any(new(T)).(document); !ok {
		panic("docstore: the documents of " + s.Name + " must embed Meta")
	}
	c := &collection{
		def:    &Def{Name: s.Name, Revision: s.Revision, Seals: s.Sealed != nil, Blank: func() any { return new(T) }},
		noun:   s.Noun,
		orders: s.Sortable,
		due:    ofAny(s.Due),
		sealed: ofAny(s.Sealed),
		counts: ofAny(s.Counts),
		part:   s.NoIfMatch,
		clone:  func(v any) any { copied := *v.(*T); return &copied },
	}
	for _, ix := range s.Indexes {
		c.indexes = append(c.indexes, ix.anyIndex)
	}
	if s.ApplyDue != nil {
		c.applyDue = func(v any, now clock.Time) { s.ApplyDue(v.(*T), now) }
	}
	c.define()
	return &Collection[T]{c}
}

// Find returns the document with the id. The error is apperr.NotFound if the tenant has none.
func (c *Collection[T]) Find(ctx context.Context, r Reader, id string) (Doc[T], error) {
	doc, err := c.untyped.find(ctx, r, id)
	return Doc[T]{doc}, err
}

// FindMany returns the documents that exist among ids, in no particular order.
func (c *Collection[T]) FindMany(ctx context.Context, r Reader, ids []string) ([]Doc[T], error) {
	docs, err := c.untyped.findMany(ctx, r, ids)
	return docsOf[T](docs), err
}

// FindGlobal returns the document of any tenant that has this value in a Global index. The document's Meta has the
// tenant. The error is apperr.NotFound if there is none. It is the only read that needs no tenant in the context.
func (c *Collection[T]) FindGlobal(ctx context.Context, r Reader, index, value string) (Doc[T], error) {
	doc, err := c.untyped.findGlobal(ctx, r, index, value)
	return Doc[T]{doc}, err
}

// First returns the first document that the filter selects. The error is apperr.NotFound if there is none.
func (c *Collection[T]) First(ctx context.Context, r Reader, f Filter) (Doc[T], error) {
	doc, err := c.untyped.first(ctx, r, f)
	return Doc[T]{doc}, err
}

// Each calls fn for every document that the filter selects, in the order of ids. It reads a page at a time: changes
// that others make meanwhile make it neither repeat a document nor skip one. It stops at fn's first error.
func (c *Collection[T]) Each(ctx context.Context, r Reader, f Filter, fn func(Doc[T]) error) error {
	return c.untyped.each(ctx, r, f, func(doc anyDoc) error { return fn(Doc[T]{doc}) })
}

// List reads one page of a list, in an order of Schema.Sortable. The error is apperr.InvalidParameters at page_num,
// page_sort or page_token.
func (c *Collection[T]) List(ctx context.Context, r Reader, f Filter, p Paging) (Page[T], error) {
	page, err := c.untyped.list(ctx, r, f, p)
	return pageOf(c, r, page), err
}

// Page reads one page. The error is apperr.InvalidParameters at page_token if After comes from another query.
func (c *Collection[T]) Page(ctx context.Context, r Reader, q Query) (Page[T], error) {
	page, err := c.untyped.page(ctx, r, q)
	return pageOf(c, r, page), err
}

// Count returns the exact number of documents that the filter selects. Its cost grows with that number.
func (c *Collection[T]) Count(ctx context.Context, r Reader, f Filter) (int64, error) {
	return c.untyped.count(ctx, r, f)
}

// CheckLimit refuses one more document where the filter selects most or more already. The error is apperr.InvalidState
// with the text, in which %d stands for most: "a tenant has at most %d jobs".
func (c *Collection[T]) CheckLimit(ctx context.Context, r Reader, f Filter, most int64, text string) error {
	return c.untyped.room(ctx, r, f, most, text)
}

// CountTo is Count, but exact only up to a number at least; with 0 it is always exact. Its cost does not grow beyond
// that number.
func (c *Collection[T]) CountTo(ctx context.Context, r Reader, f Filter, exactTo int64) (Total, error) {
	return c.untyped.countTo(ctx, r, f, exactTo)
}

// Divide returns the ids at which the tenant's documents, in the order of ids, divide into at most that many parts of
// about the same size, of at least that many documents each: a part begins after one id and ends with the next. It is
// for readers that read the parts at the same time, by Query.AfterID. Its cost grows with the number of documents.
func (c *Collection[T]) Divide(ctx context.Context, r Reader, parts int, least int64) (ids []string, err error) {
	return c.untyped.divide(ctx, r, parts, least)
}

// Texts lists the values of a text index for the documents that the filter selects, in the index's order, at most limit
// of them. It reads index entries and, if the filter is about another index, the values that are stored beside
// documents. It decodes no documents.
func (c *Collection[T]) Texts(ctx context.Context, r Reader, index string, f Filter, limit int) ([]Indexed, error) {
	return c.untyped.texts(ctx, r, index, f, limit)
}

// NextTenant returns the tenant that follows after among the tenants with documents, in an arbitrary order: the first
// for "", and "" after the last.
func (c *Collection[T]) NextTenant(ctx context.Context, s *Store, after string) (string, error) {
	return c.untyped.nextTenant(ctx, s, after)
}

// EachTenant calls fn for every tenant with documents, with a context for work on them. It stops at fn's first error.
func (c *Collection[T]) EachTenant(ctx context.Context, s *Store, fn func(ctx context.Context) error) error {
	return c.untyped.eachTenant(ctx, s, fn)
}

// Due lists documents of all tenants whose Due time has come, at most limit of them. It finds what another process has
// written within askAgain.
func (c *Collection[T]) Due(ctx context.Context, s *Store, limit int) ([]Ref, error) {
	return c.untyped.listDue(ctx, s, limit)
}

// Reveal returns the value of a sealed member, empty if the record has none. The caller must keep it out of logs,
// events and answers.
func (c *Collection[T]) Reveal(ctx context.Context, r Reader, id, member string) (secret.String, error) {
	values, err := c.untyped.reveal(ctx, r, id, member)
	return values[member], err
}

// RevealAll returns the values of all sealed members that the record has, by name, with one read. The caller must keep
// them out of logs, events and answers.
func (c *Collection[T]) RevealAll(ctx context.Context, r Reader, id string) (map[string]secret.String, error) {
	return c.untyped.reveal(ctx, r, id)
}

// ReadAhead reads documents, and their sealed values, that the transaction will Load or Insert one by one, so that this
// costs no round trip for each. The transaction does not depend on them yet, and they need not exist.
func (c *Collection[T]) ReadAhead(ctx context.Context, tx *Tx, ids ...string) error {
	return c.untyped.readAhead(ctx, tx, ids...)
}

// ExpectVersion makes the transaction depend on a document that the caller knows in a version, without reading it, as
// if the transaction had read it in that version. It saves a round trip for what seldom changes. If the document has
// changed or is gone, Write returns ErrStale. It is not for a document that the transaction changes.
func (c *Collection[T]) ExpectVersion(ctx context.Context, tx *Tx, id string, version int64) error {
	return c.untyped.assume(ctx, tx, id, version)
}

// Def is the collection's definition, for Open.
func (c *Collection[T]) Def() *Def { return c.untyped.def }

// Load returns a document to be changed in this transaction, as stored (without Schema.ApplyDue). The error is
// apperr.NotFound if the tenant has none, and apperr.VersionMismatch if the request's If-Match is about this document
// and asks for another version.
func (c *Collection[T]) Load(ctx context.Context, tx *Tx, id string) (*T, error) {
	v, err := c.untyped.load(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return v.(*T), nil
}

// LoadMany is Load for those of the ids that exist, in no particular order. It does not check If-Match.
func (c *Collection[T]) LoadMany(ctx context.Context, tx *Tx, ids []string) ([]*T, error) {
	all, err := c.untyped.loadMany(ctx, tx, ids)
	return valuesOf[T](all), err
}

// LoadWhere is LoadMany for the first documents that the filter selects, in the order of an index, or in the order of
// ids if the index is "".
func (c *Collection[T]) LoadWhere(ctx context.Context, tx *Tx, f Filter, by string, limit int) ([]*T, error) {
	all, err := c.untyped.loadWhere(ctx, tx, f, by, limit)
	return valuesOf[T](all), err
}

// Insert adds a document, whose id must be set. It sets the tenant, version 1, time_created if it is zero, and
// time_modified to time_created.
func (c *Collection[T]) Insert(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	return c.InsertAfter(ctx, tx, v, 0)
}

// InsertAfter is Insert with the version that follows another one. It is for a record that takes the place of a deleted
// one, so that an If-Match for that does not accept it.
func (c *Collection[T]) InsertAfter(ctx context.Context, tx *Tx, v *T, version int64) (Doc[T], error) {
	doc, err := c.untyped.insertOne(ctx, tx, v, version+1)
	return Doc[T]{doc}, err
}

// InsertMany is Insert for several documents. at returns where in the request the i-th document stands, such as
// items[3]; faults about taken values name it.
func (c *Collection[T]) InsertMany(ctx context.Context, tx *Tx, at func(i int) string, all ...*T) ([]Doc[T], error) {
	values := make([]any, len(all))
	for i, v := range all {
		values[i] = v
	}
	docs, err := c.untyped.insertMany(ctx, tx, at, values)
	return docsOf[T](docs), err
}

// Replace stores a loaded document as the next version, or at the same version if only Counts have changed. It does not
// write a document that is unchanged since it was loaded; the Doc is then neither Changed nor Written.
func (c *Collection[T]) Replace(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	doc, err := c.untyped.replace(ctx, tx, v, ifChanged)
	return Doc[T]{doc}, err
}

// Revise is Replace that always writes, at the same version if nothing has changed. It is for an event about a record
// that does not change with it, and for a document that makes concurrent transactions conflict.
func (c *Collection[T]) Revise(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	doc, err := c.untyped.replace(ctx, tx, v, inAnyCase)
	return Doc[T]{doc}, err
}

// Touch is Replace that always makes a new version, without comparing the document. It is for a change of something
// that belongs to the document, or for a document that is certain to have changed.
func (c *Collection[T]) Touch(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	doc, err := c.untyped.replace(ctx, tx, v, newVersion)
	return Doc[T]{doc}, err
}

// Recount is Replace that always writes at the same version, without comparing the document. It is for a document of
// which only members have changed that are no information of its own: Counts, or when it was used. The Doc has no
// Previous.
func (c *Collection[T]) Recount(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	doc, err := c.untyped.replace(ctx, tx, v, newCounts)
	return Doc[T]{doc}, err
}

// Delete removes a document and returns it as it was. The removal is a revision of its own. The error is
// apperr.NotFound or apperr.VersionMismatch if the stored document is not at the revision of v.
func (c *Collection[T]) Delete(ctx context.Context, tx *Tx, v *T) (Doc[T], error) {
	doc, err := c.untyped.remove(ctx, tx, v)
	return Doc[T]{doc}, err
}

// DeleteWhere removes the documents that the filter selects. It calls each, unless that is nil, with every removed
// document, in the form that Delete returns.
func (c *Collection[T]) DeleteWhere(ctx context.Context, tx *Tx, f Filter, each func(Doc[T]) error) error {
	return c.untyped.removeWhere(ctx, tx, f, func(doc anyDoc) error {
		if each == nil {
			return nil
		}
		return each(Doc[T]{doc})
	})
}

func pageOf[T any](c *Collection[T], r Reader, p anyPage) Page[T] {
	page := Page[T]{Docs: docsOf[T](p.docs), Total: p.total, More: p.more, Next: p.next}
	if store, ok := r.(*Store); ok {
		page.again = func(ctx context.Context, ids []string) ([]Doc[T], error) {
			docs, err := c.untyped.inOrder(ctx, store, ids)
			return docsOf[T](docs), err
		}
	}
	return page
}

func docsOf[T any](all []anyDoc) []Doc[T] {
	docs := make([]Doc[T], len(all))
	for i, doc := range all {
		docs[i] = Doc[T]{doc}
	}
	return docs
}

func valuesOf[T any](all []any) []*T {
	values := make([]*T, len(all))
	for i, v := range all {
		values[i] = v.(*T)
	}
	return values
}
