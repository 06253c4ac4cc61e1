package rest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Paging is the part of a list operation's input that all lists share.
type Paging struct {
	PageNum   int    `query:"page_num" minimum:"1" default:"1" doc:"Page number, from 1"`
	PageSize  int    `query:"page_size" minimum:"1" maximum:"200" default:"20" doc:"Records a page"`
	PageToken string `query:"page_token" maxLength:"16384" doc:"A page's next_page_token, to continue after it at a cost that does not grow; instead of page_num"`
	PageSort  string `query:"page_sort" maxLength:"256" doc:"field[order], order asc or desc; several are joined by commas" example:"time_created[desc]"`
	Count     Flag   `query:"count" doc:"false leaves total out"`
}

// maxOffset bounds what page_num × page_size may skip: the cost grows with it, and page_token has no such bound.
const maxOffset = 10_000_000

// Query makes the storage query of a page. Fields that can be sorted by are the names of indexes; the first is the default's,
// ascending.
func (p Paging) Query(filter docstore.Filter, sortable ...string) (docstore.Query, error) {
	order, err := ParseSort(p.PageSort, sortable)
	if err != nil {
		return docstore.Query{}, err
	}
	offset := (p.PageNum - 1) * p.PageSize
	if p.PageNum > maxOffset || offset > maxOffset {
		return docstore.Query{}, apperr.Invalid("page_num", "leads too deep; continue with page_token instead")
	}
	return docstore.Query{
		Filter: filter, Sort: order, Limit: p.PageSize, Offset: offset, After: p.PageToken, Count: p.Count.Or(true),
	}, nil
}

var sortKey = regexp.MustCompile(`^([a-z][a-z0-9_]{0,63})(?:\[(asc|desc)\])?$`)

// ParseSort reads page_sort. apperr.InvalidParameters names the fields that can be sorted by.
func ParseSort(s string, sortable []string) ([]docstore.Order, error) {
	if s == "" {
		return []docstore.Order{{Index: sortable[0]}}, nil
	}
	var order []docstore.Order
	for key := range strings.SplitSeq(s, ",") {
		m := sortKey.FindStringSubmatch(strings.TrimSpace(key))
		if m == nil || !slices.Contains(sortable, m[1]) {
			return nil, apperr.Invalid("page_sort", "must be field[asc] or field[desc] with a field among %s", strings.Join(sortable, ", "))
		}
		if slices.ContainsFunc(order, func(o docstore.Order) bool { return o.Index == m[1] }) {
			return nil, apperr.Invalid("page_sort", "names %s twice", m[1])
		}
		order = append(order, docstore.Order{Index: m[1], Desc: m[2] == "desc"})
	}
	return order, nil
}

// Flag is a string flag in a query: true, false, 1 or 0.
type Flag string

// Schema refuses all else.
func (Flag) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"true", "false", "1", "0"}}
}

// Or is the flag's value, or what it means when it is not given.
func (f Flag) Or(absent bool) bool {
	if f == "" {
		return absent
	}
	return f == "true" || f == "1"
}
