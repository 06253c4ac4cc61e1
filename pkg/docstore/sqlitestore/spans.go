package sqlitestore

import (
	"math"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Spans divide the values of an index: numbers into ranges of equal width, texts by their first bytes. The rows that a
// range of values selects are found in the postings of the spans inside the range, and among the index entries at its
// two ends. Spans are in the order of the values, so they also show where in an order the rows of a set are.

// posting is the value that a document's postings are stored under: the indexed value or its span.
func (c *column) posting(v docstore.Value) docstore.Value {
	switch {
	case c.span == 0:
		return v
	case c.number:
		return docstore.Number(floor(v.Num, c.span))
	}
	return docstore.Text(v.Text[:min(int64(len(v.Text)), c.span)])
}

// postingsOf are the values that a document's postings in a column are stored under, sorted.
func (c *column) postingsOf(keys []docstore.Value, list func(slot int) []string) []docstore.Value {
	switch {
	case c.postings == "":
		return nil
	case !c.many:
		return []docstore.Value{c.posting(keys[c.slot])}
	}
	values := list(c.slot)
	all := make([]docstore.Value, len(values))
	for i, s := range values {
		all[i] = c.posting(docstore.Text(s))
	}
	return slices.Compact(all)
}

// floor divides and rounds down.
func floor(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// begin is the first value of a span.
func (c *column) begin(span docstore.Value) docstore.Value {
	if c.number {
		return docstore.Number(span.Num * c.span)
	}
	return span
}

// end is the first value after a span, nil if there is none.
func (c *column) end(span docstore.Value) *docstore.Value {
	switch {
	case c.number && span.Num >= floor(math.MaxInt64, c.span):
		return nil
	case c.number:
		v := docstore.Number((span.Num + 1) * c.span)
		return &v
	case int64(len(span.Text)) < c.span: // only this one text has the span
		v := docstore.Text(span.Text + "\x00")
		return &v
	}
	return successor(span.Text)
}

// inside splits a range into the spans that it contains, nil if it contains none, and what is left at its ends.
func (n *node) inside() (inside *node, ends []node) {
	c := n.column
	var first, last *docstore.Value // bounds of spans
	var from, to *docstore.Value    // bounds of values
	if n.low != nil {
		span := c.posting(*n.low)
		if from = n.low; c.compare(c.begin(span), *n.low) < 0 || c.number && span.Num < math.MinInt64/c.span {
			if from = c.end(span); from == nil {
				return nil, []node{*n}
			}
			span = c.posting(*from)
		}
		first = &span
	}
	if n.high != nil {
		span := c.posting(*n.high)
		if c.number && span.Num < math.MinInt64/c.span {
			return nil, []node{*n}
		}
		begin := c.begin(span)
		last, to = &span, &begin
	}
	if from != nil && to != nil && c.compare(*from, *to) >= 0 {
		return nil, []node{*n}
	}
	for _, end := range [][2]*docstore.Value{{n.low, from}, {to, n.high}} {
		if end[0] == nil || end[1] == nil {
			continue
		}
		if end := between(c, end[0], end[1]); end.op == isBetween {
			ends = append(ends, end)
		}
	}
	return &node{op: isBetween, column: c, low: first, high: last}, ends
}
