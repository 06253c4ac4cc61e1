package docstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Query selects a page of documents.
type Query struct {
	Filter  Filter
	Sort    []Order // the id is always the last key; empty means by id
	Limit   int     // at least 1
	Offset  int     // the number of documents to skip; the cost grows with it
	After   string  // instead of Offset: the Next of an earlier page, without that cost
	AfterID string  // in a query without Sort: instead of After, the id to continue after
	Count   bool    // return the Total, too
}

// MaxCounted is the number of documents up to which a Page's Total is always exact.
const MaxCounted = 10_000

// Page is the result of a Query.
type Page[T any] struct {
	Docs  []Doc[T]
	Total int64  // −1 unless the Query has Count
	More  bool   // there are more than Total; counting stopped
	Next  string // for Query.After; "" on the last page

	again func(ctx context.Context, ids []string) ([]Doc[T], error)
}

// anyPage is a Page without the type of its documents.
type anyPage struct {
	docs  []anyDoc
	total int64
	more  bool
	next  string
}

// Again returns a function that reads documents of the page again, in the order of their ids; without those that no
// longer exist. It is nil for a page that was read in a transaction.
func (p Page[T]) Again() func(ctx context.Context, ids []string) ([]Doc[T], error) { return p.again }

func (c *collection) page(ctx context.Context, r Reader, q Query) (anyPage, error) {
	page := anyPage{total: -1}
	tenant, err := tenantOf(ctx)
	if err != nil {
		return page, err
	}
	if err := c.def.check(q.Filter, q.Sort); err != nil {
		return page, err
	}
	find := Find{Filter: q.Filter, Sort: q.Sort, Offset: q.Offset, Limit: q.Limit + 1}
	if q.After != "" {
		if find.After, err = readToken(c.def.Name, tenant, q); err != nil {
			return page, err
		}
		find.Offset = 0
	}
	if q.AfterID != "" && len(q.Sort) == 0 {
		find.After, find.Offset = &Position{ID: q.AfterID}, 0
	}
	from, err := r.queries()
	if err != nil {
		return page, err
	}
	var rows []Row
	if q.Count {
		var total Total
		rows, total, err = from.Page(ctx, c.def, tenant, find, MaxCounted)
		page.total, page.more = total.N, total.More
	} else {
		rows, err = from.Find(ctx, c.def, tenant, find)
	}
	if err != nil {
		return page, err
	}
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		last := rows[q.Limit-1]
		page.next = writeToken(c.def.Name, tenant, q, Position{last.Sort, last.ID})
	}
	page.docs, err = c.docs(r, rows)
	return page, err
}

func (c *collection) inOrder(ctx context.Context, store *Store, ids []string) ([]anyDoc, error) {
	docs, err := c.findMany(ctx, store, ids)
	place := make(map[string]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	slices.SortFunc(docs, func(a, b anyDoc) int { return place[a.ID] - place[b.ID] })
	return docs, err
}

// token is the content of a page token. It is not secret and needs no signature: a forged one only points to another
// place in a list of the caller's own tenant.
type token struct {
	Query  uint64  `json:"q"` // fingerprint of the list: collection, tenant, filter and sort
	Values []Value `json:"v,omitempty"`
	ID     string  `json:"i"`
}

func writeToken(collection, tenant string, q Query, p Position) string {
	b, _ := json.Marshal(token{q.fingerprint(collection, tenant), p.Values, p.ID}) // plain values always marshal
	return base64.RawURLEncoding.EncodeToString(b)
}

func readToken(collection, tenant string, q Query) (*Position, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(q.After)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.ID == "" || len(t.Values) != len(q.Sort) {
		return nil, apperr.Invalid("page_token", "is not a page token of this list")
	}
	if t.Query != q.fingerprint(collection, tenant) {
		return nil, apperr.Invalid("page_token", "was made for another list, filter or sort")
	}
	return &Position{t.Values, t.ID}, nil
}

func (q Query) fingerprint(collection, tenant string) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(struct {
		C, T string
		F    Filter
		S    []Order
	}{collection, tenant, q.Filter.steady(), q.Sort})
	return h.Sum64()
}

func tenantOf(ctx context.Context) (string, error) {
	if t := request.Tenant(ctx); t != "" {
		return t, nil
	}
	return "", fmt.Errorf("docstore: no tenant in the context")
}
