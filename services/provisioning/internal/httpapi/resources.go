package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// ListInput are the parameters of a list (RFC 7644 §3.4.2, RFC 9865).
type ListInput struct {
	Asked
	Attributes string `query:"attributes" maxLength:"4096" doc:"Paths, joined by commas: only these, and what is always returned"`
	Excluded   string `query:"excludedAttributes" maxLength:"4096" doc:"Paths, joined by commas: all but these"`
	Filter     string `query:"filter" doc:"RFC 7644 §3.4.2.2; up to 2048 characters" example:"userName eq \"li.wei@acme.test\""`
	SortBy     string `query:"sortBy" maxLength:"255" doc:"An attribute by which resources can be sorted" example:"userName"`
	SortOrder  string `query:"sortOrder" maxLength:"16" doc:"ascending or descending"`
	StartIndex string `query:"startIndex" maxLength:"20" doc:"From 1" example:"1"`
	Count      string `query:"count" maxLength:"20" doc:"Resources a page: 100 if absent, at most 200; 0 gives only the total" example:"100"`
	Cursor     string `query:"cursor" maxLength:"16384" doc:"Empty for the first page, then nextCursor"`
}

// OneInput is the input about one resource.
type OneInput struct {
	Asked
	rest.ByID
	Attributes string `query:"attributes" maxLength:"4096" doc:"Paths, joined by commas: only these, and what is always returned"`
	Excluded   string `query:"excludedAttributes" maxLength:"4096" doc:"Paths, joined by commas: all but these"`
}

// BodyInput is the input with a body.
type BodyInput struct {
	Asked
	Attributes string `query:"attributes" maxLength:"4096" doc:"Paths, joined by commas: only these, and what is always returned"`
	Excluded   string `query:"excludedAttributes" maxLength:"4096" doc:"Paths, joined by commas: all but these"`
	Body       rest.JSON[rest.SCIMObject]
}

// OneBodyInput is the input about one resource with a body.
type OneBodyInput struct {
	OneInput
	Body rest.JSON[rest.SCIMObject]
}

func (in *Asked) projection(call people.Call, e endpoint) resource.Projection {
	attributes, _ := in.Parameter("attributes")
	excluded, _ := in.Parameter("excludedAttributes")
	kind := e.kind
	if e.kind.Endpoint == "/Users" {
		kind = people.Kind(call.Connection)
	}
	return resource.Project(kind, attributes, excluded)
}

var scimKinds = []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.VersionMismatch}

func (a *api) op(e endpoint, verb, method, path, summary string) rest.Op {
	noun := strings.ToLower(e.kind.Name)
	return rest.Op{
		ID: "scim-" + verb + "-" + noun, Method: method, Path: root + e.kind.Endpoint + path, Scope: auth.SCIM,
		Summary: summary, SCIM: fault, IfMatchParam: rest.NoRecord, Errors: scimKinds, Response: e.example,
	}
}

// registerResources adds the operations on one kind of resource.
func (a *api) registerResources(s *rest.Server, e endpoint) {
	noun := strings.ToLower(e.kind.Name)
	post := a.op(e, "create", http.MethodPost, "", "Create a "+noun)
	post.Success, post.Request, post.MaxBody = http.StatusCreated, e.example, e.maxBody
	rest.Handle(s, post, func(ctx context.Context, in *BodyInput) (reply, error) {
		body := in.Body.Text()
		return a.serve(ctx, &in.Asked, body, created, func(ctx context.Context, call people.Call) (reply, error) {
			o, err := resource.DecodeObject([]byte(body))
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			shown, err := e.post(ctx, call, in.projection(call, e), o)
			return shownAnswer(shown, http.StatusCreated), err
		})
	})
	rest.Handle(s, a.op(e, "get", http.MethodGet, "/{id}", "Get a "+noun),
		func(ctx context.Context, in *OneInput) (reply, error) {
			return a.serve(ctx, &in.Asked, "", nothing, func(ctx context.Context, call people.Call) (reply, error) {
				shown, err := e.get(ctx, call, in.projection(call, e), in.ID)
				return shownAnswer(shown, http.StatusOK), err
			})
		})
	put := a.op(e, "replace", http.MethodPut, "/{id}", "Replace a "+noun)
	put.Request, put.MaxBody = e.example, e.maxBody
	rest.Handle(s, put, func(ctx context.Context, in *OneBodyInput) (reply, error) {
		body := in.Body.Text()
		return a.serve(ctx, &in.Asked, body, updated, func(ctx context.Context, call people.Call) (reply, error) {
			o, err := resource.DecodeObject([]byte(body))
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			shown, err := e.put(ctx, call, in.projection(call, e), in.ID, o)
			return shownAnswer(shown, http.StatusOK), err
		})
	})
	a.registerPatch(s, e)
	del := a.op(e, "delete", http.MethodDelete, "/{id}", "Delete a "+noun)
	del.Success, del.Response = http.StatusNoContent, nil
	rest.Handle(s, del, func(ctx context.Context, in *OneInput) (reply, error) {
		return a.serve(ctx, &in.Asked, "", removed, func(ctx context.Context, call people.Call) (reply, error) {
			return rest.SCIMAnswer{Status: http.StatusNoContent}, e.remove(ctx, call, in.ID)
		})
	})
	a.registerLists(s, e)
}

