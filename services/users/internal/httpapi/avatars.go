package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
)

var imageTypes = []string{"image/png", "image/jpeg", "image/gif"}

func (a *api) registerAvatars(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "put-avatar", Method: http.MethodPut, Path: "/v1/users/{id}/avatar", Scope: auth.UsersWrite, Summary: "Upload an avatar",
		Doc:      "PNG, JPEG, WebP or GIF, up to 2 MiB and 4096 × 4096: the image as body, or the field `file` of a multipart form. Metadata is stripped.",
		Consumes: append([]string{"multipart/form-data", "image/webp"}, imageTypes...),
		Errors:   []apperr.Kind{apperr.TooLarge, apperr.UnsupportedMediaType}, Response: exampleUser,
	}, a.putAvatar)
	rest.Handle(s, rest.Op{
		ID: "get-avatar", Method: http.MethodGet, Path: "/v1/users/{id}/avatar", Scope: auth.UsersRead, Summary: "Show an avatar",
		ContentTypes: imageTypes,
	}, a.getAvatar)
	rest.Handle(s, rest.Op{
		ID: "delete-avatar", Method: http.MethodDelete, Path: "/v1/users/{id}/avatar", Scope: auth.UsersWrite, Summary: "Remove an avatar",
		Response: map[string]any{"id": "1048577"},
	}, a.deleteAvatar)
}

const maxImage = 2 << 20

type putAvatarInput struct {
	rest.ByID
	rest.Upload
}

func (a *api) putAvatar(ctx context.Context, in *putAvatarInput) (rest.Record[User], error) {
	raw, err := readImage(in.Request)
	if err != nil {
		return rest.Record[User]{}, err
	}
	doc, err := a.users.SetAvatar(ctx, in.ID, raw)
	return rest.RecordOf[User](doc, err)
}

// readImage takes an image of at most maxImage bytes out of a body that is one, or a form that has one.
func readImage(r *http.Request) ([]byte, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/form-data" && !strings.HasPrefix(mediaType, "image/") {
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be an image or multipart/form-data")
	}
	body := io.Reader(http.MaxBytesReader(nil, r.Body, maxImage+64<<10)) // with room for the form's other parts
	if mediaType == "multipart/form-data" {
		if params["boundary"] == "" {
			return nil, apperr.Invalid("", "is a form without a boundary")
		}
		r.Body = io.NopCloser(body)
		parts, err := r.MultipartReader()
		if err != nil {
			return nil, apperr.Invalid("", "is not a multipart form").Because(err)
		}
		for {
			part, err := parts.NextPart()
			if errors.Is(err, io.EOF) {
				return nil, apperr.Invalid("file", "is missing")
			}
			if err != nil {
				return nil, unreadable(err)
			}
			if part.FormName() == "file" {
				body = part
				break
			}
		}
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxImage+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if len(raw) > maxImage {
		return nil, errImageTooLarge
	}
	if len(raw) == 0 {
		return nil, apperr.Invalid("file", "is empty")
	}
	return raw, nil
}

var errImageTooLarge = apperr.New(apperr.TooLarge, "the image has more than %d MiB", maxImage>>20)

func unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errImageTooLarge
	}
	return apperr.Invalid("", "could not be read").Because(err)
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
	d, err := a.users.RemoveAvatar(ctx, in.ID)
	return d, err
}
