package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// document is what the platform says about its API (OpenAPI), as far as requests can be compared with it.
type document struct {
	operations []operation
}

type operation struct {
	id     string
	method string
	path   []string // segments; a parameter begins with {
	query  map[string]bool
}

func readDocument(address string) (*document, error) {
	answer, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	type parameter struct{ Ref, Name, In string }
	var text struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.NewDecoder(answer.Body).Decode(&text); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	d := &document{}
	for path, methods := range text.Paths {
		for method, raw := range methods {
			var o struct {
				OperationID string `json:"operationId"`
				Parameters  []struct {
					Ref  string `json:"$ref"`
					Name string
					In   string
				}
			}
			if json.Unmarshal(raw, &o) != nil {
				continue // not an operation: what all of the path have in common
			}
			query := map[string]bool{}
			for _, p := range o.Parameters {
				if p.Ref != "" {
					named := text.Components.Parameters[p.Ref[strings.LastIndex(p.Ref, "/")+1:]]
					p.Name, p.In = named.Name, named.In
				}
				query[p.Name] = query[p.Name] || p.In == "query"
			}
			d.operations = append(d.operations, operation{
				o.OperationID, strings.ToUpper(method), strings.Split(path, "/"), query,
			})
		}
	}
	if len(d.operations) == 0 {
		return nil, fmt.Errorf("%s has no operations", address)
	}
	// A path without a parameter comes before one with: /users/export is not the user “export” (OpenAPI 3.1, 4.8.8.2).
	slices.SortFunc(d.operations, func(a, b operation) int { return slices.Compare(a.path, b.path) })
	return d, nil
}

// find returns the operation of a request, and what the document does not know of it.
func (d *document) find(method string, u *url.URL) (id, unknown string) {
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/console/api"), "/")
	for _, o := range d.operations {
		if o.method != method || !o.matches(segments) {
			continue
		}
		for name := range u.Query() {
			if !o.query[name] {
				return o.id, fmt.Sprintf("%s %s has no parameter %s", method, strings.Join(o.path, "/"), name)
			}
		}
		return o.id, ""
	}
	return "", fmt.Sprintf("there is no %s %s", method, strings.Join(segments, "/"))
}

func (o operation) matches(segments []string) bool {
	if len(o.path) != len(segments) {
		return false
	}
	for i, s := range o.path {
		if s != segments[i] && (!strings.HasPrefix(s, "{") || segments[i] == "") {
			return false
		}
	}
	return true
}