func (a *api) registerPatch(s *rest.Server, e endpoint) {
	noun := strings.ToLower(e.kind.Name)
	op := a.op(e, "patch", http.MethodPatch, "/{id}", "Change a "+noun)
	op.MaxBody = e.maxBody
	op.Request = map[string]any{"schemas": []string{patch.URN}, "Operations": []any{
		map[string]any{"op": "replace", "path": "displayName", "value": "Li Wei"},
	}}
	if e.quiet {
		op.Doc = "With `attributes` the answer is 200 with the resource, otherwise 204."
		op.Success = http.StatusNoContent
	}
	rest.Handle(s, op, func(ctx context.Context, in *OneBodyInput) (reply, error) {
		body := in.Body.Text()
		return a.serve(ctx, &in.Asked, body, updated, func(ctx context.Context, call people.Call) (reply, error) {
			operations, err := patch.Parse([]byte(body))
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			p := in.projection(call, e)
			shown, err := e.patch(ctx, call, p, in.ID, operations)
			if err == nil && e.quiet && p.IsDefault() {
				return rest.SCIMAnswer{Status: http.StatusNoContent, Version: shown.Tag}, nil
			}
			return shownAnswer(shown, http.StatusOK), err
		})
	})
}

func (a *api) registerLists(s *rest.Server, e endpoint) {
	noun := strings.ToLower(e.kind.Name)
	example := map[string]any{
		"schemas": []string{message.ListURN}, "totalResults": 1, "itemsPerPage": 1, "startIndex": 1,
		"Resources": []any{e.example},
	}
	list := a.op(e, "list", http.MethodGet, "", "List "+noun+"s")
	list.ID, list.Response = list.ID+"s", example
	rest.Handle(s, list, func(ctx context.Context, in *ListInput) (reply, error) {
		return a.serve(ctx, &in.Asked, "", nothing, func(ctx context.Context, call people.Call) (reply, error) {
			search, err := message.SearchOf(in.Parameter)
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			return documentAnswer(e.list(ctx, call, in.projection(call, e), search))
		})
	})
	search := a.op(e, "search", http.MethodPost, "/.search", "Search "+noun+"s")
	search.ID, search.Response, search.NoReplay = search.ID+"s", example, true
	search.Request = map[string]any{
		"schemas": []string{message.SearchURN}, "filter": `displayName sw "Li"`, "count": 10,
	}
	rest.Handle(s, search, func(ctx context.Context, in *BodyInput) (reply, error) {
		body := in.Body.Text()
		return a.serve(ctx, &in.Asked, "", nothing, func(ctx context.Context, call people.Call) (reply, error) {
			search, err := message.ParseSearch([]byte(body))
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			kind := e.kind
			if kind.Endpoint == "/Users" {
				kind = people.Kind(call.Connection)
			}
			return documentAnswer(e.list(ctx, call, resource.Project(kind, search.Attributes, search.Excluded), search))
		})
	})
}
