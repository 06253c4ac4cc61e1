package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzIfMatch: a condition holds for a version exactly if it has the version's tag as it was given out, with any
// counts, or accepts every version.
func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{`"1"`, `*`, `W/"1"`, `"7", "1"`, `"1`, `""1""`, ``, `,`, `"9223372036854775808"`,
		`"1-0"`, `"1-"`, `"1-2-3"`} {
		f.Add(seed, int64(1))
	}
	f.Fuzz(func(t *testing.T, header string, version int64) {
		if version < 1 {
			t.Skip("the first is 1")
		}
		named, alone := false, false
		tag := fmt.Sprintf(`"%d"`, version)
		counted := regexp.MustCompile(fmt.Sprintf(`^"%d-[0-9]+"$`, version))
		for part := range strings.SplitSeq(header, ",") {
			part = strings.TrimSpace(part)
			alone = alone || part == "*" || part == tag
			named = named || alone || counted.MatchString(part)
		}
		require.Equal(t, named, ifMatch([]string{header})(version))
		require.Equal(t, named, ifMatch([]string{"nonsense", header})(version), "a header may be repeated")

		r := &http.Request{Header: http.Header{"If-None-Match": {header}}}
		require.Equal(t, alone || weaklyNamed(header, version), notModified(r, tag))
		require.False(t, notModified(r, ""), "a body without a tag is always new")
	})
}

func weaklyNamed(header string, version int64) bool {
	for part := range strings.SplitSeq(header, ",") {
		if strings.TrimSpace(part) == fmt.Sprintf(`W/"%d"`, version) {
			return true
		}
	}
	return false
}

// closed is the shape {"a": any, "b": [itself], "x": {any name: itself}}.
var closed = &shape{object: true, members: map[string]*shape{"a": nil}}

func init() {
	closed.members["b"] = &shape{items: closed}
	closed.members["x"] = &shape{object: true, open: true, others: closed}
}

// FuzzCheckJSON compares the walker with encoding/json's tokens.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2}`, `{"a":{"b":1},"b":[{"b":1},{"b":2}]}`, `{"a\"":1,"a\u0022":2}`,
		`["a","a",{"":{},"x":[{}]}]`, `{"\\":"\\","\\\\":1}`, `"{\"a\":1,\"a\":1}"`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("[", 101) + strings.Repeat("]", 101),
		`{"a":[],"a":{}}`, `{"\ud800":1,"\ud801":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		clean, unknown, err := checkJSON(body, closed)
		if len(body) == 0 || !json.Valid(body) || !utf8.Valid(body) {
			require.Equal(t, len(body) > 0, err != nil, "%s", body)
			return
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		require.Equal(t, isBad(dec, 0), err != nil, "%s", body)
		if err != nil {
			return
		}
		require.True(t, json.Valid(clean), "%s", body)
		if len(unknown) == 0 {
			require.Equal(t, body, clean)
		}
		again, unknown, err := checkJSON(clean, closed)
		require.NoError(t, err)
		require.Empty(t, unknown, "%s", body)
		require.Equal(t, clean, again, "%s", body)
	})
}

// isBad reads one value and reports whether it is nested too deep or has a member twice.
func isBad(dec *json.Decoder, depth int) bool {
	token, _ := dec.Token()
	open, isOpen := token.(json.Delim)
	if !isOpen {
		return false
	}
	if depth == maxDepth {
		return true
	}
	names := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, _ := dec.Token()
			if names[name.(string)] {
				return true
			}
			names[name.(string)] = true
		}
		if isBad(dec, depth+1) {
			return true
		}
	}
	_, _ = dec.Token()
	return false
}

// FuzzIsEmptyForm: isEmptyForm must not panic, and must not report a form with a part as empty.
func FuzzIsEmptyForm(f *testing.F) {
	f.Add("multipart/form-data; boundary=b", "--b--")
	f.Add("multipart/form-data", "----")
	f.Add("application/x-www-form-urlencoded", "a=b")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		if isEmptyForm(contentType, []byte(body)) && body != "" {
			require.True(t, strings.HasPrefix(strings.ToLower(strings.TrimSpace(contentType)), "multipart/form-data"))
			require.NotContains(t, strings.TrimSpace(body), "\n")
		}
	})
}

func BenchmarkCheckJSON(b *testing.B) {
	body := []byte(
		`{"username":"li.wei","display_name":"李伟","email":"li.wei@acme.test","mobile":"+8613800000000","employee_number":"A-17","status":"1","email_verified":true,"sys_ext_props":{"a":[1,2,3],"b":"x"}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := checkJSON(body, &shape{object: true, open: true}); err != nil {
			b.Fatal(err)
		}
	}
}
