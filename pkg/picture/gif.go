package picture

import (
	"bytes"
	"image"
	"image/draw"
	"image/gif"
	"io"
)

// reencodeGIF keeps the animation. ok is false if that would take more than limit bytes.
func reencodeGIF(raw []byte, limit int) (img Image, ok bool, err error) {
	all, err := gif.DecodeAll(bytes.NewReader(raw))
	if err != nil {
		return Image{}, false, errUnreadable.Because(err)
	}
	out := limited{limit: limit}
	if gif.EncodeAll(&out, all) != nil {
		return Image{}, false, nil
	}
	return newImage(GIF, out.Bytes(), image.Pt(all.Config.Width, all.Config.Height)), true, nil
}

// decodeFirstFrame puts the frame in its place: it may be smaller than the picture.
func decodeFirstFrame(r io.ReadSeeker) (image.Image, error) {
	config, err := gif.DecodeConfig(r)
	if err != nil {
		return nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	frame, err := gif.Decode(r)
	if err != nil {
		return nil, err
	}
	whole := image.Rect(0, 0, config.Width, config.Height)
	if frame.Bounds() == whole {
		return frame, nil
	}
	canvas := image.NewNRGBA(whole)
	draw.Draw(canvas, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
	return canvas, nil
}

// scanGIF counts the frames and all their pixels without decompressing any (GIF89a §§18-27). It is strict enough never
// to miss a frame that the decoder would find in what scanGIF skips.
func scanGIF(raw []byte) (frames, pixels int, ok bool) {
	s := gifScanner{rest: raw}
	s.skip(6) // signature
	screen := s.take(7)
	s.skipColours(screen[4])
	for !s.failed {
		switch s.take(1)[0] {
		case ',':
			frame := s.take(9)
			width, height := int(frame[4])|int(frame[5])<<8, int(frame[6])|int(frame[7])<<8
			frames, pixels = frames+1, pixels+width*height
			s.skipColours(frame[8])
			s.skip(1) // code size
			s.skipBlocks()
		case '!':
			s.skipExtension()
		case ';':
			return frames, pixels, !s.failed && frames > 0
		default:
			s.failed = true
		}
	}
	return 0, 0, false
}

// gifScanner fails permanently at the end of the data.
type gifScanner struct {
	rest   []byte
	failed bool
}

var nothing [16]byte

// take returns the next n ≤ 16 bytes, zeros after a failure.
func (s *gifScanner) take(n int) []byte {
	if len(s.rest) < n {
		s.rest, s.failed = nil, true
		return nothing[:n]
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

func (s *gifScanner) skip(n int) {
	if len(s.rest) < n {
		s.rest, s.failed = nil, true
		return
	}
	s.rest = s.rest[n:]
}

func (s *gifScanner) skipColours(flags byte) {
	if flags&0x80 != 0 {
		s.skip(3 << (flags&7 + 1))
	}
}

func (s *gifScanner) skipBlocks() {
	for !s.failed {
		n := int(s.take(1)[0])
		if n == 0 {
			return
		}
		s.skip(n)
	}
}

func (s *gifScanner) skipExtension() {
	label, first := s.take(1)[0], byte(0)
	if len(s.rest) > 0 {
		first = s.rest[0]
	}
	// The first block must have the size that the standard prescribes; the decoder relies on some of these sizes
	// without checking.
	switch {
	case label == 0x01 && first == 12, label == 0xf9 && first == 4, label == 0xff && first > 0, label == 0xfe:
		s.skipBlocks()
	default:
		s.failed = true
	}
}
