package rest

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// ShownImages are the content types of images in answers, UploadedImages those of bodies that Upload.Image accepts.
var (
	ShownImages    = []string{"image/png", "image/jpeg", "image/gif"}
	UploadedImages = append([]string{"multipart/form-data", "image/webp"}, ShownImages...)
)

const maxImage = 2 << 20

// Image reads an image of at most 2 MiB from a body that is one, or from the part "file" of a multipart form.
func (u *Upload) Image() ([]byte, error) {
	r := u.Request
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/form-data" && !strings.HasPrefix(mediaType, "image/") {
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be an image or multipart/form-data")
	}
	body := io.Reader(http.MaxBytesReader(nil, r.Body, maxImage+64<<10)) // leaves room for the form's other parts
	if mediaType == "multipart/form-data" {
		if params["boundary"] == "" {
			return nil, apperr.Invalid("", "is a form without a boundary")
		}
		r.Body = io.NopCloser(body)
		if body, err = filePart(r); err != nil {
			return nil, err
		}
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxImage+1))
	if err != nil {
		return nil, noImage(err)
	}
	if len(raw) > maxImage {
		return nil, errImageTooLarge
	}
	if len(raw) == 0 {
		return nil, apperr.Invalid("file", "is empty")
	}
	return raw, nil
}

// filePart reads the part "file" of a multipart form.
func filePart(r *http.Request) (io.Reader, error) {
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
			return nil, noImage(err)
		}
		if part.FormName() == "file" {
			return part, nil
		}
	}
}

var errImageTooLarge = apperr.New(apperr.TooLarge, "the image has more than %d MiB", maxImage>>20)

func noImage(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errImageTooLarge
	}
	return apperr.Invalid("", "could not be read").Because(err)
}
