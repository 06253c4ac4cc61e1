package picture

import (
	"context"
	"image"
	"image/draw"

	scale "golang.org/x/image/draw"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// The sides of squares that are shown, in pixels.
const (
	MinSquare = 16
	MaxSquare = 512
)

// Square is cut from the middle of a picture: a JPEG for a JPEG, otherwise a PNG; for a GIF, from its first frame. It
// is stored beside the picture, so that the picture is not decoded again to show it in a size. It is the best source
// for all sizes up to its Level that are larger than the next lower level.
type Square struct {
	Level int
	Image // Level pixels wide; less in the uppermost square of a smaller picture
}

// levels are the sides of the stored squares.
var levels = []int{32, 64, 128, 256, MaxSquare}

// Levels are the levels that a square of size pixels can be made from, the best first: the least that is not smaller,
// then the smaller ones, because a small picture has no others.
func Levels(size int) []int {
	i := 0
	for levels[i] < size {
		i++
	}
	order := []int{levels[i]}
	for i--; i >= 0; i-- {
		order = append(order, levels[i])
	}
	return order
}

// AllLevels are the levels that a picture may have.
func AllLevels() []int { return levels }

// Resize makes a square of size pixels from another of at most MaxSquare. The error is apperr.Unavailable if too many
// others are being scaled.
func (d *Decoder) Resize(ctx context.Context, img Image, size int) (Image, error) {
	if size < MinSquare || size > MaxSquare {
		return Image{}, apperr.Invalid("size", "must lie in %d…%d", MinSquare, MaxSquare)
	}
	var square Image
	var err error
	if busy := d.squares.Do(ctx, 1, func() {
		d.decoded.WithLabelValues("square").Inc()
		var picture image.Image
		if picture, err = decode(img.ContentType, img.Bytes); err == nil {
			square = fit(squareType(img.ContentType), scaled(picture, picture.Bounds(), size), MaxBytes)
		}
	}); busy != nil {
		return Image{}, busy
	}
	return square, err
}

// squaresOf makes the squares from the largest down, each from the one before.
func squaresOf(contentType string, picture image.Image) []Square {
	cut := middle(picture.Bounds())
	top := 0
	for top < len(levels)-1 && levels[top] < cut.Dx() {
		top++
	}
	for cut.Dx() >= 2*MaxSquare { // this is cheap; the general kernel reads every pixel many times
		picture = scaled(picture, cut, cut.Dx()/2)
		cut = picture.Bounds()
	}
	square := scaled(picture, cut, min(cut.Dx(), MaxSquare))
	squares := []Square{{levels[top], fit(squareType(contentType), square, MaxBytes)}}
	for top--; top >= 0; top-- {
		square = scaled(square, square.Bounds(), levels[top])
		squares = append(squares, Square{levels[top], fit(squareType(contentType), square, MaxBytes)})
	}
	return squares
}

func squareType(contentType string) string {
	if contentType == JPEG {
		return JPEG
	}
	return PNG
}

func scaled(picture image.Image, cut image.Rectangle, size int) *image.RGBA {
	square := image.NewRGBA(image.Rect(0, 0, size, size))
	switch cut.Dx() {
	case size:
		draw.Draw(square, square.Bounds(), picture, cut.Min, draw.Src)
	case 2 * size, 2*size + 1: // the mean of two by two pixels
		scale.ApproxBiLinear.Scale(square, square.Bounds(), picture, cut, draw.Src, nil)
	default:
		scale.CatmullRom.Scale(square, square.Bounds(), picture, cut, draw.Src, nil)
	}
	return square
}

// middle is the largest square in the middle of r.
func middle(r image.Rectangle) image.Rectangle {
	side := min(r.Dx(), r.Dy())
	at := image.Pt(r.Min.X+(r.Dx()-side)/2, r.Min.Y+(r.Dy()-side)/2)
	return image.Rectangle{at, at.Add(image.Pt(side, side))}
}
