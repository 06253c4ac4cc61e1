package sqlitestore

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// results caches the results of searches until the data change. Each transaction that changes documents of a tenant's
// collection increments a number in the file (counters.changes). The number that a snapshot shows is part of the cache
// key, so no result is ever out of date; the cache drops old ones when it is full.
type results struct {
	cache *cache.Cache[resultKey, result]
}

// resultKey is a search, or a count, of a tenant's documents in one state of the file.
type resultKey struct {
	scope
	changes int64
	text    string
}

// result is the rows of a page, and the total.
type result struct {
	rids  []int64
	total docstore.Total
}

const maxResults = 2 << 20 // bytes

func newResults() *results {
	return &results{cache.NewWeighed(maxResults, func(key resultKey, r result) int {
		const rest = 200 // estimated size of an entry without rows and text
		return rest + len(key.text) + 8*len(r.rids)
	})}
}

// result returns the cached result for this state of the file, or that of find. In a transaction it always calls find,
// because the transaction's own changes have no number yet.
func (q *queries) result(ctx context.Context, t *table, tenant, text string,
	find func() (result, error)) (result, error) {
	if q.results == nil {
		return find()
	}
	changes, err := q.changes(ctx, t, tenant)
	if err != nil {
		return result{}, err
	}
	key := resultKey{scope{t.def.Name, tenant}, changes, text}
	if known, ok := q.results.cache.Get(key); ok {
		return known, nil
	}
	found, err := find()
	if err == nil {
		q.results.cache.Set(key, found)
	}
	return found, err
}

// changes is the number of the last change to a tenant's collection.
func (q *queries) changes(ctx context.Context, t *table, tenant string) (int64, error) {
	return number(ctx, q.conn, "SELECT changes FROM counters WHERE collection = ?1 AND tenant = ?2", t.def.Name, tenant)
}

// text is the cache key of a page. Different pages have different keys.
func (a *plannedQuery) text() string {
	b := a.order.text(a.filter.text([]byte("page")))
	b = binary.AppendUvarint(b, uint64(a.Offset))
	b = binary.AppendUvarint(b, uint64(a.Limit))
	if a.After != nil {
		for i, key := range a.order.keys {
			b = key.text(b, a.After.Values[i])
		}
		b = append(b, a.After.ID...)
	}
	return string(b)
}

// text appends the cache key of an order.
func (o *ordering) text(b []byte) []byte {
	for i, down := range o.desc {
		if i < len(o.keys) {
			b = append(b, o.keys[i].index...)
		}
		b = append(b, map[bool]byte{true: '>', false: '<'}[down])
	}
	return b
}

// text appends the cache key of a filter. Filters with the same key select the same documents.
func (n *node) text(b []byte) []byte {
	b = append(b, "*-=<&|~"[n.op])
	switch n.op {
	case isIn, isContains:
		b = append(append(b, n.column.index...), ' ')
		b = binary.AppendUvarint(b, uint64(len(n.values)))
		for _, v := range n.values {
			b = n.column.text(b, v)
		}
	case isBetween:
		b = append(append(b, n.column.index...), ' ')
		for _, bound := range []*docstore.Value{n.low, n.high} {
			if bound == nil {
				b = append(b, '-')
				continue
			}
			b = n.column.text(append(b, '+'), *bound)
		}
	case isAnd, isOr:
		b = binary.AppendUvarint(b, uint64(len(n.sub)))
		parts := make([]string, len(n.sub)) // the order of the parts does not matter
		for i := range n.sub {
			parts[i] = string(n.sub[i].text(nil))
		}
		slices.Sort(parts)
		for _, part := range parts {
			b = append(b, part...)
		}
	}
	return b
}

func (c *column) text(b []byte, v docstore.Value) []byte {
	if c.number {
		return binary.BigEndian.AppendUint64(b, uint64(v.Num))
	}
	return append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
}
