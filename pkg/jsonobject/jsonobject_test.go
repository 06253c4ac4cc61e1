package jsonobject

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEach(t *testing.T) {
	t.Parallel()
	for object, want := range map[string][]string{
		`{}`:                                  nil,
		` { "名" : [1, {"a":2}] , "b":null } `: {"名", `[1, {"a":2}]`, "b", "null"},
		`{"a\nb":"x\u003c"}`:                  {"a\nb", `"x\u003c"`},
		`{"a":1,"a":2}`:                       {"a", "1", "a", "2"},
		"{\"a\":\"\xff\"}":                    {"a", "\"\xff\""},
	} {
		var got []string
		require.NoError(t, Each([]byte(object), func(name string, value []byte) {
			got = append(got, name, string(value))
		}), object)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "null", `[1]`, `"a"`, `{`, `{"a"}`, `{"a":1`, `{"a":1,}`, `{"a":tru}`} {
		require.Error(t, Each([]byte(bad), func(string, []byte) {}), bad)
	}
}
