package applications_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogo(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "a", object{"logo": "/img/a.png"})
	var picture bytes.Buffer
	require.NoError(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 48))))
	put := func(contentType string, body []byte) int {
		return c.With("Content-Type", contentType).Do(http.MethodPut, path(app, "logo"), body).Status
	}
	c.Get(path(app, "logo")).Problem(http.StatusNotFound, "not_found")
	for contentType, row := range map[string]struct {
		body   []byte
		status int
	}{
		"image/svg+xml":    {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), http.StatusBadRequest},
		"image/png":        {[]byte("no picture"), http.StatusBadRequest},
		"text/plain":       {picture.Bytes(), http.StatusUnsupportedMediaType},
		"image/x-too-much": {make([]byte, 3<<20), http.StatusRequestEntityTooLarge},
	} {
		assert.Equal(t, row.status, put(contentType, row.body), contentType)
	}
	unchanged(t, c, app)
	require.Equal(t, http.StatusOK, put("image/png", picture.Bytes()))
	assert.Equal(t, path(app, "logo"), c.Get(path(app)).Object()["logo"])
	shown := c.Get(path(app, "logo"))
	assert.Equal(t, "image/png", shown.Header.Get("Content-Type"))
	assert.Equal(t, "private", shown.Header.Get("Cache-Control"))
	assert.Equal(t, http.StatusNotModified,
		c.With("If-None-Match", shown.Header.Get("ETag")).Get(path(app, "logo")).Status)
	square, err := png.Decode(bytes.NewReader(c.Get(path(app, "logo?size=32")).Body))
	require.NoError(t, err)
	assert.Equal(t, image.Pt(32, 32), square.Bounds().Size())
	in(s, "globex").Get(path(app, "logo")).Problem(http.StatusNotFound, "not_found")

	require.Equal(t, http.StatusOK, put("image/png", picture.Bytes()), "once more")
	c.Patch(path(app), object{"logo": "https://acme.test/logo.png"}).OK(nil)
	c.Get(path(app, "logo")).Problem(http.StatusNotFound, "not_found")
	assert.Empty(t, testkit.Stored(t, s, "acme", "logo_thumbnails"))
	require.Equal(t, http.StatusOK, put("image/png", picture.Bytes()))
	c.Delete(path(app), nil).OK(nil)
	assert.Empty(t, testkit.Stored(t, s, "acme", "logos"))
}
