package httpapi

import (
	"context"
	"sort"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
)

// answerList is a list that the engine has computed as a whole. Its entries are in the order of their keys.
type answerList[T any] struct {
	entries []T
	key     func(T) string
	append  func(b []byte, entry T) []byte // appends the JSON of an entry
	query   []string                       // what the list was asked with
}

// pageOf returns the requested page of a list. apperr.InvalidParameters at page_num, page_sort or page_token.
func pageOf[W, T any](ctx context.Context, p docstore.Paging, l answerList[T]) (rest.List[W], error) {
	list := rest.List[W]{Total: -1, Num: p.Num, Size: p.Size}
	if p.Sort != "" {
		return list, apperr.Invalid("page_sort", "must not be given: this list has only one order")
	}
	asked, err := p.Query(docstore.Filter{}, "") // bounds the number, whose product would overflow
	if err != nil {
		return list, err
	}
	from := min(asked.Offset, len(l.entries))
	if p.After != "" {
		after, err := docstore.ReadPageToken(ctx, p.After, l.query...)
		if err != nil {
			return list, err
		}
		from = sort.Search(len(l.entries), func(i int) bool { return l.key(l.entries[i]) > after })
	}
	to := min(from+p.Size, len(l.entries))
	list.Write = func(b []byte) []byte {
		for i, entry := range l.entries[from:to] {
			if i > 0 {
				b = append(b, ',')
			}
			b = l.append(b, entry)
		}
		return b
	}
	if p.Count.Or(true) {
		list.Total = int64(len(l.entries))
	}
	if to < len(l.entries) {
		list.Next = docstore.PageToken(ctx, l.key(l.entries[to-1]), l.query...)
	}
	return list, nil
}
