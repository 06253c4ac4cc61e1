package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerAvatars(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "put-avatar", Method: http.MethodPut, Path: "/v1/users/{id}/avatar", Scope: auth.UsersWrite,
		Summary: "Upload an avatar",
		Doc: "PNG, JPEG, WebP or GIF, up to 2 MiB and 4096 × 4096: the image as body, or the field `file` of a " +
			"multipart form. Metadata is stripped.",
		Consumes: rest.UploadedImages,
		Errors:   []apperr.Kind{apperr.TooLarge, apperr.UnsupportedMediaType},
	}, a.putAvatar)
	rest.Handle(s, rest.Op{
		ID: "get-avatar", Method: http.MethodGet, Path: "/v1/users/{id}/avatar", Scope: auth.UsersRead,
		Summary:      "Show an avatar",
		ContentTypes: rest.ShownImages,
	}, a.getAvatar)
	rest.Handle(s, rest.Op{
		ID: "delete-avatar", Method: http.MethodDelete, Path: "/v1/users/{id}/avatar", Scope: auth.UsersWrite,
		Summary:  "Remove an avatar",
		Response: map[string]any{"id": "1048577"},
	}, a.deleteAvatar)
}

type putAvatarInput struct {
	rest.ByID
	rest.Upload
}

func (a *api) putAvatar(ctx context.Context, in *putAvatarInput) (rest.Record[user.User], error) {
	raw, err := in.Image()
	if err != nil {
		return rest.Record[user.User]{}, err
	}
	return rest.RecordOf[user.User](a.users.SetAvatar(ctx, in.ID, raw))
}

type getAvatarInput struct {
	rest.ByID
	Size int `query:"size" minimum:"16" maximum:"512" doc:"Edge of the square wanted, in pixels; absent: as uploaded"`
}

func (a *api) getAvatar(ctx context.Context, in *getAvatarInput) (rest.Image, error) {
	avatar, err := a.users.Avatar(ctx, in.ID, in.Size)
	return rest.Image{ETag: avatar.ETag, Load: func(ctx context.Context) (string, []byte, error) {
		img, err := avatar.Load(ctx)
		return img.ContentType, img.Bytes, err
	}}, err
}

func (a *api) deleteAvatar(ctx context.Context, in *rest.ByID) (rest.Deleted, error) {
	return a.users.RemoveAvatar(ctx, in.ID)
}
