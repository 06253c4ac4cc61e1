package docstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

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
		return nil, Mismatch(rows[0].Version)
	}
	return c.load(tx, &rows[0])
}

// ReadAhead reads documents, and their sealed values, that the transaction will Load or Insert one by one, so that this
// costs no round trip for each. The transaction does not depend on them yet, and they need not exist.
func (c *Collection[T]) ReadAhead(ctx context.Context, tx *Tx, ids ...string) error {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return err
	}
	if err := tx.engine.ReadAhead(ctx, c.def, tenant, ids); err != nil {
		return err
	}
	return c.readSealedAhead(ctx, tx, tenant, ids)
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
	ids := make([]string, len(all))
	for i, v := range all {
		ids[i] = metaOf(v).ID
	}
	if err := c.readSealedAhead(ctx, tx, request.Tenant(ctx), ids); err != nil {
		return nil, err
	}
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
	if err := tx.point(ctx, c.def.Name, e, nil, c.globals(v)); err != nil {
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
	if err := tx.point(ctx, c.def.Name, &Entry{}, globals, nil); err != nil {
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
		ids := make([]string, len(page.Docs))
		for i := range page.Docs {
			ids[i] = page.Docs[i].ID
		}
		if err := c.readSealedAhead(ctx, tx, request.Tenant(ctx), ids); err != nil {
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
				if err := tx.point(ctx, c.def.Name, &Entry{}, c.globals(v), nil); err != nil {
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
		return Mismatch(version.Current).Because(err)
	}
	if errors.Is(err, ErrNotFound) {
		return c.missing()
	}
	return err
}

func (c *Collection[T]) missing() error { return apperr.Missing(c.schema.Noun) }
