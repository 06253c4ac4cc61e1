package kv

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Page is a page of objects, or of former states, in their JSON form.
type Page struct {
	Items [][]byte
	Total int64  // −1 means not counted
	More  bool   // there are more than Total
	Next  string // the token of the next page; "" for the last
}

// maxAnswer limits the bytes of a page. A page that would have more gets fewer items, but at least one, and a token.
const maxAnswer = 4 << 20

// pageOf reads a page and makes its items by show. If they are too large together, it reads a shorter page.
func pageOf[T any](q docstore.Query, read func(docstore.Query) (docstore.Page[T], error),
	show func(*docstore.Doc[T]) ([]byte, error)) (Page, error) {
	for {
		page, err := read(q)
		if err != nil {
			return Page{}, err
		}
		p := Page{Items: make([][]byte, 0, len(page.Docs)), Total: page.Total, More: page.More, Next: page.Next}
		size := 0
		for i := range page.Docs {
			item, err := show(&page.Docs[i])
			if err != nil {
				return Page{}, err
			}
			if size += len(item); size > maxAnswer && i > 0 {
				break
			}
			p.Items = append(p.Items, item)
		}
		if len(p.Items) == len(page.Docs) {
			return p, nil
		}
		q.Limit = len(p.Items)
	}
}

// ObjectFilter selects objects of a bucket.
type ObjectFilter struct {
	Bucket        string        `path:"bucket" maxLength:"64" doc:"1…64 letters, digits or . _ -" example:"settings"`
	Prefix        string        `query:"prefix" maxLength:"1024" doc:"Only objects whose keys begin with it"`
	IncludeValues docstore.Flag `query:"include_values" doc:"true adds the values"`
	docstore.Paging
}

// List returns a page of a bucket's objects in the order of keys. The error is apperr.NotFound if there is no such
// bucket, or InvalidParameters.
func (s *KV) List(ctx context.Context, f ObjectFilter) (Page, error) {
	if _, err := s.Bucket(ctx, f.Bucket); err != nil {
		return Page{}, err
	}
	q, err := f.Query(alive(within(f.Bucket, f.Prefix), s.store.Now()), byKey)
	if err != nil {
		return Page{}, err
	}
	read := func(q docstore.Query) (docstore.Page[Object], error) { return objects.Page(ctx, s.store, q) }
	return pageOf(q, read, func(doc *docstore.Doc[Object]) ([]byte, error) {
		if !f.IncludeValues.Or(false) {
			return bare(doc)
		}
		o, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if o.Size <= inline {
			return doc.JSON()
		}
		record, err := s.Get(ctx, f.Bucket, o.Key)
		if apperr.IsNotFound(err) { // it was deleted meanwhile
			return bare(doc)
		}
		return record.JSON, err
	})
}
