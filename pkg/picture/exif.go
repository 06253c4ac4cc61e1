package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
)

// exifHeader stands before EXIF in a JPEG, and in other pictures of programs that copy it from one.
const exifHeader = "Exif\x00\x00"

// orientationOf is how a picture must be turned: 1…8 (EXIF tag 0x0112), or 0 if it does not say. Browsers turn all
// three formats.
func orientationOf(kind string, raw []byte) int {
	switch kind {
	case JPEG:
		return scanJPEG(raw).orientation
	case PNG: // after the signature: length, type, data, checksum (PNG, third edition §5.3)
		return exifOrientation(chunkOf(raw[8:], "eXIf", func(head []byte) (string, int) {
			return string(head[4:8]), int(binary.BigEndian.Uint32(head)) + 4
		}, 4))
	case webP: // after RIFF, size and WEBP: type, length, data, padded to an even length (RFC 9649 §2.3)
		return exifOrientation(chunkOf(raw[12:], "EXIF", func(head []byte) (string, int) {
			size := int(binary.LittleEndian.Uint32(head[4:]))
			return string(head[:4]), size + size%2
		}, 0))
	}
	return 0
}

// chunkOf is the data of the first chunk of a type, without the last bytes of it; nil if there is none. read reads the
// type, and how many bytes follow, from the eight bytes at a chunk's beginning.
func chunkOf(raw []byte, kind string, read func(head []byte) (of string, size int), last int) []byte {
	for len(raw) >= 8 {
		of, size := read(raw)
		if raw = raw[8:]; size < last || size > len(raw) {
			return nil
		}
		if of == kind {
			return raw[:size-last]
		}
		raw = raw[size:]
	}
	return nil
}

// exifOrientation reads the tag from the first directory of EXIF (TIFF 6.0 §2); 0 if there is none.
func exifOrientation(tiff []byte) int {
	tiff = bytes.TrimPrefix(tiff, []byte(exifHeader))
	if len(tiff) < 8 {
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
