package picture

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// kept is the picture of a record. Its id is the record's id.
type kept struct {
	docstore.Meta
	ContentType string `json:"content_type"`
	ETag        string `json:"etag"`
	Bytes       []byte `json:"bytes"`
}

func (k *kept) image() Image { return Image{ContentType: k.ContentType, ETag: k.ETag, Bytes: k.Bytes} }

// thumbnail is one of the squares that are stored for a picture. Its id is made of the record's id and the square's
// level. Pictures from before there were thumbnails get theirs when one is first requested.
type thumbnail struct {
	docstore.Meta
	Of          string `json:"avatar"` // ETag of the picture that it was made from
	ContentType string `json:"content_type"`
	Side        int    `json:"side"` // pixels
	Bytes       []byte `json:"bytes"`
}

func thumbnailID(recordID string, level int) string { return fmt.Sprintf("%s.%d", recordID, level) }

// Album defines where the pictures of a collection's records are stored: one for each record, with its squares.
type Album struct {
	noun       string
	pictures   *docstore.Collection[kept]
	thumbnails *docstore.Collection[thumbnail]
}

// NewAlbum defines an album of two collections with these names. noun is what messages call a picture.
func NewAlbum(noun, pictures, thumbnails string) *Album {
	return &Album{
		noun:       noun,
		pictures:   docstore.Define(docstore.Schema[kept]{Name: pictures, Noun: noun, Part: true}),
		thumbnails: docstore.Define(docstore.Schema[thumbnail]{Name: thumbnails, Noun: noun, Part: true}),
	}
}

// Defs are the collections that the store must have.
func (a *Album) Defs() []*docstore.Def { return []*docstore.Def{a.pictures.Def(), a.thumbnails.Def()} }

// Put stores the picture of a record, which has none, with its squares.
func (a *Album) Put(ctx context.Context, tx *docstore.Tx, id string, img Image, squares []Square) error {
	k := kept{Meta: docstore.Meta{ID: id}, ContentType: img.ContentType, ETag: img.ETag, Bytes: img.Bytes}
	if _, err := a.pictures.Insert(ctx, tx, &k); err != nil {
		return err
	}
	return a.keepSquares(ctx, tx, id, img.ETag, squares)
}

func (a *Album) keepSquares(ctx context.Context, tx *docstore.Tx, id, of string, squares []Square) error {
	for _, square := range squares {
		if _, err := a.thumbnails.Insert(ctx, tx, &thumbnail{
			Meta: docstore.Meta{ID: thumbnailID(id, square.Level)},
			Of:   of, ContentType: square.ContentType, Side: square.Width, Bytes: square.Bytes,
		}); err != nil {
			return err
		}
	}
	return nil
}

// keptSquares returns the stored squares of a record's picture, if that has the ETag.
func (a *Album) keptSquares(ctx context.Context, r docstore.Reader, id, of string) (squares []Square, _ error) {
	for _, level := range AllLevels() {
		doc, err := a.thumbnails.Find(ctx, r, thumbnailID(id, level))
		if apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		t, err := doc.Value()
		if err != nil {
			return nil, err
		}
		if t.Of == of {
			squares = append(squares, Square{level, Image{
				ContentType: t.ContentType, Bytes: t.Bytes, Width: t.Side, Height: t.Side,
			}})
		}
	}
	return squares, nil
}

// Drop removes a record's picture with its squares, if there is one.
func (a *Album) Drop(ctx context.Context, tx *docstore.Tx, id string) error {
	if err := a.pictures.DeleteWhere(ctx, tx, docstore.ID(id), nil); err != nil {
		return err
	}
	var ids []string
	for _, level := range AllLevels() {
		ids = append(ids, thumbnailID(id, level))
	}
	return a.thumbnails.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
}

