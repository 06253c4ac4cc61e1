package user

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
)

var avatars = picture.NewAlbum("avatar", "avatars", "thumbnails")

// SetAvatar checks a picture and stores it without its metadata. The error is apperr.NotFound, InvalidParameters (not a
// picture) or TooLarge.
func (s *Users) SetAvatar(ctx context.Context, id string, raw []byte) (Doc, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return Doc{}, err
	}
	img, squares, err := s.Pictures.Decode(ctx, raw)
	if err != nil {
		return Doc{}, err
	}
	return s.transition(ctx, id, func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if err := dropAvatar(ctx, tx, u); err != nil {
			return Doc{}, err
		}
		if err := avatars.Put(ctx, tx, id, img, squares); err != nil {
			return Doc{}, err
		}
		u.AvatarURL = fmt.Sprintf("/v1/users/%s/avatar", id)
		return users.Touch(ctx, tx, u)
	})
}

// dropAvatar removes a user's picture, if there is one.
func dropAvatar(ctx context.Context, tx *docstore.Tx, u *User) error {
	if u.AvatarURL == "" {
		return nil
	}
	return avatars.Drop(ctx, tx, u.ID)
}

// Avatar returns a user's picture, as a square of size pixels unless size is 0. The error is apperr.NotFound; that of
// Load is apperr.Unavailable.
func (s *Users) Avatar(ctx context.Context, id string, size int) (picture.Shown, error) {
	return s.gallery.Show(ctx, id, size)
}

// RemoveAvatar deletes a user's picture. The error is apperr.NotFound if there is none.
func (s *Users) RemoveAvatar(ctx context.Context, id string) (docstore.Deleted, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if u.AvatarURL == "" {
			return docstore.Deleted{}, apperr.Missing("avatar")
		}
		if err := dropAvatar(ctx, tx, u); err != nil {
			return docstore.Deleted{}, err
		}
		u.AvatarURL = ""
		_, err = users.Replace(ctx, tx, u)
		return docstore.Deleted{ID: id}, err
	})
}
