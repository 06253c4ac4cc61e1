package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

func (a *api) registerLogos(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "put-logo", Method: http.MethodPut, Path: "/v1/applications/{id}/logo", Scope: auth.ApplicationsWrite,
		Summary: "Upload a logo",
		Doc: "PNG, JPEG, WebP or GIF, up to 2 MiB and 4096 × 4096 pixels: the image as body, or the field `file` of " +
			"a multipart form. Metadata is removed. The member `logo` is then the path of the picture; a PATCH of " +
			"that member deletes the picture.",
		Consumes: rest.UploadedImages,
		Errors:   []apperr.Kind{apperr.TooLarge, apperr.UnsupportedMediaType},
	}, a.putLogo)
	rest.Handle(s, rest.Op{
		ID: "get-logo", Method: http.MethodGet, Path: "/v1/applications/{id}/logo", Scope: auth.ApplicationsRead,
		Summary:      "Show a logo",
		ContentTypes: rest.ShownImages,
	}, a.getLogo)
}

type putLogoInput struct {
	rest.ByID
	rest.Upload
}

func (a *api) putLogo(ctx context.Context, in *putLogoInput) (rest.Record[application.Application], error) {
	raw, err := in.Image()
	if err != nil {
		return rest.Record[application.Application]{}, err
	}
	return rest.RecordOf[application.Application](a.apps.SetLogo(ctx, in.ID, raw))
}

type getLogoInput struct {
	rest.ByID
	Size int `query:"size" minimum:"16" maximum:"512" doc:"Edge of the square wanted, in pixels; absent: as uploaded"`
}

func (a *api) getLogo(ctx context.Context, in *getLogoInput) (rest.Image, error) {
	logo, err := a.apps.Logo(ctx, in.ID, in.Size)
	return rest.Image{ETag: logo.ETag, Load: func(ctx context.Context) (string, []byte, error) {
		img, err := logo.Load(ctx)
		return img.ContentType, img.Bytes, err
	}}, err
}
