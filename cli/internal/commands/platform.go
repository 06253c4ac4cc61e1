package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// platform is the platform of a session, for package plan.
type platform struct{ s *session.Session }

func (p *platform) ask(ctx context.Context, r idp.Request, into any) error {
	client, err := p.s.Client()
	if err != nil {
		return err
	}
	scope := ""
	if o := operations.CompiledIn().Match(r.Method, r.Path); o != nil {
		scope = o.Scope
	}
	response, err := client.Do(ctx, r)
	if err != nil {
		return failure.WithScope(err, scope)
	}
	defer response.Body.Close()
	return decode(response.Body, into)
}

func decode(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("the answer is not as documented: %w", err)
	}
	return nil
}

// Get reads an answer.
func (p *platform) Get(ctx context.Context, path string, query url.Values, into any) error {
	return p.ask(ctx, idp.Request{Method: http.MethodGet, Path: path, Query: query}, into)
}

// Post sends a question.
func (p *platform) Post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return p.ask(ctx, idp.Request{
		Method: http.MethodPost, Path: path, Body: bytes.NewReader(text), ContentType: operations.JSON, Momentary: true,
	}, into)
}

// Each walks all pages of a list.
func (p *platform) Each(ctx context.Context, path string, query url.Values) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		query := maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("page_size", "200")
		query.Set("count", "false")
		for {
			var page struct {
				Items []map[string]any `json:"items"`
				Next  string           `json:"next_page_token"`
			}
			if err := p.Get(ctx, path, query, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("page_token", page.Next)
		}
	}
}

// callOf makes the call of a change.
func callOf(w plan.Write, try bool) (*session.Call, error) {
	call := &session.Call{
		Operation: session.Operation(w.Operation), Path: w.Path, Query: w.Query, Header: http.Header{},
		Asked: true, Try: try, Key: w.Key,
	}
	if w.IfMatch != "" {
		call.Header.Set("If-Match", w.IfMatch)
	}
	if w.NoneMatch {
		call.Header.Set("If-None-Match", "*")
	}
	if w.Body != nil {
		text, err := json.Marshal(w.Body)
		if err != nil {
			return nil, err
		}
		call.Body = text
	}
	return call, nil
}

// Write sends a change, or with try only asks what it would do.
func (p *platform) Write(ctx context.Context, w plan.Write, try bool) (map[string]any, error) {
	call, err := callOf(w, try)
	if err != nil {
		return nil, err
	}
	response, err := p.s.Send(ctx, call)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer any
	if err := decode(bytes.NewReader(text), &answer); err != nil {
		return nil, err
	}
	record, _ := answer.(map[string]any)
	return record, nil
}
