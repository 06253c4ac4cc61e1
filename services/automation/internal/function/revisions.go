package function

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// RevisionPage is a page of a function's revisions.
type RevisionPage struct {
	Items []Revision
	Total int
	Next  string // the token of the next page; "" for the last
}

const byRevision = "revision"

// Revisions returns a page of the revisions whose code is kept, latest first unless the page says otherwise. The error
// is apperr.NotFound or InvalidParameters.
func (s *Functions) Revisions(ctx context.Context, id string, p docstore.Paging) (RevisionPage, error) {
	if p.Sort == "" {
		p.Sort = byRevision + "[desc]"
	}
	q, err := p.Query(docstore.Filter{}, byRevision, byTimeCreated) // both are the same order
	if err != nil {
		return RevisionPage{}, err
	}
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return RevisionPage{}, err
	}
	f, err := doc.Value()
	if err != nil {
		return RevisionPage{}, err
	}
	inOrder := func(a, b int64) int { return cmp.Compare(a, b) }
	if q.Sort[0].Desc {
		inOrder = func(a, b int64) int { return cmp.Compare(b, a) }
	}
	all := slices.SortedFunc(slices.Values(f.Revisions), func(a, b Revision) int {
		return inOrder(a.Revision, b.Revision)
	})
	left, list := all[min(q.Offset, len(all)):], []string{"revisions", id, p.Sort}
	if q.After != "" {
		text, err := docstore.ReadPageToken(ctx, q.After, list...)
		if err != nil {
			return RevisionPage{}, err
		}
		last, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return RevisionPage{}, apperr.Invalid("page_token", "is not a page token of this list")
		}
		left = slices.DeleteFunc(slices.Clone(all), func(r Revision) bool { return inOrder(r.Revision, last) <= 0 })
	}
	page := RevisionPage{Items: left[:min(q.Limit, len(left))], Total: len(all)}
	if len(page.Items) < len(left) {
		page.Next = docstore.PageToken(ctx, strconv.FormatInt(page.Items[len(page.Items)-1].Revision, 10), list...)
	}
	return page, nil
}
