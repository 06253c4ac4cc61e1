package kv

import (
	"net/http"
	"net/url"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// An accepted key stays the same however a client encodes it in a path, and if a proxy cleans the path.
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		"k", "console/theme", "a b", "a%2Fb", "é", "微/信", "a?b", "a#b", "..a", "a/..", "a//b", "history", "a/history",
		"a;b", "a+b", "\\", "a\u202eb", "a\xff",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		var faults apperr.Faults
		if checkKey(&faults, key); faults.Err() != nil {
			return
		}
		const prefix = "/v1/kv/buckets/box/objects/"
		require.Equal(t, prefix+key, path.Clean(prefix+key))
		for _, form := range []string{(&url.URL{Path: prefix + key}).EscapedPath(), prefix + url.PathEscape(key)} {
			r, err := http.NewRequest(http.MethodGet, "http://idp.test"+form, nil)
			require.NoError(t, err)
			require.Equal(t, prefix+key, r.URL.Path)
			require.Empty(t, r.URL.RawQuery)
			require.Empty(t, r.URL.Fragment)
		}
		require.Equal(t, "box/"+key, place("box", key))
	})
}
