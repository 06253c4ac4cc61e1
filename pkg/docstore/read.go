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

func (c *collection) find(ctx context.Context, r Reader, id string) (anyDoc, error) {
	docs, err := c.findMany(ctx, r, []string{id})
	if err != nil {
		return anyDoc{}, err
	}
	if len(docs) == 0 {
		return anyDoc{}, c.missing()
	}
	return docs[0], nil
}

func (c *collection) findMany(ctx context.Context, r Reader, ids []string) ([]anyDoc, error) {
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

func (c *collection) first(ctx context.Context, r Reader, f Filter) (anyDoc, error) {
	page, err := c.page(ctx, r, Query{Filter: f, Limit: 1})
	if err != nil {
		return anyDoc{}, err
	}
	if len(page.docs) == 0 {
		return anyDoc{}, c.missing()
	}
	return page.docs[0], nil
}

func (c *collection) count(ctx context.Context, r Reader, f Filter) (int64, error) {
	total, err := c.countTo(ctx, r, f, 0)
	return total.N, err
}

func (c *collection) room(ctx context.Context, r Reader, f Filter, most int64, text string) error {
	n, err := c.count(ctx, r, f)
	if err == nil && n >= most {
		err = apperr.New(apperr.InvalidState, text, most)
	}
	return err
}

func (c *collection) countTo(ctx context.Context, r Reader, f Filter, exactTo int64) (Total, error) {
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

func (c *collection) divide(ctx context.Context, r Reader, parts int, least int64) (ids []string, err error) {
	n, err := c.count(ctx, r, Filter{})
	if err != nil {
		return nil, err
	}
	size := max(n/int64(parts), least, 1)
	for end := size; end < n && len(ids) < parts-1; end += size {
		page, err := c.page(ctx, r, Query{Offset: int(end - 1), Limit: 1})
		if err != nil || len(page.docs) == 0 { // none: documents were deleted meanwhile
			return ids, err
		}
		ids = append(ids, page.docs[0].ID)
	}
	return ids, nil
}

func (c *collection) each(ctx context.Context, r Reader, f Filter, fn func(anyDoc) error) error {
	q := Query{Filter: f}
	for stride := (Stride{}); ; {
		q.Limit = stride.Next()
		page, err := c.page(ctx, r, q)
		if err != nil {
			return err
		}
		bytes := 0
		for _, d := range page.docs {
			bytes += len(d.body)
			if err := fn(d); err != nil {
				return err
			}
		}
		stride.Took(len(page.docs), bytes)
		if page.next == "" {
			return nil
		}
		q.After = page.next
	}
}

// Indexed is a document's id and its value in a text index.
type Indexed struct{ ID, Text string }

func (c *collection) texts(ctx context.Context, r Reader, index string, f Filter, limit int) ([]Indexed, error) {
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

func (c *collection) nextTenant(ctx context.Context, s *Store, after string) (string, error) {
	if err := transaction.Refuse("docstore: NextTenant"); err != nil {
		return "", err
	}
	return s.engine.NextTenant(ctx, c.def, after)
}

func (c *collection) eachTenant(ctx context.Context, s *Store, fn func(ctx context.Context) error) error {
	for tenant := ""; ; {
		next, err := c.nextTenant(ctx, s, tenant)
		if err != nil || next == "" {
			return err
		}
		if err := fn(request.System(ctx, next)); err != nil {
			return err
		}
		tenant = next
	}
}
