package picture

import (
	"bytes"
	"errors"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"

	scale "golang.org/x/image/draw"
)

const jpegQuality = 90

// fit encodes a picture in the wanted way, or in the closest one that takes no more than limit bytes.
func fit(contentType string, picture image.Image, limit int) Image {
	for {
		plain := plainOf(contentType, picture)
		if raw, ok := encode(contentType, plain, limit); ok {
			return newImage(contentType, raw, plain.Bounds().Size())
		}
		if opaque, ok := plain.(interface{ Opaque() bool }); ok && opaque.Opaque() && contentType != JPEG {
			contentType = JPEG
			continue
		}
		picture = half(plain)
	}
}

// encode gives up at the limit. A picture of one pixel always fits, so fit ends.
func encode(contentType string, picture image.Image, limit int) ([]byte, bool) {
	out := limited{limit: limit}
	var err error
	if contentType == JPEG {
		err = jpeg.Encode(&out, picture, &jpeg.Options{Quality: jpegQuality})
	} else {
		err = png.Encode(&out, picture)
	}
	return out.Bytes(), err == nil
}

var errFull = errors.New("over the limit")

// limited is a buffer that accepts a limited number of bytes.
type limited struct {
	bytes.Buffer
	limit int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.limit {
		return 0, errFull
	}
	return l.Buffer.Write(p)
}

// plainOf converts to eight bits a channel, in a form that the encoder handles fast.
func plainOf(contentType string, picture image.Image) image.Image {
	bounds := picture.Bounds()
	var plain draw.Image
	switch picture.(type) {
	case *image.Gray, *image.RGBA, *image.NRGBA, *image.Paletted:
		return picture
	case *image.YCbCr:
		if contentType == JPEG {
			return picture
		}
		plain = image.NewRGBA(bounds)
	case *image.Gray16:
		plain = image.NewGray(bounds)
	case *image.NRGBA64, *image.NYCbCrA:
		plain = image.NewNRGBA(bounds)
	default:
		plain = image.NewRGBA(bounds)
	}
	draw.Draw(plain, bounds, picture, bounds.Min, draw.Src)
	return plain
}

func half(picture image.Image) image.Image {
	size := picture.Bounds().Size()
	smaller := image.NewRGBA(image.Rect(0, 0, max(size.X/2, 1), max(size.Y/2, 1)))
	scale.ApproxBiLinear.Scale(smaller, smaller.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return smaller
}
