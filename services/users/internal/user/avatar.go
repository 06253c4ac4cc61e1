package user

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/users/internal/picture"
)

// avatar is a user's picture. Its id is the user's.
type avatar struct {
	docstore.Meta
	ContentType string `json:"content_type"`
	ETag        string `json:"etag"`
	Bytes       []byte `json:"bytes"`
}

var avatars = docstore.Define(docstore.Schema[avatar]{Name: "avatars", Noun: "avatar", Part: true})

// SetAvatar checks a picture and keeps it without its metadata. apperr.NotFound, InvalidParameters (no picture), TooLarge.
func (s *Users) SetAvatar(ctx context.Context, id string, raw []byte) (Doc, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return Doc{}, err
	}
	img, err := s.Pictures.Decode(ctx, raw)
	if err != nil {
		return Doc{}, err
	}
	return s.transition(ctx, id, func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if err := avatars.DeleteWhere(ctx, tx, docstore.ID(id), nil); err != nil {
			return Doc{}, err
		}
		a := avatar{Meta: docstore.Meta{ID: id}, ContentType: img.ContentType, ETag: img.ETag, Bytes: img.Bytes}
		if _, err := avatars.Insert(ctx, tx, &a); err != nil {
			return Doc{}, err
		}
		u.AvatarURL = fmt.Sprintf("/v1/users/%s/avatar", id)
		return touch(ctx, tx, u, "updated")
	})
}

// Avatar returns a user's picture, as a square of size pixels unless size is 0. apperr.NotFound.
func (s *Users) Avatar(ctx context.Context, id string, size int) (picture.Image, error) {
	doc, err := avatars.Find(ctx, s.Store, id)
	if err != nil {
		return picture.Image{}, err
	}
	a, err := doc.Value()
	if err != nil {
		return picture.Image{}, err
	}
	img := picture.Image{ContentType: a.ContentType, ETag: a.ETag, Bytes: a.Bytes}
	if size == 0 {
		return img, nil
	}
	return s.Pictures.Resize(ctx, img, size)
}

// RemoveAvatar forgets a user's picture. apperr.NotFound if there is none.
func (s *Users) RemoveAvatar(ctx context.Context, id string) (Deleted, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Deleted, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return Deleted{}, err
		}
		if u.AvatarURL == "" {
			return Deleted{}, apperr.Missing("avatar")
		}
		if err := avatars.DeleteWhere(ctx, tx, docstore.ID(id), nil); err != nil {
			return Deleted{}, err
		}
		u.AvatarURL = ""
		_, err = replace(ctx, tx, u, "updated", nil)
		return Deleted{id}, err
	})
}
