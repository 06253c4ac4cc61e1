package session

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
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

// all prints page after page.
func (s *Session) all(ctx context.Context, c Call, printer *output.Printer) error {
	if c.Query.Get("page_num") != "" {
		return failure.Usagef("--all begins at the first page: leave --page-num out")
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
			list, _ := output.List(page, "")
			items, err := call.joined(ctx, list)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			next := page.Text("next_page_token")
			if next == "" {
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
