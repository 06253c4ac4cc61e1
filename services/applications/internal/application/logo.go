package application

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
)

var logos = picture.NewAlbum("logo", "logos", "logo_thumbnails")

func logoPath(id string) string { return "/v1/applications/" + id + "/logo" }

// SetLogo checks a picture and stores it without its metadata. The member logo is then the path of the picture. The
// error is apperr.NotFound, InvalidParameters (not a picture), TooLarge or VersionMismatch.
func (s *Applications) SetLogo(ctx context.Context, id string, raw []byte) (Doc, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return Doc{}, err
	}
	img, squares, err := s.Pictures.Decode(ctx, raw)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a, err := load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		if err := dropLogo(ctx, tx, a); err != nil {
			return Doc{}, err
		}
		if err := logos.Put(ctx, tx, id, img, squares); err != nil {
			return Doc{}, err
		}
		a.Logo = logoPath(id)
		return applications.Touch(ctx, tx, a)
	})
}

// dropLogo deletes an application's picture, if logo is its path.
func dropLogo(ctx context.Context, tx *docstore.Tx, a *Application) error {
	if a.Logo != logoPath(a.ID) {
		return nil
	}
	return logos.Drop(ctx, tx, a.ID)
}

// Logo returns the picture that SetLogo stored, as a square of size pixels unless size is 0. The error is
// apperr.NotFound; its Load may return apperr.Unavailable.
func (s *Applications) Logo(ctx context.Context, id string, size int) (picture.Shown, error) {
	return s.gallery.Show(ctx, id, size)
}
