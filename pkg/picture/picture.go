// Package picture makes uploaded pictures safe to store and to show: it decodes them within limits of memory and time,
// and encodes them again, so that nothing remains but the picture itself.
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

// Limits of an uploaded picture.
const (
	MaxBytes = 2 << 20
	MaxSide  = 4096 // in pixels

	maxFrames      = 500      // of a GIF
	maxFramePixels = 64 << 20 // of all frames of a GIF together; a byte each
	maxScans       = 100      // of a JPEG: each scan goes over all pixels, however little data it has
)

// The content types of stored pictures.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"

	webP = "image/webp" // accepted, but stored as PNG: there is no encoder for it
)

// Image is a picture as it is stored and shown.
type Image struct {
	ContentType string // PNG, JPEG or GIF
	Bytes       []byte // at most MaxBytes
	ETag        string // strong, for the bytes, without its quotes (RFC 9110 §8.8.3)
	Width       int    // pixels
	Height      int
}

func newImage(contentType string, raw []byte, size image.Point) Image {
	sum := sha256.Sum256(raw)
	return Image{contentType, raw, base64.RawURLEncoding.EncodeToString(sum[:16]), size.X, size.Y}
}

// Decoder decodes several pictures at the same time, as long as they have together no more pixels than one of the
// largest allowed size. That takes about 400 MB in the worst case (a progressive JPEG that must be turned), for all
// Decoders of a Room together. Squares, which are small, do not wait behind pictures. Tenants take turns. It is safe
// for concurrent use.
type Decoder struct {
	gate    *fair.Semaphore
	squares *fair.Semaphore
	decoded *prometheus.CounterVec
}

// Room is what the Decoders of a process share: its memory and its processors.
type Room struct{ decoding, scaling *fair.Semaphore }

// NewRoom makes the room of a process.
func NewRoom() *Room {
	return &Room{
		decoding: fair.NewSemaphore("pictures are being decoded", MaxSide*MaxSide, 64),
		scaling:  fair.NewSemaphore("pictures are being scaled", int64(runtime.GOMAXPROCS(0)), 512),
	}
}

// NewDecoder makes a Decoder. It counts what it decodes.
func NewDecoder(room *Room, metrics prometheus.Registerer) *Decoder {
	return &Decoder{
		gate: room.decoding, squares: room.scaling,
		decoded: telemetry.Counters(metrics, prometheus.CounterOpts{
			Name: "idp_pictures_decoded_total",
			Help: "Pictures decoded: as uploaded, or a kept square for another size.",
		}, []string{"of"}, []string{"upload"}, []string{"square"}),
	}
}

// Decode checks a PNG, JPEG, WebP or GIF of up to MaxBytes and MaxSide and returns it encoded again, with its squares:
// a JPEG as JPEG of quality 90; a GIF as GIF with its animation; the others as PNG; all upright whatever their EXIF
// orientation was. If the result would be larger than MaxBytes, it becomes a JPEG if no pixel is transparent, otherwise
// its sides are halved until it fits; a GIF is first reduced to its first frame. Colour profiles and all other metadata
// are lost. The error is apperr.TooLarge for too many bytes, apperr.InvalidParameters at body.file for anything that is
// not such a picture, and apperr.Unavailable if too many others are being decoded.
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

// reencode returns the picture as it is stored, and decoded.
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

// kindOf uses only the first bytes: the client's content type and file name are not trusted.
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

// minPixels is the least number of pixels that a picture counts as, for the processor time that any picture takes.
const minPixels = 1 << 18

// measure returns how many pixels there are to decode, and refuses too many, without decoding any.
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
			return 0, apperr.Invalid("file", "must have at most %d frames of together %d pixels", maxFrames,
				maxFramePixels)
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
		err = fmt.Errorf("not one of the accepted formats")
	}
	if err == nil && (config.Width < 1 || config.Height < 1) {
		err = fmt.Errorf("no pixels")
	}
	return config, err
}

// decode decodes a measured picture; of a GIF, the first frame. It is turned upright.
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
	return upright(picture, orientationOf(kind, raw)), nil
}
