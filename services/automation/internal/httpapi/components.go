package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/automation/internal/component"
)

const oneComponent = "/v1/components/{id}"

func (a *api) registerComponents(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-components", Method: http.MethodGet, Path: "/v1/components", Scope: auth.FunctionsRead,
		Summary:  "List components",
		Response: map[string]any{"items": []any{exampleComponent}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listComponents)
	rest.Handle(s, rest.Op{
		ID: "create-component", Method: http.MethodPost, Path: "/v1/components", Scope: auth.FunctionsWrite,
		Summary: "Create a component", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc:     "`config` must meet `schema`, a JSON Schema (2020-12) of up to 16 KiB without references.",
		Request: exampleComponentInput, Response: exampleComponent,
	}, a.createComponent)
	rest.Handle(s, rest.Op{
		ID: "get-component", Method: http.MethodGet, Path: oneComponent, Scope: auth.FunctionsRead,
		Summary: "Get a component", Response: exampleComponent,
	}, rest.One[Component](a.Components.Get))
	rest.Handle(s, rest.Op{
		ID: "replace-component", Method: http.MethodPut, Path: oneComponent, Scope: auth.FunctionsWrite,
		Summary: "Replace a component", Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: exampleComponentInput, Response: exampleComponent,
	}, rest.Replace[Component, ComponentInput](a.Components.Update))
	rest.Handle(s, rest.Op{
		ID: "update-component", Method: http.MethodPatch, Path: oneComponent, Scope: auth.FunctionsWrite,
		Summary: "Change a component", Errors: []apperr.Kind{apperr.AlreadyExists},
		Doc:     "JSON merge patch (RFC 7396). Published versions stay as they are.",
		Request: map[string]any{"config": map[string]any{"title": "Welcome"}}, Response: exampleComponent,
	}, rest.Update[Component, ComponentInput](a.Components.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-component", Method: http.MethodDelete, Path: oneComponent, Scope: auth.FunctionsWrite,
		Summary: "Delete a component", Doc: "Its versions are deleted too.", Response: rest.Deleted{ID: "1048577"},
	}, rest.Delete(a.Components.Delete))
	rest.Handle(s, rest.Op{
		ID: "publish-component", Method: http.MethodPost, Path: oneComponent + "/publish", Scope: auth.FunctionsWrite,
		Summary: "Publish a component", Response: exampleComponent,
		Doc: "Makes the next `component_version`, which never changes, unless nothing has changed since the last. " +
			"The last 100 are kept.",
	}, rest.One[Component](a.Components.Publish))
	rest.Handle(s, rest.Op{
		ID: "list-component-versions", Method: http.MethodGet, Path: oneComponent + "/versions",
		Scope: auth.FunctionsRead, Record: rest.NoRecord, Summary: "List a component's published versions",
		Response: map[string]any{"items": []any{exampleComponentVersion}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listComponentVersions)
	rest.Handle(s, rest.Op{
		ID: "get-component-version", Method: http.MethodGet, Path: oneComponent + "/versions/{number}",
		Scope: auth.FunctionsRead, Record: "number", Summary: "Get a published version",
		Response: exampleComponentVersion,
	}, a.getComponentVersion)
}

type listComponentsInput struct {
	Code   string `query:"code" maxLength:"64"`
	Type   string `query:"type" maxLength:"64"`
	Status string `query:"status" enum:"1,0"`
	textindex.Search
	docstore.Paging
}

func (a *api) listComponents(ctx context.Context, in *listComponentsInput) (rest.List[Component], error) {
	filter := component.Filter{Code: in.Code, Type: in.Type, Status: in.Status, Keyword: in.Keyword}
	page, err := a.Components.List(ctx, filter, in.Paging)
	return rest.ListOf[Component](in.Paging, page, err)
}

type createComponentInput struct {
	Body rest.JSON[ComponentInput]
}

func (a *api) createComponent(ctx context.Context, in *createComponentInput) (rest.Record[Component], error) {
	var draft component.Draft
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[Component]{}, err
	}
	return rest.RecordOf[Component](a.Components.Create(ctx, draft))
}

type componentVersionsInput struct {
	rest.ByID
	docstore.Paging
}

func (a *api) listComponentVersions(ctx context.Context, in *componentVersionsInput) (rest.List[ComponentVersion],
	error) {
	page, err := a.Components.Versions(ctx, in.ID, in.Paging)
	return rest.ListOf[ComponentVersion](in.Paging, page, err)
}

type componentVersionInput struct {
	rest.ByID
	Number int64 `path:"number" minimum:"1" doc:"The component_version" example:"1"`
}

func (a *api) getComponentVersion(ctx context.Context, in *componentVersionInput) (rest.Record[ComponentVersion],
	error) {
	return rest.RecordOf[ComponentVersion](a.Components.Version(ctx, in.ID, in.Number))
}

// ComponentProfile has the members that are published.
type ComponentProfile struct {
	Code   string         `json:"code" doc:"1…64 letters, digits or . _ -; unique" example:"banner"`
	Name   string         `json:"name" doc:"1…128 characters" example:"Banner"`
	Type   string         `json:"type" doc:"What it is a piece of: 1…64 lower-case letters, digits, _ or -" example:"login_page"`
	Schema map[string]any `json:"schema,omitempty" doc:"A JSON Schema (2020-12) for config, without references; up to 16 KiB"`
	Config map[string]any `json:"config,omitempty" doc:"Must meet schema; up to 64 KiB"`
}

// Component describes component.Component for the OpenAPI document.
type Component struct {
	rest.Meta
	ComponentProfile
	Status           string     `json:"status" enum:"1,0" doc:"1: people may use it"`
	ComponentVersion int64      `json:"component_version" readOnly:"true" doc:"The last that was published; 0 for none"`
	TimePublished    *time.Time `json:"time_published" readOnly:"true" nullable:"true" doc:"When the last version was published; null: none is"`
}

// ComponentInput is a component to be created or changed. Read-only members may be sent back and do not count.
type ComponentInput struct {
	rest.MembersOf[Component]
	ComponentProfile
	Status string `json:"status,omitempty" enum:"1,0" doc:"1 if absent"`
}

// ComponentVersion describes component.Version for the OpenAPI document.
type ComponentVersion struct {
	rest.Meta
	ComponentID      string `json:"component_id" doc:"The component"`
	ComponentVersion int64  `json:"component_version" doc:"Counts the versions from 1"`
	ComponentProfile
}

var exampleComponentInput = map[string]any{
	"code": "banner", "name": "Banner", "type": "login_page", "config": map[string]any{"title": "Welcome"},
	"schema": map[string]any{
		"type": "object", "required": []string{"title"},
		"properties": map[string]any{"title": map[string]any{"type": "string", "maxLength": 80}},
	},
}

const exampleComponentProfile = `"code":"banner","name":"Banner","type":"login_page","schema":{"type":"object",` +
	`"required":["title"],"properties":{"title":{"type":"string","maxLength":80}}},"config":{"title":"Welcome"}`

var exampleComponent = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` + exampleComponentProfile +
	`,"status":"1","component_version":0,"time_published":null}`)

var exampleComponentVersion = json.RawMessage(`{"id":"1048577.1","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","component_id":"1048577",` +
	`"component_version":1,` + exampleComponentProfile + `}`)
