package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/component"
)

const componentVersions = "/v1/components/{id}/versions"

func (a *api) registerComponents(s *rest.Server) {
	components := rest.Resource[component.Component, component.Draft, component.Filter]{
		Server: s, ID: "component", One: "a component", Many: "components", Path: "/v1/components",
		Read: auth.FunctionsRead, Write: auth.FunctionsWrite,
	}
	taken := []apperr.Kind{apperr.AlreadyExists}
	components.List(rest.Op{}, a.Components.List)
	components.Create(rest.Op{
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc:    "`config` must meet `schema`, a JSON Schema (2020-12) of up to 16 KiB without references.",
	}, a.Components.Create)
	components.Get(rest.Op{}, a.Components.Get)
	components.Replace(rest.Op{Errors: taken}, a.Components.Update)
	components.Update(rest.Op{
		Errors: taken, Doc: "JSON merge patch (RFC 7396). Published versions stay as they are.",
		Request: map[string]any{"config": map[string]any{"title": "Welcome"}},
	}, a.Components.Update)
	components.Delete(rest.Op{Doc: "Its versions are deleted too."}, a.Components.Delete)
	components.Action("publish", rest.Op{
		Doc: "Makes the next `component_version`, which never changes, unless nothing has changed since the last. " +
			"The last 100 are kept.",
	}, a.Components.Publish)
	rest.Named[component.Version](s, "ComponentVersion")
	versions := rest.Resource[component.Version, component.Profile, component.VersionFilter]{
		Server: s, ID: "component-version", Path: componentVersions,
		Read: auth.FunctionsRead,
	}
	versions.List(rest.Op{
		IfMatchParam: rest.NoRecord, Summary: "List a component's published versions",
	}, a.Components.Versions)
	rest.Handle(s, rest.Op{
		ID: "get-component-version", Method: http.MethodGet, Path: componentVersions + "/{number}",
		Scope: auth.FunctionsRead, IfMatchParam: "number", Summary: "Get a published version",
	}, a.getComponentVersion)
}

type componentVersionInput struct {
	rest.ByID
	Number int64 `path:"number" minimum:"1" doc:"The component_version" example:"1"`
}

func (a *api) getComponentVersion(
	ctx context.Context, in *componentVersionInput,
) (rest.Record[component.Version], error) {
	return rest.RecordOf[component.Version](a.Components.Version(ctx, in.ID, in.Number))
}
