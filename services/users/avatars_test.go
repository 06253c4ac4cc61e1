package users_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func put(c *testkit.Client, user object, contentType string, body []byte) *testkit.Answer {
	return c.With("Content-Type", contentType).Do(http.MethodPut, path(user, "avatar"), body)
}

// putAvatar gives a user a picture.
func putAvatar(t testing.TB, c *testkit.Client, user object) *testkit.Answer {
	t.Helper()
	return put(c, user, "image/png", pngOf(t, 32, 24))
}

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// form makes a multipart form of fields, in order.
func form(t testing.TB, fields ...[2]string) (contentType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, field := range fields {
		header := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="头像.bin"`,
			field[0])}}
		part, err := w.CreatePart(header)
		require.NoError(t, err)
		_, err = part.Write([]byte(field[1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return w.FormDataContentType(), b.Bytes()
}

func TestAvatarFormats(t *testing.T) {
	t.Parallel()
	encoded := func(encode func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		require.NoError(t, encode(&b))
		return b.Bytes()
	}
	canvas := image.NewRGBA(image.Rect(0, 0, 40, 30))
	webp, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	require.NoError(t, err)
	for name, row := range map[string]struct {
		raw                []byte
		sent, shown        string
		multipart          bool
		width, height, big int
	}{
		"png": {raw: pngOf(t, 40, 30), sent: "image/png", shown: "image/png", width: 40, height: 30},
		"jpeg": {raw: encoded(func(b *bytes.Buffer) error {
			return jpeg.Encode(b, canvas, nil)
		}), sent: "image/jpeg", shown: "image/jpeg", width: 40, height: 30},
		"gif": {raw: encoded(func(b *bytes.Buffer) error {
			return gif.Encode(b, image.NewPaletted(canvas.Rect, palette.Plan9), nil)
		}), sent: "image/gif", shown: "image/gif", width: 40, height: 30},
		"webp": {raw: webp, sent: "image/webp", shown: "image/png", width: 1, height: 1},
		"wrongly named": {raw: pngOf(t, 40, 30), sent: "image/jpeg; charset=binary", shown: "image/png", width: 40,
			height: 30},
		"form": {raw: pngOf(t, 40, 30), shown: "image/png", multipart: true, width: 40, height: 30},
		// As many pixels as both sides allow take half a minute with the race detector on a busy machine.
		"widest": {raw: pngOf(t, 4096, 64), sent: "image/png", shown: "image/png", width: 4096, height: 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			user := addUser(t, c, "li.wei")
			contentType, body := row.sent, row.raw
			if row.multipart {
				contentType, body = form(t, [2]string{"comment", "my best side"}, [2]string{"file", string(row.raw)},
					[2]string{"file", "a second one"})
			}
			answer := put(c, user, contentType, body)
			now := answer.Object()
			require.Equal(t, path(user, "avatar"), now["avatar_url"])
			require.EqualValues(t, 2, now["version"])
			require.Equal(t, `"2"`, answer.Header.Get("ETag"))
			unchanged(t, c, now)

			shown := c.Get(path(user, "avatar"))
			require.Equal(t, http.StatusOK, shown.Status)
			require.Equal(t, row.shown, shown.Header.Get("Content-Type"))
			require.Equal(t, "private", shown.Header.Get("Cache-Control"))
			require.Regexp(t, `^"[A-Za-z0-9_-]+"$`, shown.Header.Get("ETag"))
			size, format, err := image.DecodeConfig(bytes.NewReader(shown.Body))
			require.NoError(t, err)
			require.Equal(t, row.shown, "image/"+format)
			require.Equal(t, []int{row.width, row.height}, []int{size.Width, size.Height})
			in(s, "globex").Get(path(user, "avatar")).Problem(http.StatusNotFound, "not_found")
		})
	}
}

func TestAvatarSizes(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	user := addUser(t, c, "li.wei")
	putAvatar(t, c, user).OK(nil)
	etags := map[string]bool{}
	for _, size := range []int{0, 16, 100, 512} {
		url := path(user, "avatar")
		if size > 0 {
			url += fmt.Sprint("?size=", size)
		}
		answer := c.Get(url)
		require.Equal(t, http.StatusOK, answer.Status)
		got, _, err := image.DecodeConfig(bytes.NewReader(answer.Body))
		require.NoError(t, err)
		if size > 0 {
			require.Equal(t, [2]int{size, size}, [2]int{got.Width, got.Height})
		}
		tag := answer.Header.Get("ETag")
		etags[tag] = true
		same := c.With("If-None-Match", `"other", `+tag).Get(url)
		require.Equal(t, http.StatusNotModified, same.Status)
		require.Empty(t, same.Body)
		require.Equal(t, tag, same.Header.Get("ETag"))
		require.Equal(t, http.StatusOK, c.With("If-None-Match", `"other"`).Get(url).Status)
	}
	require.Len(t, etags, 4)
	for _, size := range []string{"15", "513", "0", "-16", "x", "16.5"} {
		c.Get(path(user, "avatar")+"?size="+size).Problem(http.StatusBadRequest, "invalid_parameters", "query.size")
	}
}

func TestAvatarRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	putAvatar(t, c, user).OK(nil)
	user = c.Get(path(user)).Object()
	shown := c.Get(path(user, "avatar"))

	random := make([]byte, 2<<20+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	copy(random, "\x89PNG\r\n\x1a\n")
	whole := pngOf(t, 32, 32)
	for _, row := range map[string]struct {
		contentType string
		body        []byte
		status      int
		code        string
	}{
		"too many bytes": {"image/png", random, 413, "too_large"},
		// accepted, and then found not to be a picture
		"at the limit":  {"image/png", random[:2<<20], 400, "invalid_parameters"},
		"no picture":    {"image/png", []byte("<svg onload=alert(1)>"), 400, "invalid_parameters"},
		"cut off":       {"image/png", whole[:len(whole)/2], 400, "invalid_parameters"},
		"nothing":       {"image/png", nil, 400, "invalid_parameters"},
		"too wide":      {"image/png", pngOf(t, 4097, 1), 400, "invalid_parameters"},
		"too high":      {"image/png", pngOf(t, 1, 4097), 400, "invalid_parameters"},
		"no image type": {"application/octet-stream", whole, 415, "unsupported_media_type"},
		"JSON":          {"application/json", []byte(`{}`), 415, "unsupported_media_type"},
		"no type":       {"", whole, 415, "unsupported_media_type"},
		"no boundary":   {"multipart/form-data", whole, 400, "invalid_parameters"},
		"broken form":   {"multipart/form-data; boundary=x", []byte("--x\r\nnonsense"), 400, "invalid_parameters"},
	} {
		put(c, user, row.contentType, row.body).Problem(row.status, row.code)
	}
	for _, field := range [][2]string{{"picture", string(whole)}, {"file", ""}, {"file", "text"}} {
		contentType, body := form(t, field)
		put(c, user, contentType, body).Problem(400, "invalid_parameters", "body.file")
	}
	contentType, body := form(t, [2]string{"file", string(random)})
	put(c, user, contentType, body).Problem(413, "too_large")
	contentType, body = form(t, [2]string{"other", string(append(random, random...))}, [2]string{"file", string(whole)})
	put(c, user, contentType, body).Problem(413, "too_large")

	put(c.With("If-Match", `"1"`), user, "image/png", whole).Problem(412, "version_mismatch")
	put(in(s, "globex"), user, "image/png", whole).Problem(404, "not_found")
	put(c, object{"id": "1"}, "image/png", whole).Problem(404, "not_found")
	c.With("Content-Type", "image/png").Do(http.MethodPut, path(user, "avatar")+"?dry_run=true", pngOf(t, 16, 16)).
		OK(nil)
	unchanged(t, c, user)
	require.Equal(t, shown.Body, c.Get(path(user, "avatar")).Body)
}

func TestRemoveAvatar(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	c.Delete(path(user, "avatar"), nil).Problem(http.StatusNotFound, "not_found")
	c.Get(path(user, "avatar")).Problem(http.StatusNotFound, "not_found")
	unchanged(t, c, user)

	putAvatar(t, c, user).OK(nil)
	first := c.Get(path(user, "avatar")).Header.Get("ETag")
	put(c, user, "image/png", pngOf(t, 24, 24)).OK(nil) // another picture replaces it
	require.NotEqual(t, first, c.Get(path(user, "avatar")).Header.Get("ETag"))
	in(s, "globex").Delete(path(user, "avatar"), nil).Problem(http.StatusNotFound, "not_found")
	c.With("If-Match", `"2"`).Delete(path(user, "avatar"), nil).Problem(http.StatusPreconditionFailed,
		"version_mismatch")
	require.Equal(t, object{"id": user["id"]}, c.Delete(path(user, "avatar"), nil).Object())
	c.Get(path(user, "avatar")).Problem(http.StatusNotFound, "not_found")
	c.Delete(path(user, "avatar"), nil).Problem(http.StatusNotFound, "not_found")
	now := c.Get(path(user)).Object()
	require.Equal(t, "", now["avatar_url"])
	require.EqualValues(t, 4, now["version"])
	require.Equal(t, []string{"created", "updated", "updated", "updated", "deleted"}, actions(t, s, c, user))
}
