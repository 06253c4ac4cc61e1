package docstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

func (c *collection) load(ctx context.Context, tx *Tx, id string) (any, error) {
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
	if want := expectedVersion(ctx, id); !c.part && want != nil && !want(rows[0].Version) {
		return nil, Mismatch(rows[0].Version)
	}
	return c.loaded(tx, &rows[0])
}

func (c *collection) readAhead(ctx context.Context, tx *Tx, ids ...string) error {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return err
	}
	if err := tx.engine.ReadAhead(ctx, c.def, tenant, ids); err != nil {
		return err
	}
	return c.readSealedAhead(ctx, tx, tenant, ids)
}

func (c *collection) loadMany(ctx context.Context, tx *Tx, ids []string) ([]any, error) {
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

func (c *collection) loadWhere(ctx context.Context, tx *Tx, f Filter, by string, limit int) ([]any, error) {
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

func (c *collection) loadAll(tx *Tx, rows []Row) ([]any, error) {
	all := make([]any, len(rows))
	for i := range rows {
		var err error
		if all[i], err = c.loaded(tx, &rows[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *collection) loaded(tx *Tx, row *Row) (any, error) {
	v := c.def.Blank()
	if err := tx.st.engine.Decode(row.Data, v); err != nil {
		return nil, fmt.Errorf("docstore: decode %s %s: %w", c.def.Name, row.ID, err)
	}
	metaOf(v).counts = row.Counts
	tx.remember(c.def, row.ID, loaded{data: row.Data})
	return v, nil
}

func (c *collection) assume(ctx context.Context, tx *Tx, id string, version int64) error {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return err
	}
	return tx.engine.ExpectVersion(ctx, c.def, tenant, id, version)
}

func (c *collection) insertMany(ctx context.Context, tx *Tx, at func(i int) string, all []any) ([]anyDoc, error) {
	docs := make([]anyDoc, len(all))
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

func (c *collection) insertOne(ctx context.Context, tx *Tx, v any, version int64) (anyDoc, error) {
	return c.insert(ctx, tx, v, version, c.refusal(inPlace, v))
}

func (c *collection) insert(ctx context.Context, tx *Tx, v any, version int64, taken refusal) (anyDoc, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return anyDoc{}, err
	}
	m := metaOf(v)
	m.TenantID, m.Version, m.counts = tenant, version, 0
	if m.TimeCreated.IsZero() {
		m.TimeCreated = tx.Now
	}
	m.TimeModified = m.TimeCreated
	if _, err := c.seal(ctx, tx, v, func() (any, error) { return c.def.Blank(), nil }); err != nil {
		return anyDoc{}, err
	}
	e, err := c.entry(v)
	if err != nil {
		return anyDoc{}, err
	}
	e.refusal = taken
	if err := tx.engine.Insert(ctx, c.def, e); err != nil {
		return anyDoc{}, withEntry(err, e)
	}
	tx.noteDue(c.def, e)
	if err := tx.point(ctx, c.def.Name, e, nil, c.globals(v)); err != nil {
		return anyDoc{}, err
	}
	return c.written(v, e, nil), nil
}

func (c *collection) remove(ctx context.Context, tx *Tx, v any) (anyDoc, error) {
	m := metaOf(v)
	globals, err := c.globalsBefore(tx, v)
	if err != nil {
		return anyDoc{}, err
	}
	if err := tx.engine.Delete(ctx, c.def, m.TenantID, m.ID, m.stamp()); err != nil {
		return anyDoc{}, c.translate(err)
	}
	if err := tx.point(ctx, c.def.Name, &Entry{}, globals, nil); err != nil {
		return anyDoc{}, err
	}
	m.counts++
	return c.written(v, &Entry{ID: m.ID, Stamp: m.stamp()}, nil), c.unseal(ctx, tx, m.ID)
}

func (c *collection) removeWhere(ctx context.Context, tx *Tx, f Filter, each func(anyDoc) error) error {
	for {
		page, err := c.page(ctx, tx, Query{Filter: f, Limit: 500})
		if err != nil {
			return err
		}
		ids := make([]string, len(page.docs))
		for i := range page.docs {
			ids[i] = page.docs[i].ID
		}
		if err := c.readSealedAhead(ctx, tx, request.Tenant(ctx), ids); err != nil {
			return err
		}
		for _, d := range page.docs {
			if err := tx.engine.Delete(ctx, c.def, request.Tenant(ctx), d.ID, d.Stamp); err != nil {
				return c.translate(err)
			}
			if c.def.Points {
				v, err := d.decoded()
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
			if err := each(d); err != nil {
				return err
			}
		}
		if page.next == "" {
			return nil
		}
	}
}

// translate turns an engine's conflict errors into errors for clients.
func (c *collection) translate(err error) error {
	if version, ok := errors.AsType[*VersionError](err); ok {
		return Mismatch(version.Current).Because(err)
	}
	if errors.Is(err, ErrNotFound) {
		return c.missing()
	}
	return err
}

func (c *collection) missing() error { return apperr.Missing(c.noun) }
