package session

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
)

const (
	terminalRows = 50  // of a list on a terminal
	pageRows     = 200 // of a page elsewhere
)

// page is what a list's answer says beside its items.
type page struct {
	Total *int64 `json:"total"`
	// Relation is gte if there are more than Total.
	Relation string `json:"total_relation"`
	Next     string `json:"next_page_token"`
}

// list prints one page of a list, or all pages with --all, and says if there is more.
func (s *Session) list(ctx context.Context, c *Call, printer *output.Printer) error {
	call := *c
	call.Query = maps.Clone(c.Query)
	if call.Query == nil {
		call.Query = url.Values{}
	}
	if call.Query.Get("page_size") == "" {
		size := pageRows
		if s.OutIsTerminal && !s.All {
			size = terminalRows
		}
		call.Query.Set("page_size", strconv.Itoa(size))
	}
	if s.All && s.JQ != "" {
		return s.wholeList(ctx, call, printer)
	}
	if s.All {
		if call.Query.Get("count") == "" {
			call.Query.Set("count", "false")
		}
		return s.all(ctx, call, printer)
	}
	body, err := s.Body(ctx, &call)
	if err != nil {
		return err
	}
	var first page
	if err := json.Unmarshal(body, &first); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if err := s.print(ctx, c, printer, body); err != nil {
		return err
	}
	s.more(first, body)
	return nil
}

// wholeList prints what the jq program makes of the first page's answer with the items of all pages: the same program
// does for one page and for all.
func (s *Session) wholeList(ctx context.Context, c Call, printer *output.Printer) error {
	if err := noPageNumber(c); err != nil {
		return err
	}
	var whole output.Object
	items := []any{}
	for page, err := range s.pages(ctx, &c) {
		if err != nil {
			return err
		}
		list, _ := output.List(page, "")
		items = append(items, list...)
		if whole == nil {
			whole = page
		}
	}
	for _, member := range []string{"next_page_token", "page_num", "page_size"} { // of a page
		whole = slices.DeleteFunc(whole, func(m output.Member) bool { return m.Name == member })
	}
	text, err := json.Marshal(whole.With("items", items))
	if err != nil {
		return err
	}
	return printer.Body(text, c.View)
}

func noPageNumber(c Call) error {
	if c.Query.Get("page_num") != "" {
		return failure.Usagef("--all begins at the first page: leave --page-num out")
	}
	return nil
}

// all prints page after page.
func (s *Session) all(ctx context.Context, c Call, printer *output.Printer) error {
	if err := noPageNumber(c); err != nil {
		return err
	}
	if !printer.ForPeople() {
		c.Join = nil
	}
	items := printer.Items(c.View)
	for item, err := range s.Each(ctx, &c) {
		if err != nil {
			return err
		}
		if err := items.Add(item); err != nil {
			return err
		}
	}
	return items.Close()
}

// Each walks all pages of a list, with what Join adds.
func (s *Session) Each(ctx context.Context, c *Call) iter.Seq2[output.Object, error] {
	return func(yield func(output.Object, error) bool) {
		for page, err := range s.pages(ctx, c) {
			list, _ := output.List(page, "")
			items := []output.Object(nil)
			if err == nil {
				items, err = c.joined(ctx, list)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// pages walks the answers of all pages of a list. It ends at the first error.
func (s *Session) pages(ctx context.Context, c *Call) iter.Seq2[output.Object, error] {
	return func(yield func(output.Object, error) bool) {
		call := *c
		call.Query = maps.Clone(c.Query)
		for {
			body, err := s.Body(ctx, &call)
			if err != nil {
				yield(nil, err)
				return
			}
			value, err := output.Parse(body)
			if err != nil {
				yield(nil, fmt.Errorf("the answer is not JSON: %w", err))
				return
			}
			page, _ := value.(output.Object)
			next := page.Text("next_page_token")
			if !yield(page, nil) || next == "" {
				return
			}
			call.Query.Set("page_token", next)
		}
	}
}

// more says how much of a list was not shown.
func (s *Session) more(p page, body []byte) {
	if p.Next == "" {
		return
	}
	var shown struct{ Items []json.RawMessage }
	_ = json.Unmarshal(body, &shown) // it was JSON before
	of := ""
	if p.Total != nil {
		of = fmt.Sprintf(" of %d", *p.Total)
		if p.Relation == "gte" {
			of += " or more"
		}
	}
	s.Notef("%d%s shown; --all shows the rest", len(shown.Items), of)
}
