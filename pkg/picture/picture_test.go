package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var (
	red   = color.NRGBA{0xff, 0, 0, 0xff}
	green = color.NRGBA{0, 0xff, 0, 0xff}
	blue  = color.NRGBA{0, 0, 0xff, 0xff}
	white = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	clear = color.NRGBA{}
)

// The smallest WebP of each kind (from Google's detection of WebP support in browsers).
var webPs = map[string]string{
	"lossy":    "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
	"lossless": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
	"alpha":    "UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA==",
	"animated": "UklGRlIAAABXRUJQVlA4WAoAAAASAAAAAAAAAAAAQU5JTQYAAAD/////AABBTk1GJgAAAAAAAAAAAAAAAAAAAGQAAABWUDhMDQAAAC8AAAAQBxAREYiI/gcA",
}

func webPOf(t testing.TB, kind string) []byte {
	raw, err := base64.StdEncoding.DecodeString(webPs[kind])
	require.NoError(t, err)
	return raw
}

// quarters has a different colour in each quarter: red and green above blue and white.
func quarters(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetNRGBA(x, y, [2][2]color.NRGBA{{red, green}, {blue, white}}[2*y/height][2*x/width])
		}
	}
	return img
}

// noise is a picture that no encoder can make small.
func noise(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	_, _ = rand.NewChaCha8([32]byte{}).Read(img.Pix)
	return img
}

func opaqueNoise(width, height int) *image.RGBA {
	img := image.RGBA(*noise(width, height))
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 0xff
	}
	return &img
}

func pngOf(t testing.TB, img image.Image) []byte {
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, img))
	return out.Bytes()
}

func jpegOf(t testing.TB, img image.Image, quality int) []byte {
	var out bytes.Buffer
	require.NoError(t, jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}))
	return out.Bytes()
}

func gifOf(t testing.TB, g *gif.GIF) []byte {
	var out bytes.Buffer
	require.NoError(t, gif.EncodeAll(&out, g))
	return out.Bytes()
}

func animation(frames int) *gif.GIF {
	g := &gif.GIF{LoopCount: 3, Config: image.Config{Width: 8, Height: 6}}
	for i := range frames {
		frame := image.NewPaletted(image.Rect(i%3, 1, i%3+4, 5), color.Palette{clear, red, green, blue})
		for j := range frame.Pix {
			frame.Pix[j] = byte(1 + i%3)
		}
		g.Image, g.Delay, g.Disposal = append(g.Image, frame), append(g.Delay, 10+i),
			append(g.Disposal, gif.DisposalBackground)
	}
	return g
}

// exifOf has an orientation, a place and a name.
func exifOf(order binary.AppendByteOrder, orientation uint16) string {
	head := "II*\x00"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		head = "MM\x00*"
	}
	tiff := order.AppendUint32([]byte(head), 8)
	tiff = order.AppendUint16(tiff, 2)
	for _, entry := range [][4]uint16{{0x010f, 2, 0, 0x4141}, {0x0112, 3, orientation, 0}} {
		tiff = order.AppendUint16(order.AppendUint16(tiff, entry[0]), entry[1])
		tiff = order.AppendUint32(tiff, 1)
		tiff = order.AppendUint16(order.AppendUint16(tiff, entry[2]), entry[3])
	}
	return string(tiff) + "GPS 39.9042N 116.4074E of Li Wei"
}

// withEXIF puts EXIF after the start of a JPEG.
func withEXIF(raw []byte, order binary.AppendByteOrder, orientation uint16) []byte {
	body := "Exif\x00\x00" + exifOf(order, orientation)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2))
	return bytes.Join([][]byte{raw[:2], segment, []byte(body), raw[2:]}, nil)
}

func chunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func mustDecode(t testing.TB, raw []byte) (Image, image.Image) {
	t.Helper()
	img, _, err := alone().Decode(context.Background(), raw)
	require.NoError(t, err)
	back, format, err := image.Decode(bytes.NewReader(img.Bytes))
	require.NoError(t, err)
	require.Equal(t, img.ContentType, "image/"+format)
	config, err := decodeConfig(img.ContentType, bytes.NewReader(img.Bytes))
	require.NoError(t, err)
	require.Equal(t, image.Pt(img.Width, img.Height), image.Pt(config.Width, config.Height))
	require.LessOrEqual(t, len(img.Bytes), MaxBytes)
	require.Regexp(t, `^[A-Za-z0-9_-]{22}$`, img.ETag)
	return img, back
}

