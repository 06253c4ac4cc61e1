package picture

import (
	"context"
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
// level.
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
	pictures   *docstore.Collection[kept]
	thumbnails *docstore.Collection[thumbnail]
}

// NewAlbum defines an album of two collections with these names. noun is what messages call a picture.
func NewAlbum(noun, pictures, thumbnails string) *Album {
	return &Album{
		pictures:   docstore.Define(docstore.Schema[kept]{Name: pictures, Noun: noun, NoIfMatch: true}),
		thumbnails: docstore.Define(docstore.Schema[thumbnail]{Name: thumbnails, Noun: noun, NoIfMatch: true}),
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
	for _, square := range squares {
		if _, err := a.thumbnails.Insert(ctx, tx, &thumbnail{
			Meta: docstore.Meta{ID: thumbnailID(id, square.Level)},
			Of:   img.ETag, ContentType: square.ContentType, Side: square.Width, Bytes: square.Bytes,
		}); err != nil {
			return err
		}
	}
	return nil
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
	var err error
	for _, level := range Levels(size) {
		var doc docstore.Doc[thumbnail]
		if doc, err = g.album.thumbnails.Find(ctx, g.store, thumbnailID(id, level)); apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			break
		}
		t, err := doc.Value()
		if err != nil {
			return Shown{}, err
		}
		return g.sized(id, t, size), nil
	}
	return Shown{}, err
}

// sized is a thumbnail as a square of size pixels.
func (g *Gallery) sized(id string, t *thumbnail, size int) Shown {
	return Shown{fmt.Sprintf("%s-%d", t.Of, size), func(ctx context.Context) (Image, error) {
		img := Image{ContentType: t.ContentType, Bytes: t.Bytes, Width: t.Side, Height: t.Side}
		if t.Side == size {
			return img, nil
		}
		return once(ctx, &g.flight, fmt.Sprintf("%s %s %d", id, t.Of, size), func(ctx context.Context) (Image, error) {
			return g.decoder.Resize(ctx, img, size)
		})
	}}
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
