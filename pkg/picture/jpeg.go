package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
)

// jpegFacts are the properties that the pixels do not have.
type jpegFacts struct {
	scans       int
	orientation int // 1…8 (EXIF tag 0x0112), 0 if absent; both 0 and 1 are upright
}

// scanJPEG goes through the markers (ITU T.81 annex B) without decompressing anything.
func scanJPEG(raw []byte) jpegFacts {
	const (
		stuffed, rst0, rst7, soi, eoi, sos, app1 = 0x00, 0xd0, 0xd7, 0xd8, 0xd9, 0xda, 0xe1
	)
	var facts jpegFacts
	for {
		at := bytes.IndexByte(raw, 0xff)
		if at < 0 || at+1 >= len(raw) {
			return facts
		}
		marker := raw[at+1]
		if marker == 0xff { // filler
			raw = raw[at+1:]
			continue
		}
		raw = raw[at+2:]
		switch {
		case marker == stuffed, marker >= rst0 && marker <= soi:
			continue
		case marker == eoi:
			return facts
		}
		if len(raw) < 2 {
			return facts
		}
		size := int(binary.BigEndian.Uint16(raw))
		if size < 2 || size > len(raw) {
			return facts
		}
		switch marker {
		case sos:
			facts.scans++
		case app1:
			if facts.orientation == 0 {
				facts.orientation = exifOrientation(raw[2:size])
			}
		}
		raw = raw[size:]
	}
}

// exifOrientation reads the tag from the first directory of an EXIF segment (TIFF 6.0 §2); 0 if there is none.
func exifOrientation(segment []byte) int {
	tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(tiff[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			return 0
		}
		const orientation, short = 0x0112, 3
		if order.Uint16(entries) == orientation && order.Uint16(entries[2:]) == short {
			if value := int(order.Uint16(entries[8:])); value <= 8 {
				return value
			}
			return 0
		}
		entries = entries[12:]
	}
	return 0
}

// upright turns and mirrors a picture according to its orientation.
func upright(picture image.Image, orientation int) image.Image {
	if orientation <= 1 {
		return picture
	}
	bounds := picture.Bounds()
	from := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	draw.Draw(from, from.Bounds(), picture, bounds.Min, draw.Src)
	right, bottom := bounds.Dx()-1, bounds.Dy()-1

	size := bounds.Size()
	if orientation >= 5 {
		size.X, size.Y = size.Y, size.X
	}
	to := image.NewRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			var p image.Point // where the pixel comes from
			switch orientation {
			case 2:
				p = image.Pt(right-x, y)
			case 3:
				p = image.Pt(right-x, bottom-y)
			case 4:
				p = image.Pt(x, bottom-y)
			case 5:
				p = image.Pt(y, x)
			case 6:
				p = image.Pt(y, bottom-x)
			case 7:
				p = image.Pt(right-y, bottom-x)
			case 8:
				p = image.Pt(right-y, x)
			}
			copy(to.Pix[to.PixOffset(x, y):][:4], from.Pix[from.PixOffset(p.X, p.Y):])
		}
	}
	return to
}
