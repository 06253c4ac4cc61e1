package picture

import (
	"context"
	"image"
	"image/draw"

	scale "golang.org/x/image/draw"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// The sides of a square that Resize makes, in pixels.
const (
	MinSquare = 16
	MaxSquare = 512
)

// Resize makes a square of size pixels from the middle of a picture that Decode returned (its ContentType and Bytes are enough): a
// JPEG of a JPEG, else a PNG; of a GIF, of its first frame. apperr.InvalidParameters at query.size; apperr.Unavailable.
func (d *Decoder) Resize(ctx context.Context, img Image, size int) (Image, error) {
	if size < MinSquare || size > MaxSquare {
		return Image{}, apperr.Invalid("query.size", "must lie in %d…%d", MinSquare, MaxSquare)
	}
	pixels, err := measure(img.ContentType, img.Bytes)
	if err != nil {
		return Image{}, err
	}
	var square Image
	if busy := d.gate.Do(ctx, pixels, func() { square, err = resize(img, size) }); busy != nil {
		return Image{}, busy
	}
	return square, err
}

func resize(img Image, size int) (Image, error) {
	picture, err := decode(img.ContentType, img.Bytes)
	if err != nil {
		return Image{}, err
	}
	square := image.NewRGBA(image.Rect(0, 0, size, size))
	scale.CatmullRom.Scale(square, square.Bounds(), picture, middle(picture.Bounds()), draw.Src, nil)
	if img.ContentType == JPEG {
		return fit(JPEG, square, MaxBytes), nil
	}
	return fit(PNG, square, MaxBytes), nil
}

// middle is the largest square in the middle of r.
func middle(r image.Rectangle) image.Rectangle {
	side := min(r.Dx(), r.Dy())
	at := image.Pt(r.Min.X+(r.Dx()-side)/2, r.Min.Y+(r.Dy()-side)/2)
	return image.Rectangle{at, at.Add(image.Pt(side, side))}
}