func (a *Album) find(ctx context.Context, r docstore.Reader, id string) (*kept, error) {
	doc, err := a.pictures.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Gallery shows the pictures of an album. It is safe for concurrent use.
type Gallery struct {
	album   *Album
	store   *docstore.Store
	decoder *Decoder
	flight  singleflight.Group
}

// NewGallery makes a Gallery.
func NewGallery(a *Album, store *docstore.Store, decoder *Decoder) *Gallery {
	return &Gallery{album: a, store: store, decoder: decoder}
}

// Shown is a picture as clients see it. Load is not needed for a client that has the ETag already.
type Shown struct {
	ETag string
	Load func(ctx context.Context) (Image, error)
}

// Show returns a record's picture, as a square of size pixels unless size is 0. The error is apperr.NotFound; that of
// Load is apperr.Unavailable.
func (g *Gallery) Show(ctx context.Context, id string, size int) (Shown, error) {
	if size == 0 {
		k, err := g.album.find(ctx, g.store, id)
		if err != nil {
			return Shown{}, err
		}
		return Shown{k.ETag, func(context.Context) (Image, error) { return k.image(), nil }}, nil
	}
	var t *thumbnail
	for _, level := range Levels(size) {
		doc, err := g.album.thumbnails.Find(ctx, g.store, thumbnailID(id, level))
		if apperr.IsNotFound(err) {
			continue
		}
		if err == nil {
			t, err = doc.Value()
		}
		if err != nil {
			return Shown{}, err
		}
		break
	}
	if t != nil {
		return g.sized(id, t.Of, size, func(context.Context) (*thumbnail, error) { return t, nil }), nil
	}
	k, err := g.album.find(ctx, g.store, id)
	if err != nil {
		return Shown{}, err
	}
	return g.sized(id, k.ETag, size, func(ctx context.Context) (*thumbnail, error) {
		return g.firstThumbnail(ctx, k, size)
	}), nil
}

// sized is the picture with the ETag as a square of size pixels, made from what source returns.
func (g *Gallery) sized(id, etag string, size int, source func(context.Context) (*thumbnail, error)) Shown {
	return Shown{fmt.Sprintf("%s-%d", etag, size), func(ctx context.Context) (Image, error) {
		t, err := source(ctx)
		if err != nil {
			return Image{}, err
		}
		img := Image{ContentType: t.ContentType, Bytes: t.Bytes, Width: t.Side, Height: t.Side}
		if t.Side == size {
			return img, nil
		}
		return once(ctx, &g.flight, fmt.Sprintf("%s %s %d", id, etag, size), func(ctx context.Context) (Image, error) {
			return g.decoder.Resize(ctx, img, size)
		})
	}}
}

// firstThumbnail makes and stores the thumbnails of a picture that has none yet, and returns the one for size.
func (g *Gallery) firstThumbnail(ctx context.Context, k *kept, size int) (*thumbnail, error) {
	squares, err := once(ctx, &g.flight, k.ID+" "+k.ETag, func(ctx context.Context) ([]Square, error) {
		// Another request may have stored them since this one looked.
		squares, err := g.album.keptSquares(ctx, g.store, k.ID, k.ETag)
		if err != nil || len(squares) > 0 {
			return squares, err
		}
		if squares, err = g.decoder.Squares(ctx, k.image()); err != nil {
			return nil, err
		}
		err = docstore.Do(ctx, g.store, func(tx *docstore.Tx) error {
			now, err := g.album.find(ctx, tx, k.ID)
			if err != nil || now.ETag != k.ETag { // the picture was changed meanwhile
				return err
			}
			return g.album.keepSquares(ctx, tx, k.ID, k.ETag, squares)
		})
		_, another := errors.AsType[*docstore.DuplicateError](err) // another replica was first
		if another || apperr.IsNotFound(err) || apperr.KindOf(err) == apperr.Unavailable {
			err = nil // the next request stores them, if necessary
		}
		return squares, err
	})
	if err != nil {
		return nil, err
	}
	for _, level := range Levels(size) {
		for _, square := range squares {
			if square.Level == level {
				return &thumbnail{ContentType: square.ContentType, Side: square.Width, Bytes: square.Bytes}, nil
			}
		}
	}
	return nil, fmt.Errorf("the %s of %s has no squares", g.album.noun, k.ID)
}

const onceTakes = 30 * time.Second

// once runs work a single time for all callers of a tenant that ask for the same key at the same time. The work
// continues if the first caller gives up.
func once[R any](ctx context.Context, flight *singleflight.Group, key string, work func(context.Context) (R, error)) (R,
	error) {
	done := flight.DoChan(request.Tenant(ctx)+" "+key, func() (result any, err error) {
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
