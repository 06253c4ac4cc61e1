package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

type assetInput struct {
	Tenant string `path:"tenant" doc:"The tenant's id" example:"acme"`
}

func (a *api) registerAssets(s *rest.Server) {
	asset := func(id, path, summary, contentType string, make func(*settings.Settings) (rest.Asset, error)) {
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodGet, Path: below + path, Summary: summary, ErrorPage: a.failed,
			ContentTypes: []string{contentType}, Response: "…",
		}, func(ctx context.Context, input *assetInput) (rest.Asset, error) {
			ctx, err := withTenant(ctx, input.Tenant)
			if err != nil {
				return rest.Asset{}, err
			}
			of, err := a.Settings.Of(ctx)
			if err != nil {
				return rest.Asset{}, err
			}
			return make(of)
		})
	}
	asset("get-sign-in-style", "/style.css", "Get the pages' style sheet", "text/css",
		func(of *settings.Settings) (rest.Asset, error) {
			return rest.Asset{ContentType: "text/css; charset=utf-8", Body: page.StyleOf(of)}, nil
		})
	asset("get-sign-in-script", "/script.js", "Get the pages' script", "text/javascript",
		func(*settings.Settings) (rest.Asset, error) {
			return rest.Asset{ContentType: "text/javascript; charset=utf-8", Body: page.Script}, nil
		})
	asset("get-sign-in-logo", "/logo", "Get the tenant's logo", "image/png",
		func(of *settings.Settings) (rest.Asset, error) {
			contentType, image, ok := of.LogoImage()
			if !ok {
				return rest.Asset{}, apperr.Missing("logo")
			}
			return rest.Asset{ContentType: contentType, Body: image}, nil
		})
}
