package sqlitestore

import (
	"context"
	"math"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// If the order has spans, reading them costs less than sorting more than maxSorted rows, and less than a walk over more
// than maxWalked rows.
const (
	maxSorted = 250
	maxWalked = 5000
)

// bySpans finds a page of a set by the spans of the order: it sorts or walks only the spans that the page lies in.
func (q *queries) bySpans(ctx context.Context, a *plannedQuery, selected *set) ([]int64, error) {
	near, err := q.nearSpans(ctx, a, selected)
	if err != nil || len(near.rids) == 0 {
		return nil, err
	}
	within := *a
	within.Offset -= near.before
	if lookup*len(near.rids) <= near.entries {
		return q.sorted(ctx, &within, near.rids)
	}
	key, p := a.walk.key, *a.walk
	first, last := near.first, near.last
	if a.order.desc[0] {
		first, last = last, first
	}
	begin := key.begin(first)
	p.low, p.high = higher(key, p.low, &begin), lower(key, p.high, key.end(last))
	return q.walk(ctx, &p, &within, selected, math.MaxInt64)
}

// spansOfPage are the spans that a page lies in.
type spansOfPage struct {
	first, last docstore.Value // in the page's order
	rids        []int64        // the rows of the set in these spans
	entries     int            // the number of all rows in these spans
	before      int            // the number of rows of the set in earlier spans
}

// nearSpans finds the spans that a page of a set lies in.
func (q *queries) nearSpans(ctx context.Context, a *plannedQuery, selected *set) (*spansOfPage, error) {
	key, desc := a.walk.key, a.order.desc[0]
	low, high := a.walk.low, a.walk.high
	var began *docstore.Value // the span that the position is in; some of its rows are before the position
	if a.After != nil {
		at := key.posting(a.After.Values[0])
		if began = &at; desc {
			high = lower(key, high, &a.After.Values[0])
		} else {
			low = higher(key, low, &a.After.Values[0])
		}
	}
	s := &statement{}
	s.add("SELECT value, first, more FROM %s WHERE tenant = %s", key.postings, s.arg(a.tenant))
	if low != nil {
		s.add(" AND value >= %s", s.arg(key.arg(key.posting(*low))))
	}
	if high != nil {
		s.add(" AND value <= %s", s.arg(key.arg(key.posting(*high))))
	}
	s.add(" ORDER BY value%s", map[bool]string{true: " DESC"}[desc])
	near := &spansOfPage{}
	seen := 0 // rows of the set so far
	err := q.conn.Query(ctx, s.String(), s.args, func(c Columns) error {
		if span := key.value(c, 0); near.entries == 0 || span != near.last {
			if seen >= a.Offset+a.Limit {
				return errEnough
			}
			if near.entries == 0 || a.After == nil && seen <= a.Offset {
				near.first, near.before = span, seen
				near.entries, near.rids = 0, near.rids[:0]
			}
			near.last = span
		}
		near.entries += selected.common(c.Int(1), c.Bytes(2), func(rid int64) {
			near.rids = append(near.rids, rid)
			if began == nil || near.last != *began {
				seen++
			}
		})
		return nil
	})
	return near, ignore(err, errEnough)
}