func requireColour(t testing.TB, want color.NRGBA, img image.Image, x, y int) {
	t.Helper()
	got := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
	for _, d := range []int{int(want.R) - int(got.R), int(want.G) - int(got.G), int(want.B) - int(got.B),
		int(want.A) - int(got.A)} {
		require.InDelta(t, 0, d, 12, "want %v, got %v", want, got)
	}
}

func requireInvalid(t testing.TB, raw []byte, name string) {
	t.Helper()
	img, _, err := alone().Decode(context.Background(), raw)
	require.Error(t, err, name)
	e, ok := err.(*apperr.Error)
	require.True(t, ok, name)
	require.Equal(t, apperr.InvalidParameters, e.Kind, name)
	require.Equal(t, "file", e.Faults[0].Location, name)
	require.Zero(t, img, name)
}

func TestEachKindIsKept(t *testing.T) {
	t.Parallel()
	small := quarters(32, 16)
	sixteen := image.NewNRGBA64(small.Bounds())
	gray := image.NewGray16(image.Rect(0, 0, 4, 4))
	for i := range sixteen.Pix {
		sixteen.Pix[i] = 0x80
	}
	for name, test := range map[string]struct {
		raw  []byte
		want string
		size image.Point
	}{
		"PNG":           {pngOf(t, small), PNG, image.Pt(32, 16)},
		"PNG 16 bit":    {pngOf(t, sixteen), PNG, image.Pt(32, 16)},
		"PNG gray":      {pngOf(t, gray), PNG, image.Pt(4, 4)},
		"PNG 1×1":       {pngOf(t, quarters(1, 1)), PNG, image.Pt(1, 1)},
		"JPEG":          {jpegOf(t, small, 95), JPEG, image.Pt(32, 16)},
		"JPEG gray":     {jpegOf(t, image.NewGray(small.Rect), 95), JPEG, image.Pt(32, 16)},
		"GIF":           {gifOf(t, animation(1)), GIF, image.Pt(8, 6)},
		"WebP lossy":    {webPOf(t, "lossy"), PNG, image.Pt(1, 1)},
		"WebP lossless": {webPOf(t, "lossless"), PNG, image.Pt(1, 1)},
		"WebP alpha":    {webPOf(t, "alpha"), PNG, image.Pt(1, 1)},
	} {
		img, _ := mustDecode(t, test.raw)
		require.Equal(t, test.want, img.ContentType, name)
		require.Equal(t, test.size, image.Pt(img.Width, img.Height), name)
	}

	_, back := mustDecode(t, pngOf(t, small))
	for y := range 16 {
		for x := range 32 {
			require.Equal(t, small.NRGBAAt(x, y), color.NRGBAModel.Convert(back.At(x, y)), "PNG loses nothing")
		}
	}
	a, _ := mustDecode(t, pngOf(t, small))
	b, _ := mustDecode(t, pngOf(t, small))
	c, _ := mustDecode(t, pngOf(t, quarters(16, 32)))
	require.Equal(t, a.ETag, b.ETag)
	require.NotEqual(t, a.ETag, c.ETag)
}

func TestTransparencyIsKept(t *testing.T) {
	t.Parallel()
	img := quarters(16, 16)
	img.SetNRGBA(3, 3, color.NRGBA{0x11, 0x22, 0x33, 0x44})
	_, back := mustDecode(t, pngOf(t, img))
	require.Equal(t, img.NRGBAAt(3, 3), color.NRGBAModel.Convert(back.At(3, 3)))
}

