package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Filter selects users. The zero Filter selects all.
type Filter struct {
	Keyword                  string
	FullText                 bool // Keyword is words anywhere, else the start of a basic member
	ModifiedFrom, ModifiedTo clock.Time
	Status                   Status
	Locked                   *bool
	IDs                      []string
}

// List returns a page of users.
func (s *Users) List(ctx context.Context, q docstore.Query) (docstore.Page[User], error) {
	return users.Page(ctx, s.Store, q)
}

// Each calls fn for every user that a filter selects.
func (s *Users) Each(ctx context.Context, f docstore.Filter, fn func(Doc) error) error {
	return users.Each(ctx, s.Store, f, fn)
}

// Where makes the storage filter; apperr.InvalidParameters for a range that ends before it starts.
func (s *Users) Where(f Filter) (docstore.Filter, error) {
	var all []docstore.Filter
	if f.Keyword != "" {
		all = append(all, matching(f.Keyword, f.FullText))
	}
	if !f.ModifiedFrom.IsZero() && !f.ModifiedTo.IsZero() && f.ModifiedTo.Before(f.ModifiedFrom) {
		return docstore.Filter{}, apperr.Invalid("query.time_modified_from", "must not be after time_modified_to")
	}
	if !f.ModifiedFrom.IsZero() {
		all = append(all, docstore.From(byTimeModified, docstore.Moment(f.ModifiedFrom)))
	}
	if !f.ModifiedTo.IsZero() {
		all = append(all, docstore.Until(byTimeModified, docstore.Moment(f.ModifiedTo)))
	}
	if f.Status != "" {
		all = append(all, having(f.Status, s.Store.Now()))
	}
	if f.Locked != nil {
		after := docstore.Number(s.Store.Now().Millis() + 1)
		if *f.Locked {
			all = append(all, docstore.Moving(docstore.From(byLockEnd, after)))
		} else {
			all = append(all, docstore.Moving(docstore.Until(byLockEnd, after)))
		}
	}
	if len(f.IDs) > 0 {
		all = append(all, docstore.ID(f.IDs...))
	}
	return docstore.And(all...), nil
}

// having selects by the status at now: a scheduled resignation counts from its moment on, stored or not.
func having(status Status, now clock.Time) docstore.Filter {
	after := docstore.Number(now.Millis() + 1)
	never := docstore.Number(docstore.NoNumber.Num + 1)
	if status == Resigned {
		return docstore.And(docstore.From(byTimeResigned, never), docstore.Moving(docstore.Until(byTimeResigned, after)))
	}
	return docstore.And(docstore.Eq(byStatus, docstore.Text(string(status))),
		docstore.Or(docstore.Until(byTimeResigned, never), docstore.Moving(docstore.From(byTimeResigned, after))))
}

func matching(keyword string, fullText bool) docstore.Filter {
	if !fullText {
		key := textindex.Key(keyword)
		return docstore.Or(docstore.Prefix(byLogin, key), docstore.Prefix(byDisplayName, key),
			docstore.Prefix(byEmployeeNumber, key), docstore.ID(keyword))
	}
	terms := textindex.Query(keyword)
	if len(terms) == 0 {
		return docstore.Or() // words of nothing but punctuation are in no text
	}
	var all []docstore.Filter
	for _, term := range terms {
		if term.Prefix {
			all = append(all, docstore.Prefix(byWord, term.Text))
		} else {
			all = append(all, docstore.Eq(byWord, docstore.Text(term.Text)))
		}
	}
	return docstore.And(all...)
}
