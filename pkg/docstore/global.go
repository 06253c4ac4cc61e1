package docstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/pkg/request"
)

// pointer leads from a value of a Global index to its document. It is stored in the platform's tenant, where its id is
// unique; that makes the value unique over all tenants.
type pointer struct {
	Meta
	Owner    string `json:"owner"`    // the document's tenant
	Document string `json:"document"` // the document's id
}

var pointers = Define(Schema[pointer]{Name: "global_keys", Noun: "key", NoIfMatch: true})

// Global makes an index unique over all tenants. It is for values that are known before the tenant is, such as client
// ids: see FindGlobal. A value that another tenant has is refused in the same way as one of the same tenant: see
// Unique. A collection must declare it before it has documents: documents stored earlier are not found.
func Global[T any](ix Index[T], member string, more ...string) Index[T] {
	ix = Unique(ix, member, more...)
	ix.global = true
	return ix
}

func (c *collection) findGlobal(ctx context.Context, r Reader, index, value string) (anyDoc, error) {
	i := slices.IndexFunc(c.indexes, func(ix anyIndex) bool { return ix.global && ix.def.Name == index })
	if i < 0 {
		return anyDoc{}, fmt.Errorf("docstore: %s has no global index %q", c.def.Name, index)
	}
	// The pointer and the document are two reads. If the value moves between them, both are repeated.
	const tries = 3
	for range tries {
		p, err := follow(ctx, r, globalKey(c.def.Name, index, value))
		if err != nil {
			return anyDoc{}, err
		}
		if p == nil {
			break
		}
		docs, err := c.findMany(request.System(ctx, p.Owner), r, []string{p.Document})
		if err != nil {
			return anyDoc{}, err
		}
		for _, d := range docs {
			v, err := d.decoded()
			if err != nil || slices.Contains(c.indexes[i].texts(v), value) {
				return d, err
			}
		}
	}
	return anyDoc{}, c.missing()
}

// follow returns the pointer with an id; nil if there is none.
func follow(ctx context.Context, r Reader, id string) (*pointer, error) {
	found, err := pointers.FindMany(request.System(ctx, request.Platform), r, []string{id})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].Value()
}

// globalKey is the id of the pointer of a value.
func globalKey(collection, index, value string) string { return collection + "." + index + "." + value }

// globalValue is a document's value in a Global index.
type globalValue struct{ index, value string }

// globals lists a document's values in all Global indexes.
func (c *collection) globals(v any) []globalValue {
	var values []globalValue
	for i := range c.indexes {
		if ix := &c.indexes[i]; ix.global {
			for _, text := range ix.texts(v) {
				values = append(values, globalValue{ix.def.Name, text})
			}
		}
	}
	return values
}

// texts are a document's values in the index, without absent ones.
func (ix *anyIndex) texts(v any) []string {
	if ix.def.Many {
		return distinct(ix.list(v))
	}
	return distinct([]string{ix.key(v).Text})
}

// globalsBefore is globals of the document as this transaction loaded it; of v itself if it was not loaded.
func (c *collection) globalsBefore(tx *Tx, v any) ([]globalValue, error) {
	if !c.def.Points {
		return nil, nil
	}
	old, ok := tx.loaded[loadedKey{c.def.Name, metaOf(v).ID}]
	if !ok {
		return c.globals(v), nil
	}
	was, _, err := c.former(tx, old)
	if err != nil {
		return nil, err
	}
	return c.globals(was), nil
}

// point updates the pointers of a stored document: those of former values are removed, those of new values added.
func (tx *Tx) point(ctx context.Context, collection string, e *Entry, before, now []globalValue) error {
	ctx = request.System(ctx, request.Platform)
	for _, g := range before {
		if slices.Contains(now, g) {
			continue
		}
		// Pointers are inserted and deleted, never replaced.
		err := tx.engine.Delete(ctx, pointers.untyped.def, request.Platform, globalKey(collection, g.index, g.value),
			Stamp{Version: 1})
		if err != nil {
			return fmt.Errorf("docstore: remove the pointer of a value of %s.%s: %w", collection, g.index, err)
		}
	}
	for _, g := range now {
		if slices.Contains(before, g) {
			continue
		}
		p := &pointer{Meta: Meta{ID: globalKey(collection, g.index, g.value)}, Owner: e.Tenant, Document: e.ID}
		_, err := pointers.untyped.insert(ctx, tx, p, 1, func(ctx context.Context, s *Store, _ *DuplicateError) error {
			return e.refusal(ctx, s, &DuplicateError{Collection: collection, Index: g.index, Value: g.value, Entry: e})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