func TestAnimationIsKept(t *testing.T) {
	t.Parallel()
	sent := animation(5)
	img, _ := mustDecode(t, gifOf(t, sent))
	back, err := gif.DecodeAll(bytes.NewReader(img.Bytes))
	require.NoError(t, err)
	require.Equal(t, sent.Delay, back.Delay)
	require.Equal(t, sent.Disposal, back.Disposal)
	require.Equal(t, sent.LoopCount, back.LoopCount)
	for i := range sent.Image {
		require.Equal(t, sent.Image[i].Rect, back.Image[i].Rect)
		for j := range sent.Image[i].Pix {
			at := image.Pt(sent.Image[i].Rect.Min.X+j%4, sent.Image[i].Rect.Min.Y+j/4)
			require.Equal(t, color.RGBAModel.Convert(sent.Image[i].At(at.X, at.Y)),
				color.RGBAModel.Convert(back.Image[i].At(at.X, at.Y)))
		}
	}
}

func TestEXIFOrientation(t *testing.T) {
	t.Parallel()
	// The corners, left to right and top to bottom, that EXIF prescribes for the picture red, green / blue, white.
	corners := [9][4]color.NRGBA{
		0: {red, green, blue, white}, // absent
		1: {red, green, blue, white},
		2: {green, red, white, blue},
		3: {white, blue, green, red},
		4: {blue, white, red, green},
		5: {red, blue, green, white},
		6: {blue, red, white, green},
		7: {white, green, blue, red},
		8: {green, white, red, blue},
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for orientation, want := range corners {
			raw := withEXIF(jpegOf(t, quarters(64, 32), 95), order, uint16(orientation))
			require.Equal(t, orientation, scanJPEG(raw).orientation)
			img, back := mustDecode(t, raw)
			if orientation >= 5 {
				require.Equal(t, image.Pt(32, 64), back.Bounds().Size())
			} else {
				require.Equal(t, image.Pt(64, 32), back.Bounds().Size())
			}
			for i, colour := range want {
				requireColour(t, colour, back, (img.Width-1)*(i%2), (img.Height-1)*(i/2))
			}
			require.NotContains(t, string(img.Bytes), "Exif")
			require.NotContains(t, string(img.Bytes), "Li Wei")
		}
	}
	require.Zero(t, scanJPEG(withEXIF(jpegOf(t, quarters(8, 8), 95), binary.LittleEndian, 9)).orientation)
}

// PNG and WebP carry EXIF in chunks, with and without the header that it has in a JPEG.
func TestEXIFOrientationInChunks(t *testing.T) {
	t.Parallel()
	plainPNG, plainWebP := pngOf(t, quarters(64, 32)), webPOf(t, "lossless")
	for orientation := range uint16(10) {
		want := int(orientation) % 9 // 9 is none
		for _, header := range []string{"", "Exif\x00\x00"} {
			exif := []byte(header + exifOf(binary.BigEndian, orientation))
			raw := bytes.Join([][]byte{
				plainPNG[:33], chunk("tEXt", []byte("a\x00b")), chunk("eXIf", exif), plainPNG[33:],
			}, nil)
			require.Equal(t, want, orientationOf(PNG, raw))
			img, back := mustDecode(t, raw)
			require.Equal(t, want >= 5, back.Bounds().Dy() == 64)
			if want == 6 {
				requireColour(t, blue, back, 0, 0)
				requireColour(t, green, back, img.Width-1, img.Height-1)
			}
			size := binary.LittleEndian.AppendUint32(nil, uint32(len(exif)))
			raw = bytes.Join([][]byte{plainWebP, []byte("EXIF"), size, exif, make([]byte, len(exif)%2)}, nil)
			require.Equal(t, want, orientationOf(webP, raw))
			mustDecode(t, raw)
			for cut := range len(raw) - 12 { // no part of a file makes it read outside
				orientationOf(webP, raw[:12+cut])
			}
		}
	}
}

