package picture_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// Requests that have both seen that a picture has no squares yet decode it once, even if one is over before the other
// goes on.
func TestSquaresAreMadeOnce(t *testing.T) {
	t.Parallel()
	album := picture.NewAlbum("avatar", "avatars", "thumbnails")
	store := testkit.Store(t, testkit.NewClock(), album.Defs()...)
	metrics := prometheus.NewRegistry()
	gallery := picture.NewGallery(album, store, picture.NewDecoder(picture.NewRoom(), metrics))
	var raw bytes.Buffer
	require.NoError(t, png.Encode(&raw, image.NewNRGBA(image.Rect(0, 0, 200, 200))))
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		return album.Put(ctx, tx, "1", picture.Image{ContentType: "image/png", ETag: "e", Bytes: raw.Bytes()}, nil)
	}))
	var shown [2]picture.Shown
	for i := range shown {
		var err error
		shown[i], err = gallery.Show(ctx, "1", 64)
		require.NoError(t, err)
	}
	var images [2]picture.Image
	for i := range shown {
		var err error
		images[i], err = shown[i].Load(ctx)
		require.NoError(t, err)
		require.Equal(t, 64, images[i].Width)
	}
	require.Equal(t, images[0].Bytes, images[1].Bytes)
	decoded, err := metrics.Gather()
	require.NoError(t, err)
	require.Len(t, decoded[0].GetMetric(), 1, "only as kept")
	require.EqualValues(t, 1, decoded[0].GetMetric()[0].GetCounter().GetValue())
}
