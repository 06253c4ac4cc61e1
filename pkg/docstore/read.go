package docstore

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/transaction"
)

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

// Room refuses one more document where the filter selects most or more already. The error is apperr.InvalidState with
// the text, in which %d stands for most: "a tenant has at most %d jobs".
func (c *Collection[T]) Room(ctx context.Context, r Reader, f Filter, most int64, text string) error {
	n, err := c.Count(ctx, r, f)
	if err == nil && n >= most {
		err = apperr.New(apperr.InvalidState, text, most)
	}
	return err
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
