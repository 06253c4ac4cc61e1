package docstore

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Paging says which page of a list is wanted, and in which order. A list of a service's domain takes it together with
// its own filter. Its tags describe the query of the operation, in which all lists have it.
type Paging struct {
	Num   int    `query:"page_num" minimum:"1" default:"1" doc:"Page number, from 1"`
	Size  int    `query:"page_size" minimum:"1" maximum:"200" default:"20" doc:"Records a page"`
	After string `query:"page_token" maxLength:"16384" doc:"A page's next_page_token, to continue after it at a cost that does not grow; instead of page_num"`
	Sort  string `query:"page_sort" maxLength:"256" doc:"field[order], order asc or desc; several are joined by commas" example:"time_created[desc]"`
	Count Flag   `query:"count" doc:"false leaves total out"`
}

// Asked returns the page that a filter with Paging asks for.
func (p Paging) Asked() Paging { return p }

// Flag is a flag of a query, as text: true, false, 1 or 0; "" if it is not given.
type Flag string

// Or returns the flag's value, or absent if the flag is not given.
func (f Flag) Or(absent bool) bool {
	if f == "" {
		return absent
	}
	return f == "true" || f == "1"
}

// maxOffset bounds how many documents Num and Size may skip. The cost of skipping grows with the number; After has
// neither the cost nor the bound.
const maxOffset = 10_000_000

func (c *collection) list(ctx context.Context, r Reader, f Filter, p Paging) (anyPage, error) {
	q, err := p.Query(f, c.orders...)
	if err != nil {
		return anyPage{}, err
	}
	return c.page(ctx, r, q)
}

// Query makes the query of a page. sortable are the names of the indexes that the list can be sorted by; the first is
// the default, ascending. The error is apperr.InvalidParameters at page_num or page_sort.
func (p Paging) Query(f Filter, sortable ...string) (Query, error) {
	order, err := parseSort(p.Sort, sortable)
	if err != nil {
		return Query{}, err
	}
	offset := (p.Num - 1) * p.Size
	if p.Num > maxOffset || offset > maxOffset {
		return Query{}, apperr.Invalid("page_num", "is too far into the list; continue with page_token instead")
	}
	return Query{
		Filter: f, Sort: order, Limit: p.Size, Offset: offset, After: p.After, Count: p.Count.Or(true),
	}, nil
}

var sortKey = regexp.MustCompile(`^([a-z][a-z0-9_]{0,63})(?:\[(asc|desc)\])?$`)

// parseSort parses Paging.Sort. The error is apperr.InvalidParameters and names the fields that the list can be sorted
// by.
func parseSort(s string, sortable []string) ([]Order, error) {
	if s == "" {
		return []Order{{Index: sortable[0]}}, nil
	}
	var order []Order
	for key := range strings.SplitSeq(s, ",") {
		m := sortKey.FindStringSubmatch(strings.TrimSpace(key))
		if m == nil || !slices.Contains(sortable, m[1]) {
			return nil, apperr.Invalid("page_sort", "must be field[asc] or field[desc] with a field among %s",
				strings.Join(sortable, ", "))
		}
		if slices.ContainsFunc(order, func(o Order) bool { return o.Index == m[1] }) {
			return nil, apperr.Invalid("page_sort", "names %s twice", m[1])
		}
		order = append(order, Order{Index: m[1], Desc: m[2] == "desc"})
	}
	return order, nil
}
