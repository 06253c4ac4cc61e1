package user

import (
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/textindex"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// Any line is either refused with a reason, or is a user that an API request could have created.
func FuzzParseImport(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"username":"李伟","display_name":"王芳"}`, `{"username":"a"}}`, `{"username":"a"} x`,
		"{\"username\":\"\xff\"}", `{"username":"\u0000"}`,
		`{"username":"\ud800"}`, `{"Username":"a","username":"b"}`, `{"username":"a","username":7}`,
		`{"username":"a","sys_ext_props":{"a":[1e999,{}]},"free_ext_props":null}`,
		`{"username":"a","version":"x","time_created":7,"locked_until":"2026-01-31T00:00:00Z"}`,
		`{"username":"a","password":"a good Passw0rd"}`, `{"username":"a","status":"resigned"}`,
	} {
		f.Add([]byte(seed))
	}
	users := New(Deps{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := users.ParseImport(t.Context(), raw, false)
		require.NoError(t, err)
		if err := r.faults.Err(); err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			require.NotEmpty(t, failed(err).Errors)
			return
		}
		require.True(t, json.Valid(raw))
		require.True(t, validUsername(r.Username))
		require.Contains(t, []Status{Active, Disabled}, r.Status)
		require.Empty(t, r.hash)
		_, err = json.Marshal(User{Profile: r.Profile})
		require.NoError(t, err)
	})
}

func FuzzUsername(f *testing.F) {
	for _, seed := range []string{"", "li.wei", "李伟", "Ünï_code-1@x+y", "a b", "a\x00", "\xff", "\u3164", "ﷺ", "नमस्ते",
		strings.Repeat("字", 255), strings.Repeat("字", 256), "İ", "ß",
		`DOMAIN\user`, "first last", "a&b@x.com", "´", "@", "a@ b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !validUsername(name) {
			return
		}
		require.True(t, utf8.ValidString(name))
		require.LessOrEqual(t, utf8.RuneCountInString(name), maxUsername)
		require.False(t, strings.ContainsFunc(name, func(r rune) bool {
			return unicode.IsSpace(r) && r != ' ' || unicode.IsControl(r) || !unicode.IsPrint(r)
		}))
		key := textindex.Key(name)
		require.NotEmpty(t, key, "a name without a key would be nobody's")
		require.Equal(t, key, textindex.Key(key))
		require.Equal(t, loginKey(name), loginKey(loginKey(name)))
	})
}

func FuzzEmail(f *testing.F) {
	for _, seed := range []string{"", "a@b", "li.wei+x@acme.test", "李@例子.测试", "Li <a@b>", "a@b\x00", "\xff@b",
		"a@[192.0.2.1]", "\"a b\"@c", "a@-b", strings.Repeat("l", 65) + "@b", "a@b@c", "a@b\u3002c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if !validEmail(address) {
			return
		}
		require.True(t, utf8.ValidString(address))
		require.LessOrEqual(t, len(address), maxEmail)
		require.False(t, strings.ContainsFunc(address, unicode.IsControl))
		require.Equal(t, loginKey(address), loginKey(loginKey(address)))
		quoted, literal := address[0] == '"', strings.HasSuffix(address, "]")
		if parsed, err := mail.ParseAddress("Someone <" + address + ">"); !literal {
			require.NoError(t, err)
			require.True(t, quoted || parsed.Address == address)
		}
		require.True(t, quoted || !strings.ContainsFunc(address, unicode.IsSpace))
	})
}
