package engine

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"/files/a": "/files/a", "/files/../admin": "/admin", "/files/%2e%2E/admin": "/admin", "/..": "/", "/a/..": "/",
		"/a/b/.": "/a/b/", "/../../a/./b": "/a/b", "/%61%7e%2D": "/a~-", "/a%3ab": "/a:b", "/a%3bb": "/a%3Bb",
		"/%e6%96%87": "/%E6%96%87", "/文": "/%E6%96%87", "/a b": "/a%20b", "/a?b=/../c": "/a", "/a#b?c": "/a",
		"/a%3f%23%25": "/a%3F%23%25", "/a/": "/a/", "/": "/", "/...": "/...",
	} {
		segments, ok := pathOf(uri)
		require.True(t, ok, uri)
		require.Equal(t, want, strings.Join(segments, "/"), uri)
	}
	for _, uri := range []string{
		"", "files", "//", "//a", "/a//b", "/a//", "/a%2fb", "/a%2Fb", `/a\b`, "/a%5cb", "/a;x", "/a;x=1/b",
		"/files/..;/a", "/a%00", "/a\n", "/a%7f", "/a%", "/a%2", "/a%zz", "/%c0%ae%c0%ae/a", "/\xff", "https://a.test/b",
	} {
		_, ok := pathOf(uri)
		require.False(t, ok, uri)
	}
}

func TestURIPatterns(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]bool{
		"/orders/{id}": true, "/files/**": true, "/*/a": true, "/": true, "/a/": true, "/%7Ea": true, "/a:b": true,
		"orders": false, "/**/a": false, "/a*": false, "/%2A": false, "/{id": false, "/{}": false, "/a//b": false,
		"/a/../b": false, "/a;b": false, "/a%2fb": false, "/a?b": false, "/a#b": false, `/a\b`: false, "": false,
	} {
		require.Equal(t, want, ValidURI(uri), uri)
	}
}

// However a client writes a path, a check sees the path that path.Clean and url.PathUnescape find. What is left as it
// is has no dot segments and no empty ones but the last.
func FuzzPaths(f *testing.F) {
	for _, uri := range []string{"/files/../admin", "/files/%2e%2e/admin", "/a/./b/", "/文/%41?x#y", "/a%2fb", "/a;b"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		segments, ok := pathOf(uri)
		if !ok {
			return
		}
		plain, _, _ := strings.Cut(uri, "#")
		plain, _, _ = strings.Cut(plain, "?")
		plain, err := url.PathUnescape(plain)
		require.NoError(t, err)
		normal := strings.Join(segments, "/")
		readable, err := url.PathUnescape(normal)
		require.NoError(t, err)
		require.Equal(t, path.Clean(plain), path.Clean(readable))
		again, ok := pathOf(normal)
		require.True(t, ok, normal)
		require.Equal(t, segments, again)
		for i, segment := range segments[1:] {
			require.NotContains(t, []string{".", ".."}, segment)
			require.True(t, segment != "" || i == len(segments)-2, normal)
			require.NotContains(t, strings.ToLower(segment), "%2f")
			require.NotContains(t, segment, ";")
		}
	})
}
