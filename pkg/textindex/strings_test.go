package textindex

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStrings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		json string
		want []string
	}{
		{``, nil},
		{`null`, nil},
		{`"a"`, []string{"a"}},
		{`{}`, nil},
		{`{"k": "v"}`, []string{"v"}},
		{`{"k": {"l": "a", "m": ["b", {"n": "c"}, "d"], "o": "e"}, "p": "f"}`, []string{"a", "b", "c", "d", "e", "f"}},
		{`[[], {}, "a", {"k": []}, "b", [["c"]], "d"]`, []string{"a", "b", "c", "d"}},
		{`{"k": 1, "l": true, "m": null, "n": 1e999, "o": 12345678901234567890, "p": "a"}`, []string{"a"}},
		{`{"k": "\u674e\ud842\udfb7", "": ""}`, []string{"李𠮷", ""}},
		{`["a", "b", oops, "c"]`, []string{"a", "b"}},
		{`{"k": "a", "l"`, []string{"a"}},
		{`["a"]]`, []string{"a"}},
	} {
		require.Equal(t, tt.want, Strings([]byte(tt.json), 10), tt.json)
	}
	require.Equal(t, []string{"a", "b"}, Strings([]byte(`["a","b","c"]`), 2))
	require.Empty(t, Strings([]byte(`["a"]`), 0))
	require.Equal(t, []string{"a"}, Strings([]byte(strings.Repeat("[", 9000)+`"a"`), 10), "deeply nested")
}

// count counts the string values of a decoded document.
func count(v any) (n int) {
	switch v := v.(type) {
	case string:
		return 1
	case []any:
		for _, e := range v {
			n += count(e)
		}
	case map[string]any:
		for _, e := range v {
			n += count(e)
		}
	}
	return n
}

func FuzzStrings(f *testing.F) {
	for _, seed := range []string{
		`{"k": [{"l": "a"}, "b"]}`, `{"a":`, `]`, `"a" "b"`, `{"a" "b"}`, `{1:2}`, `[1,]`, `{"a":"b","a":"c"}`,
	} {
		f.Add([]byte(seed), 5)
	}
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		found := Strings(text, limit)
		require.LessOrEqual(t, len(found), max(limit, 0))
		var v any
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		if json.Valid(text) && decoder.Decode(&v) == nil {
			// There are more if an object has a member twice.
			require.GreaterOrEqual(t, len(Strings(text, len(text))), count(v))
		}
	})
}