func TestMetadataAndPolyglotsAreStripped(t *testing.T) {
	t.Parallel()
	const secret = "<script>alert(1)</script> PK\x03\x04 Li Wei, 39.9042N 116.4074E"
	small := quarters(16, 16)
	plainPNG := pngOf(t, small)
	comment := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xfe}, uint16(len(secret)+2)), secret...)
	plainJPEG, plainGIF := jpegOf(t, small, 90), gifOf(t, animation(2))
	gifComment := append(append([]byte{'!', 0xfe, byte(len(secret))}, secret...), 0)
	xmp := append(append([]byte{'!', 0xff, 11}, "XMP DataXMP"...), append(append([]byte{byte(len(secret))}, secret...),
		0)...)
	for name, raw := range map[string][]byte{
		"PNG text": bytes.Join([][]byte{plainPNG[:33], chunk("tEXt", []byte("Comment\x00"+secret)), plainPNG[33:]},
			nil),
		"PNG EXIF":     bytes.Join([][]byte{plainPNG[:33], chunk("eXIf", []byte(secret)), plainPNG[33:]}, nil),
		"PNG trailer":  append(bytes.Clone(plainPNG), secret...),
		"JPEG comment": bytes.Join([][]byte{plainJPEG[:2], comment, plainJPEG[2:]}, nil),
		"JPEG trailer": append(bytes.Clone(plainJPEG), secret...),
		"GIF comment":  bytes.Join([][]byte{plainGIF[:len(plainGIF)-1], gifComment, plainGIF[len(plainGIF)-1:]}, nil),
		"GIF XMP":      bytes.Join([][]byte{plainGIF[:len(plainGIF)-1], xmp, plainGIF[len(plainGIF)-1:]}, nil),
		"GIF trailer":  append(bytes.Clone(plainGIF), secret...),
		"WebP trailer": append(webPOf(t, "lossless"), secret...),
		"JPEG with ICC": bytes.Join([][]byte{plainJPEG[:2], append([]byte{0xff, 0xe2}, comment[2:]...), plainJPEG[2:]},
			nil),
	} {
		img, _ := mustDecode(t, raw)
		for _, part := range []string{"script", "PK\x03", "Li Wei", "XMP"} {
			require.NotContains(t, string(img.Bytes), part, name)
		}
	}
}

func TestWhatIsNoPictureIsRefused(t *testing.T) {
	t.Parallel()
	whole := map[string][]byte{
		"PNG": pngOf(t, opaqueNoise(32, 32)), "JPEG": jpegOf(t, opaqueNoise(32, 32), 90), "GIF": gifOf(t, animation(3)),
		"WebP": webPOf(t, "lossless"),
	}
	for name, raw := range whole {
		for _, n := range []int{1, 4, 12, len(raw) / 2, len(raw) - 4} {
			requireInvalid(t, raw[:n], name+" cut off")
		}
	}
	wrong := bytes.Clone(whole["PNG"])
	copy(wrong, "GIF89a")
	broken := bytes.Clone(whole["PNG"])
	broken[len(broken)/2] ^= 0xff
	for name, raw := range map[string][]byte{
		"nothing":       nil,
		"text":          []byte("hello"),
		"HTML":          []byte("<!DOCTYPE html><script>alert(1)</script>"),
		"SVG":           []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`),
		"SVG with XML":  []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`),
		"BMP":           append([]byte("BM"), make([]byte, 100)...),
		"TIFF":          append([]byte("II*\x00"), make([]byte, 100)...),
		"PDF":           []byte("%PDF-1.7"),
		"wrong magic":   wrong,
		"bad checksum":  broken,
		"animated WebP": webPOf(t, "animated"),
		"WAV":           append([]byte("RIFF\x10\x00\x00\x00WAVE"), make([]byte, 100)...),
		"0×0":           header(0, 0),
		"leading space": append([]byte(" "), whole["PNG"]...),
		"no GIF frame":  []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"),
	} {
		requireInvalid(t, raw, name)
	}
}

// header is a PNG of that size without pixels.
func header(width, height uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(ihdr, 8, 6, 0, 0, 0))...)
}

func TestTooManyBytes(t *testing.T) {
	t.Parallel()
	raw := append(pngOf(t, quarters(4, 4)), make([]byte, MaxBytes)...)
	_, _, err := alone().Decode(t.Context(), raw)
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err))
	_, _, err = alone().Decode(t.Context(), raw[:MaxBytes])
	require.NoError(t, err)
}

