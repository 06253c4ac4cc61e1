package user

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
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

// thumbnail is one of the squares that are kept of an avatar. Its id is the user's and the square's level. Avatars
// that were uploaded before there were thumbnails get theirs when one is first asked for.
type thumbnail struct {
	docstore.Meta
	Avatar      string `json:"avatar"` // ETag of the avatar that it was made of
	ContentType string `json:"content_type"`
	Side        int    `json:"side"` // pixels
	Bytes       []byte `json:"bytes"`
}

var thumbnails = docstore.Define(docstore.Schema[thumbnail]{Name: "thumbnails", Noun: "avatar", Part: true})

func thumbnailID(userID string, level int) string { return fmt.Sprintf("%s.%d", userID, level) }

// SetAvatar checks a picture and keeps it without its metadata. apperr.NotFound, InvalidParameters (no picture),
// TooLarge.
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
		a := avatar{Meta: docstore.Meta{ID: id}, ContentType: img.ContentType, ETag: img.ETag, Bytes: img.Bytes}
		if _, err := avatars.Insert(ctx, tx, &a); err != nil {
			return Doc{}, err
		}
		if err := keepSquares(ctx, tx, id, img.ETag, squares); err != nil {
			return Doc{}, err
		}
		u.AvatarURL = fmt.Sprintf("/v1/users/%s/avatar", id)
		return touch(ctx, tx, u, "updated")
	})
}

func keepSquares(ctx context.Context, tx *docstore.Tx, userID, avatar string, squares []picture.Square) error {
	for _, square := range squares {
		if _, err := thumbnails.Insert(ctx, tx, &thumbnail{
			Meta:   docstore.Meta{ID: thumbnailID(userID, square.Level)},
			Avatar: avatar, ContentType: square.ContentType, Side: square.Width, Bytes: square.Bytes,
		}); err != nil {
			return err
		}
	}
	return nil
}

// dropAvatar removes a user's picture with its thumbnails, if there is one.
func dropAvatar(ctx context.Context, tx *docstore.Tx, u *User) error {
	if u.AvatarURL == "" {
		return nil
	}
	if err := avatars.DeleteWhere(ctx, tx, docstore.ID(u.ID), nil); err != nil {
		return err
	}
	var ids []string
	for _, level := range picture.AllLevels() {
		ids = append(ids, thumbnailID(u.ID, level))
	}
	return thumbnails.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
}

// Avatar is a user's picture as it is shown. Who has the ETag need not Load it.
type Avatar struct {
	ETag string
	Load func(ctx context.Context) (picture.Image, error)
}

// Avatar returns a user's picture, as a square of size pixels unless size is 0. apperr.NotFound; Load's
// apperr.Unavailable.
func (s *Users) Avatar(ctx context.Context, id string, size int) (Avatar, error) {
	if size == 0 {
		a, err := findAvatar(ctx, s.Store, id)
		if err != nil {
			return Avatar{}, err
		}
		return Avatar{a.ETag, func(context.Context) (picture.Image, error) { return a.image(), nil }}, nil
	}
	var t *thumbnail
	for _, level := range picture.Levels(size) {
		doc, err := thumbnails.Find(ctx, s.Store, thumbnailID(id, level))
		if apperr.IsNotFound(err) {
			continue
		}
		if err == nil {
			t, err = doc.Value()
		}
		if err != nil {
			return Avatar{}, err
		}
		break
	}
	if t != nil {
		return s.sized(id, t.Avatar, size, func(context.Context) (*thumbnail, error) { return t, nil }), nil
	}
	a, err := findAvatar(ctx, s.Store, id)
	if err != nil {
		return Avatar{}, err
	}
	return s.sized(id, a.ETag, size, func(ctx context.Context) (*thumbnail, error) { return s.firstThumbnail(ctx, a, size) }), nil
}

// sized is the avatar of that ETag as a square of size pixels, made from what source returns.
func (s *Users) sized(id, etag string, size int, source func(context.Context) (*thumbnail, error)) Avatar {
	return Avatar{fmt.Sprintf("%s-%d", etag, size), func(ctx context.Context) (picture.Image, error) {
		t, err := source(ctx)
		if err != nil {
			return picture.Image{}, err
		}
		img := picture.Image{ContentType: t.ContentType, Bytes: t.Bytes, Width: t.Side, Height: t.Side}
		if t.Side == size {
			return img, nil
		}
		return once(ctx, s, fmt.Sprintf("%s %s %d", id, etag, size), func(ctx context.Context) (picture.Image, error) {
			return s.Pictures.Resize(ctx, img, size)
		})
	}}
}

// firstThumbnail makes the thumbnails of an avatar that has none yet, keeps them, and returns the one for size.
func (s *Users) firstThumbnail(ctx context.Context, a *avatar, size int) (*thumbnail, error) {
	squares, err := once(ctx, s, a.ID+" "+a.ETag, func(ctx context.Context) ([]picture.Square, error) {
		squares, err := s.Pictures.Squares(ctx, a.image())
		if err != nil {
			return nil, err
		}
		err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			if now, err := findAvatar(ctx, tx, a.ID); err != nil || now.ETag != a.ETag { // it was changed meanwhile
				return err
			}
			return keepSquares(ctx, tx, a.ID, a.ETag, squares)
		})
		_, another := errors.AsType[*docstore.DuplicateError](err) // replica was first
		if another || apperr.IsNotFound(err) || apperr.KindOf(err) == apperr.Unavailable {
			err = nil // whoever asks next keeps them, if need be
		}
		return squares, err
	})
	if err != nil {
		return nil, err
	}
	for _, level := range picture.Levels(size) {
		for _, square := range squares {
			if square.Level == level {
				return &thumbnail{ContentType: square.ContentType, Side: square.Width, Bytes: square.Bytes}, nil
			}
		}
	}
	return nil, fmt.Errorf("avatar %s has no squares", a.ID)
}

const onceTakes = 30 * time.Second

// once does work that several callers of a tenant want at the same time one time for all. It does not end with the
// caller that was first.
func once[R any](ctx context.Context, s *Users, key string, work func(context.Context) (R, error)) (R, error) {
	done := s.flight.DoChan(request.Tenant(ctx)+" "+key, func() (result any, err error) {
		defer func() {
			if p := recover(); p != nil { // singleflight would end the process
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onceTakes)
		defer cancel()
		return work(ctx)
	})
	var none R
	select {
	case result := <-done:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(R), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func findAvatar(ctx context.Context, r docstore.Reader, id string) (*avatar, error) {
	doc, err := avatars.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

func (a *avatar) image() picture.Image {
	return picture.Image{ContentType: a.ContentType, ETag: a.ETag, Bytes: a.Bytes}
}

// RemoveAvatar forgets a user's picture. apperr.NotFound if there is none.
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
		_, err = replace(ctx, tx, u, "updated", nil)
		return docstore.Deleted{ID: id}, err
	})
}
