package picture

import (
	"bytes"
	"encoding/binary"
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
				if tiff, ok := bytes.CutPrefix(raw[2:size], []byte(exifHeader)); ok {
					facts.orientation = exifOrientation(tiff)
				}
			}
		}
		raw = raw[size:]
	}
}