// Small files that are enormous when decoded, or claim to be. The memory used shows that they are refused before
// decoding, so this test is not parallel.
func TestDecompressionBombs(t *testing.T) {
	largeGIF := gifOf(t, &gif.GIF{Image: []*image.Paletted{image.NewPaletted(image.Rect(0, 0, 64, 64),
		color.Palette{red, green})}, Delay: []int{0}})
	frame := largeGIF[13 : len(largeGIF)-1]
	many := append(append(bytes.Clone(largeGIF[:13]), bytes.Repeat(frame, maxFrames+1)...), ';')
	huge := bytes.Clone(largeGIF)
	binary.LittleEndian.PutUint16(huge[6:], 65535)
	binary.LittleEndian.PutUint16(huge[8:], 65535)
	wide := jpegOf(t, quarters(16, 16), 90)
	at := bytes.Index(wide, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(wide[at+5:], 65535)
	binary.BigEndian.PutUint16(wide[at+7:], 65535)
	small := jpegOf(t, quarters(16, 16), 90)
	scan := small[bytes.Index(small, []byte{0xff, 0xda}) : len(small)-2]
	scans := bytes.Join([][]byte{small[:len(small)-2], bytes.Repeat(scan, maxScans), {0xff, 0xd9}}, nil)
	vp8x := webPOf(t, "alpha")
	copy(vp8x[24:], "\xff\xff\x00\xff\xff\x00") // 65536×65536
	for name, raw := range map[string][]byte{
		"PNG 4097 wide":    header(MaxSide+1, 1),
		"PNG 4097 high":    header(1, MaxSide+1),
		"PNG 2^31":         header(1<<31-1, 1<<31-1),
		"JPEG":             wide,
		"JPEG scans":       scans,
		"GIF":              huge,
		"GIF of 501":       many,
		"GIF frame pixels": gifBomb(),
		"WebP":             vp8x,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := alone().Decode(t.Context(), raw)
		runtime.ReadMemStats(&after)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
	}
	for _, size := range []image.Point{{MaxSide, 2}, {2, MaxSide}} {
		img, _ := mustDecode(t, pngOf(t, quarters(size.X, size.Y)))
		require.Equal(t, size, image.Pt(img.Width, img.Height), "the largest one allowed")
	}
}

// gifBomb has 100 frames of 1 MB of pixels each, and next to no data.
func gifBomb() []byte {
	out := []byte("GIF89a\x00\x04\x00\x04\x80\x00\x00\x00\x00\x00\xff\xff\xff")
	for range 100 {
		out = append(out, ",\x00\x00\x00\x00\x00\x04\x00\x04\x00\x02\x01\x00\x00"...)
	}
	return append(out, ';')
}

// The walk over the blocks must not miss a frame that the decoder finds.
func TestGIFScanIsNotLedAstray(t *testing.T) {
	t.Parallel()
	good := gifOf(t, animation(2))
	body := good[:len(good)-1]
	for name, extension := range map[string]string{
		"text of another size":         "!\x01\xff" + strings.Repeat("x", 255) + "\x00",
		"application of no size":       "!\xff\x00",
		"control of another size":      "!\xf9\x05xxxxx\x00",
		"unknown extension":            "!\x42\x01x\x00",
		"unknown block":                "?",
		"extension without an end":     "!\xfe\xff",
		"nothing after the introducer": "!",
	} {
		_, _, ok := scanGIF(bytes.Join([][]byte{body, []byte(extension), {';'}}, nil))
		require.False(t, ok, name)
	}
	frames, pixels, ok := scanGIF(good)
	require.True(t, ok)
	require.Equal(t, 2, frames)
	require.Equal(t, 2*4*4, pixels)
}

func TestTooLargeWhenEncodedAnew(t *testing.T) {
	t.Parallel()
	const limit = 20_000
	animated := &gif.GIF{}
	for range 3 {
		frame := image.NewPaletted(image.Rect(0, 0, 100, 100), palette.Plan9)
		_, _ = rand.NewChaCha8([32]byte{}).Read(frame.Pix)
		animated.Image, animated.Delay = append(animated.Image, frame), append(animated.Delay, 1)
	}
	for name, test := range map[string]struct {
		raw  []byte
		kind string
		want string
		side int
	}{
		"an opaque PNG becomes a JPEG":         {pngOf(t, opaqueNoise(100, 100)), PNG, JPEG, 100},
		"then smaller":                         {pngOf(t, opaqueNoise(250, 250)), PNG, JPEG, 125},
		"a transparent one smaller":            {pngOf(t, noise(100, 100)), PNG, PNG, 50},
		"a JPEG smaller":                       {jpegOf(t, opaqueNoise(250, 250), 50), JPEG, JPEG, 125},
		"as often as it takes":                 {jpegOf(t, opaqueNoise(500, 500), 10), JPEG, JPEG, 125},
		"an animation becomes its first frame": {gifOf(t, animated), GIF, PNG, 100},
		"a picture that fits stays as it is":   {pngOf(t, noise(60, 60)), PNG, PNG, 60},
	} {
		img, _, err := reencode(test.kind, test.raw, limit)
		require.NoError(t, err, name)
		require.Equal(t, test.want, img.ContentType, name)
		require.Equal(t, image.Pt(test.side, test.side), image.Pt(img.Width, img.Height), name)
		require.LessOrEqual(t, len(img.Bytes), limit, name)
	}
}

func TestBusyAndGivenUp(t *testing.T) {
	t.Parallel()
	d := alone()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inside := make(chan struct{})
	leave := make(chan struct{})
	done := make(chan error)
	go func() { done <- d.gate.Do(context.Background(), MaxSide*MaxSide, func() { close(inside); <-leave }) }()
	<-inside
	_, _, err := d.Decode(ctx, pngOf(t, quarters(4, 4)))
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	_, err = d.Resize(ctx, Image{ContentType: PNG, Bytes: pngOf(t, quarters(4, 4))}, 16)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	close(leave)
	require.NoError(t, <-done)
}

func TestResize(t *testing.T) {
	t.Parallel()
	d := alone()
	// The middle square of this is green; what is cut off is red.
	wide := image.NewNRGBA(image.Rect(0, 0, 90, 30))
	for y := range 30 {
		for x := range 90 {
			if wide.SetNRGBA(x, y, red); x >= 30 && x < 60 {
				wide.SetNRGBA(x, y, green)
			}
		}
	}
	high := image.NewNRGBA(image.Rect(0, 0, 30, 90))
	for y := range 90 {
		for x := range 30 {
			high.SetNRGBA(x, y, wide.NRGBAAt(y, x))
		}
	}
	frame := image.NewPaletted(image.Rect(30, 0, 60, 30), color.Palette{green})
	offset := &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 90, Height: 30}}
	for name, test := range map[string]struct {
		raw  []byte
		want string
	}{
		"PNG wide": {pngOf(t, wide), PNG}, "PNG high": {pngOf(t, high), PNG}, "JPEG": {jpegOf(t, wide, 100), JPEG},
		"GIF": {gifOf(t, offset), PNG},
	} {
		_, squares, err := d.Decode(t.Context(), test.raw)
		require.NoError(t, err)
		require.Len(t, squares, 1, "a small picture is not enlarged")
		require.Equal(t, [2]int{32, 30}, [2]int{squares[0].Level, squares[0].Width})
		source := squares[0].Image
		for _, size := range []int{MinSquare, 100, MaxSquare} {
			square, err := d.Resize(t.Context(), Image{ContentType: source.ContentType, Bytes: source.Bytes}, size)
			require.NoError(t, err, name)
			require.Equal(t, test.want, square.ContentType, name)
			require.Equal(t, image.Pt(size, size), image.Pt(square.Width, square.Height))
			back, _, err := image.Decode(bytes.NewReader(square.Bytes))
			require.NoError(t, err)
			require.Equal(t, image.Pt(size, size), back.Bounds().Size())
			requireColour(t, green, back, size/2, size/2)
			requireColour(t, green, back, size/4, size/4)
		}
	}
	for _, size := range []int{-1, 0, MinSquare - 1, MaxSquare + 1} {
		_, err := d.Resize(t.Context(), Image{}, size)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
	}
}

