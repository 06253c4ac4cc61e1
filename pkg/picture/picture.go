// Package picture makes pictures that strangers upload safe to keep and to show: it decodes them within bounds of memory and time,
// and encodes them anew, so that nothing but the picture itself is left.
package picture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/image/webp"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// What a picture may have.
const (
	MaxBytes = 2 << 20
	MaxSide  = 4096 // pixels

	maxFrames      = 500      // of a GIF
	maxFramePixels = 64 << 20 // of all frames of a GIF together, a byte each
	maxScans       = 100      // of a JPEG: each goes over all pixels, whatever little data it has
)

// The content types that a kept picture can have.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"

	webP = "image/webp" // comes in, but is kept as PNG: there is no encoder for it
)

// Image is a picture as it is kept and shown.
type Image struct {
	ContentType string // PNG, JPEG or GIF
	Bytes       []byte // at most MaxBytes
	ETag        string // of the bytes, strong, without its quotes (RFC 9110 §8.8.3)
	Width       int    // pixels
	Height      int
}

func newImage(contentType string, raw []byte, size image.Point) Image {
	sum := sha256.Sum256(raw)
	return Image{contentType, raw, base64.RawURLEncoding.EncodeToString(sum[:16]), size.X, size.Y}
}

// Decoder decodes as many pictures at a time as have the pixels of one of the largest: some 400 MB in the worst case (a progressive
// JPEG that must be turned), of all Decoders of a process together. Squares, which are small, do not wait behind these.
// Tenants take turns. It is safe for concurrent use.
type Decoder struct {
	gate    *fair.Gate
	squares *fair.Gate
	decoded *prometheus.CounterVec
}

// The room for all services of a process: its memory and processors are theirs together.
var decoding, scaling = newGates()

func newGates() (decoding, scaling *fair.Gate) {
	return fair.NewGate("pictures are being decoded", MaxSide*MaxSide, 64),
		fair.NewGate("pictures are being scaled", int64(runtime.GOMAXPROCS(0)), 512)
}

// NewDecoder makes a Decoder, which counts what it decodes.
func NewDecoder(metrics prometheus.Registerer) *Decoder {
	return newDecoder(metrics, decoding, scaling)
}

func newDecoder(metrics prometheus.Registerer, decoding, scaling *fair.Gate) *Decoder {
	return &Decoder{
		gate: decoding, squares: scaling,
		decoded: telemetry.Register(metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idp_pictures_decoded_total", Help: "Pictures decoded: as uploaded, as kept (once, to make its squares), or a kept square for another size.",
		}, []string{"of"})),
	}
}

// Decode checks a PNG, JPEG, WebP or GIF of up to MaxBytes and MaxSide and returns it encoded anew, with its squares:
// JPEG as JPEG of quality 90, upright whatever its EXIF orientation was, GIF as GIF with its animation, the others as
// PNG. What would be larger than MaxBytes then becomes a JPEG if nothing of it is transparent, else smaller by half
// until it fits; a GIF is reduced to its first frame for that. Colour profiles are lost with all other metadata.
// apperr.TooLarge for too many bytes; apperr.InvalidParameters at body.file for anything that is no such picture;
// apperr.Unavailable if too many others are being decoded.
func (d *Decoder) Decode(ctx context.Context, raw []byte) (Image, []Square, error) {
	if len(raw) > MaxBytes {
		return Image{}, nil, apperr.New(apperr.TooLarge, "a picture may have at most %d bytes", MaxBytes)
	}
	kind := kindOf(raw)
	pixels, err := measure(kind, raw)
	if err != nil {
		return Image{}, nil, err
	}
	var img Image
	var squares []Square
	if busy := d.gate.Do(ctx, pixels, func() {
		d.decoded.WithLabelValues("upload").Inc()
		var picture image.Image
		if img, picture, err = reencode(kind, raw, MaxBytes); err == nil {
			squares = squaresOf(img.ContentType, picture)
		}
	}); busy != nil {
		return Image{}, nil, busy
	}
	return img, squares, err
}

// reencode returns the picture both as it is kept and decoded.
func reencode(kind string, raw []byte, limit int) (Image, image.Image, error) {
	picture, err := decode(kind, raw)
	if err != nil {
		return Image{}, nil, err
	}
	switch kind {
	case GIF:
		if img, ok, err := reencodeGIF(raw, limit); ok || err != nil {
			return img, picture, err
		}
	case JPEG:
		return fit(JPEG, picture, limit), picture, nil
	}
	return fit(PNG, picture, limit), picture, nil
}

// kindOf goes by the first bytes alone: what the client says it is, and how the file is named, is not to be believed.
func kindOf(raw []byte) string {
	starts := func(magic string) bool { return bytes.HasPrefix(raw, []byte(magic)) }
	switch {
	case starts("\x89PNG\r\n\x1a\n"):
		return PNG
	case starts("\xff\xd8\xff"):
		return JPEG
	case starts("GIF87a"), starts("GIF89a"):
		return GIF
	case starts("RIFF") && len(raw) >= 12 && string(raw[8:12]) == "WEBP":
		return webP
	}
	return ""
}

var errUnreadable = apperr.Invalid("file", "must be a whole PNG, JPEG, WebP (not animated) or GIF")

// minPixels is what a small picture counts as, for its processor time.
const minPixels = 1 << 18

// measure finds out how many pixels there are to decode, and refuses too many, without decoding any.
func measure(kind string, raw []byte) (pixels int64, err error) {
	config, err := decodeConfig(kind, bytes.NewReader(raw))
	if err != nil {
		return 0, errUnreadable.Because(err)
	}
	if config.Width > MaxSide || config.Height > MaxSide {
		return 0, apperr.Invalid("file", "must have at most %d×%d pixels", MaxSide, MaxSide)
	}
	pixels = max(int64(config.Width)*int64(config.Height), minPixels)
	switch kind {
	case GIF:
		frames, inFrames, ok := scanGIF(raw)
		if !ok {
			return 0, errUnreadable
		}
		if frames > maxFrames || inFrames > maxFramePixels {
			return 0, apperr.Invalid("file", "must have at most %d frames of together %d pixels", maxFrames, maxFramePixels)
		}
		pixels = max(pixels, int64(inFrames))
	case JPEG:
		if scanJPEG(raw).scans > maxScans {
			return 0, apperr.Invalid("file", "must have at most %d scans", maxScans)
		}
	}
	return pixels, nil
}

func decodeConfig(kind string, r io.Reader) (config image.Config, err error) {
	switch kind {
	case PNG:
		config, err = png.DecodeConfig(r)
	case JPEG:
		config, err = jpeg.DecodeConfig(r)
	case GIF:
		config, err = gif.DecodeConfig(r)
	case webP:
		config, err = webp.DecodeConfig(r)
	default:
		err = fmt.Errorf("not a kind of picture that is taken")
	}
	if err == nil && (config.Width < 1 || config.Height < 1) {
		err = fmt.Errorf("no pixels")
	}
	return config, err
}

// decode reads a measured picture, the first frame of a GIF. A JPEG is turned upright.
func decode(kind string, raw []byte) (picture image.Image, err error) {
	r := bytes.NewReader(raw)
	switch kind {
	case PNG:
		picture, err = png.Decode(r)
	case JPEG:
		picture, err = jpeg.Decode(r)
	case GIF:
		picture, err = decodeFirstFrame(r)
	case webP:
		picture, err = webp.Decode(r)
	}
	if err != nil {
		return nil, errUnreadable.Because(err)
	}
	if kind == JPEG {
		picture = upright(picture, scanJPEG(raw).orientation)
	}
	return picture, nil
}
