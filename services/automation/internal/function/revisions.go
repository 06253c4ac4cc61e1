package function

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"

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
	left := all[min(q.Offset, len(all)):]
	if q.After != "" {
		last, err := readRevisionToken(q.After, id, p.Sort)
		if err != nil {
			return RevisionPage{}, err
		}
		left = slices.DeleteFunc(slices.Clone(all), func(r Revision) bool { return inOrder(r.Revision, last) <= 0 })
	}
	page := RevisionPage{Items: left[:min(q.Limit, len(left))], Total: len(all)}
	if len(page.Items) < len(left) {
		page.Next = writeRevisionToken(id, p.Sort, page.Items[len(page.Items)-1].Revision)
	}
	return page, nil
}

// A token names the function, the last revision of its page, and the order.
const revisionToken = "%s %d %s"

func writeRevisionToken(id, sort string, last int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, revisionToken, id, last, sort))
}

func readRevisionToken(token, id, sort string) (last int64, err error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var of, order string
	if err == nil {
		_, err = fmt.Sscanf(string(text), revisionToken, &of, &last, &order)
	}
	if err != nil {
		return 0, apperr.Invalid("page_token", "is not a page token of this list")
	}
	if of != id || order != sort {
		return 0, apperr.Invalid("page_token", "was made for another list, filter or sort")
	}
	return last, nil
}