// Stored squares: one for every level that the picture is large enough for, and one that is as large as the picture.
func TestSquares(t *testing.T) {
	t.Parallel()
	d := alone()
	for side, want := range map[int][]Square{
		1:  {{Level: 32, Image: Image{Width: 1}}},
		32: {{Level: 32, Image: Image{Width: 32}}},
		33: {{Level: 64, Image: Image{Width: 33}}, {Level: 32, Image: Image{Width: 32}}},
		600: {{512, Image{Width: 512}}, {256, Image{Width: 256}}, {128, Image{Width: 128}}, {64, Image{Width: 64}},
			{32, Image{Width: 32}}},
		1100: {{512, Image{Width: 512}}, {256, Image{Width: 256}}, {128, Image{Width: 128}}, {64, Image{Width: 64}},
			{32, Image{Width: 32}}},
	} {
		img, squares, err := d.Decode(t.Context(), pngOf(t, quarters(side, min(side+7, MaxSide))))
		require.NoError(t, err)
		require.Len(t, squares, len(want), side)
		for i, square := range squares {
			require.Equal(t, want[i].Level, square.Level)
			require.Equal(t, want[i].Width, square.Width)
			require.Equal(t, square.Width, square.Height)
			require.NotEqual(t, img.ETag, square.ETag)
		}
	}
	_, squares, err := d.Decode(t.Context(), pngOf(t, noise(600, 600)))
	require.NoError(t, err)
	total := 0
	for _, square := range squares {
		total += len(square.Bytes)
	}
	require.Less(t, total, 1<<20+1<<19, "of the worst picture")
	for size, want := range map[int][]int{16: {32}, 32: {32}, 33: {64, 32}, 512: {512, 256, 128, 64, 32}} {
		require.Equal(t, want, Levels(size))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(pngOf(f, quarters(4, 4)))
	f.Add(withEXIF(jpegOf(f, quarters(8, 8), 90), binary.LittleEndian, 6))
	f.Add(gifOf(f, animation(3)))
	for kind := range webPs {
		f.Add(webPOf(f, kind))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kind := kindOf(raw)
		if config, err := decodeConfig(kind, bytes.NewReader(raw)); err != nil || config.Width*config.Height > 1<<16 {
			_, _ = measure(kind, raw)
			return
		}
		img, _, err := alone().Decode(context.Background(), raw)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			return
		}
		require.LessOrEqual(t, len(img.Bytes), MaxBytes)
		again, _, err := alone().Decode(context.Background(), img.Bytes)
		require.NoError(t, err, "what is kept can be read")
		require.Equal(t, image.Pt(img.Width, img.Height), image.Pt(again.Width, again.Height))
		if all, err := gif.DecodeAll(bytes.NewReader(raw)); kind == GIF && err == nil {
			frames, pixels, _ := scanGIF(raw)
			require.Len(t, all.Image, frames)
			for _, frame := range all.Image {
				pixels -= len(frame.Pix)
			}
			require.Zero(t, pixels)
		}
	})
}

func BenchmarkDecodeJPEG(b *testing.B) {
	raw := jpegOf(b, quarters(1024, 1024), 90)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = mustDecode(b, raw)
	}
}

func BenchmarkLargestJPEG(b *testing.B) {
	raw := withEXIF(jpegOf(b, quarters(MaxSide, MaxSide), 90), binary.LittleEndian, 6)
	d := alone()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := d.Decode(context.Background(), raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResize is the cost of a GET for a size that is not stored.
func BenchmarkResize(b *testing.B) {
	d := alone()
	for _, size := range []int{48, 100, 200, 400} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, squares, err := d.Decode(context.Background(), jpegOf(b, quarters(1024, 1024), 90))
			require.NoError(b, err)
			source := squares[slices.IndexFunc(squares, func(s Square) bool { return s.Level == Levels(size)[0] })]
			for b.Loop() {
				if _, err := d.Resize(context.Background(), source.Image, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// alone is a Decoder that shares its limits with no other test.
func alone() *Decoder {
	return NewDecoder(NewRoom(), prometheus.NewRegistry())
}
