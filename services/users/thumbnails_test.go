package users_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// decoded returns how many pictures a service has decoded, by kind.
func decoded(t testing.TB, s *testkit.Service) map[string]int {
	t.Helper()
	families, err := s.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() == "idp_pictures_decoded_total" {
			for _, m := range family.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
			}
		}
	}
	return counts
}

// requireSquare fails the test unless the answer is a picture of so many pixels each way.
func requireSquare(t testing.TB, answer *testkit.Answer, size int) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.Status, "%s", answer.Body)
	got, _, err := image.DecodeConfig(bytes.NewReader(answer.Body))
	require.NoError(t, err)
	require.Equal(t, [2]int{size, size}, [2]int{got.Width, got.Height})
}

// keptThumbnails counts a tenant's stored thumbnails.
func keptThumbnails(t testing.TB, s *testkit.Service, tenant string) int {
	t.Helper()
	type anything struct{ docstore.Meta }
	n, err := docstore.Define(docstore.Schema[anything]{Name: "thumbnails"}).Count(request.System(t.Context(), tenant),
		s.Deps.Store, docstore.Filter{})
	require.NoError(t, err)
	return int(n)
}

// An uploaded picture is decoded only once, whatever is shown of it. For another size a stored square, which is small,
// is decoded; for a client that has the picture, nothing.
func TestThumbnailsAreMadeOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	put(c, user, "image/png", pngOf(t, 700, 800)).OK(nil)
	require.Equal(t, 5, keptThumbnails(t, s, "acme"))
	for _, size := range []int{32, 64, 128, 256, 512} {
		for range 3 {
			requireSquare(t, c.Get(fmt.Sprint(path(user, "avatar"), "?size=", size)), size)
		}
	}
	require.Equal(t, map[string]int{"upload": 1, "square": 0}, decoded(t, s))

	odd := path(user, "avatar") + "?size=100"
	first := c.Get(odd)
	requireSquare(t, first, 100)
	require.Equal(t, http.StatusNotModified, c.With("If-None-Match", first.Header.Get("ETag")).Get(odd).Status)
	require.Equal(t, map[string]int{"upload": 1, "square": 1}, decoded(t, s))
	again := c.Get(odd)
	require.Equal(t, first.Body, again.Body, "the picture with a strong ETag is always the same")

	put(c, user, "image/png", pngOf(t, 20, 20)).OK(nil)
	require.Equal(t, 1, keptThumbnails(t, s, "acme"), "nothing is left of the former picture")
	changed := c.With("If-None-Match", first.Header.Get("ETag")).Get(odd)
	requireSquare(t, changed, 100)
	require.NotEqual(t, first.Header.Get("ETag"), changed.Header.Get("ETag"))
	c.Delete(path(user, "avatar"), nil).OK(nil)
	require.Zero(t, keptThumbnails(t, s, "acme"))
	c.Get(odd).Problem(http.StatusNotFound, "not_found")
	put(c, user, "image/png", pngOf(t, 700, 700)).OK(nil)
	c.Delete(path(user), nil).OK(nil)
	require.Zero(t, keptThumbnails(t, s, "acme"))
}

// A burst of one tenant does not make requests of others fail.
func TestThumbnailsOfOtherTenants(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	other := in(s, "globex")
	theirs := addUser(t, other, "theirs")
	putAvatar(t, other, theirs).OK(nil)
	var all []object
	large := pngOf(t, 1000, 1000)
	for i := range 8 {
		all = append(all, addUser(t, c, fmt.Sprint("u", i)))
	}
	counts := basic.AtOnce(128, func(i int) int {
		if i%16 == 0 {
			return 1000 + put(other, theirs, "image/png", pngOf(t, 20, 20)).Status
		}
		return put(c, all[i%8], "image/png", large).Status
	})
	require.Equal(t, 8, counts[1000+http.StatusOK], counts)
	require.Equal(t, 120, counts[http.StatusOK]+counts[http.StatusServiceUnavailable], counts)
}

// The stored form of a thumbnail.
func TestGoldenThumbnail(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	putAvatar(t, c, user).OK(nil)
	var members map[string]any
	thumbnail := testkit.Stored(t, s, "acme", "thumbnails")[user["id"].(string)+".32"]
	require.NoError(t, json.Unmarshal([]byte(thumbnail), &members))
	for _, name := range []string{"bytes", "avatar", "time_created", "time_modified"} {
		require.NotEmpty(t, members[name])
		delete(members, name)
	}
	require.Equal(t, map[string]any{
		"id": user["id"].(string) + ".32", "tenant_id": "acme", "version": 1.0, "content_type": "image/png",
		"side": 24.0,
	}, members)
}
