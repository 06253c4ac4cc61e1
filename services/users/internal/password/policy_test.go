package password

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"pgregory.net/rapid"
)

func bcryptOf(t testing.TB, password string) string {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return string(hash)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const length, name, ordinary = "must have 8…256 characters", "must not contain the username",
		"must not be one of the most common passwords"
	for what, test := range map[string]struct {
		password, username string
		want               []string
	}{
		"good":                          {"correct horse battery", "li.wei", nil},
		"eight of CJK":                  {"一二三四五六七八", "li.wei", nil},
		"seven of CJK, though 21 bytes": {"一二三四五六七", "li.wei", []string{length}},
		"seven of two marks each":       {strings.Repeat("e\u0301", 7), "li.wei", []string{length}},
		"256 of two marks each":         {strings.Repeat("e\u0301", 256), "li.wei", nil},
		"empty":                         {"", "li.wei", []string{length}},
		"256":                           {strings.Repeat("密a", 128), "li.wei", nil},
		"257":                           {strings.Repeat("x", 257), "li.wei", []string{length}},
		"no UTF-8":                      {"abcdefgh\xff", "li.wei", []string{"must be UTF-8"}},
		"the username":                  {"my-li.wei-1", "li.wei", []string{name}},
		"the username in another case":  {"my-LI.WEI-1", "li.wei", []string{name}},
		"the username in full width":    {"my-ｌｉ.ｗｅｉ-1", "li.wei", []string{name}},
		"a sharp s":                     {"xx-STRASSE-xx", "straße", []string{name}},
		"a CJK username":                {"我是欧阳娜娜八字", "欧阳娜娜", []string{name}},
		"a username of two letters":     {"zabcdefgz", "ab", nil},
		"a username of three letters":   {"zabcdefgz", "abc", []string{name}},
		"no username":                   {"zabcdefgz", "", nil},
		"common":                        {"password1", "li.wei", []string{ordinary}},
		"common in another case":        {"PassWord1", "li.wei", []string{ordinary}},
		"common in full width":          {"ｐａｓｓｗｏｒｄ", "li.wei", []string{ordinary}},
		"common, and a name":            {"jennifer", "li.wei", []string{ordinary}},
		"common with more to it":        {"password1-and-more", "li.wei", nil},
		"all at once":                   {"dragon", "dragon", []string{length, name}},
		"name and common":               {"superman", "superman", []string{name, ordinary}},
	} {
		require.Equal(t, test.want, Check(test.password, test.username), what)
	}
}

func TestCommonIsSmallAndSorted(t *testing.T) {
	t.Parallel()
	list := common()
	require.IsIncreasing(t, list)
	require.InDelta(t, 3534, len(list), 10)
	for _, word := range []string{"12345678", "baseball", "trustno1", "qwertyuiop", "iloveyou", "1q2w3e4r"} {
		require.True(t, isCommon(word), word)
	}
	require.False(t, isCommon(""))
	require.False(t, isCommon("12345"), "too short to be asked for")
}

func TestGeneratedPasswordsPassForEveryUser(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		username := rapid.StringMatching(`[a-zA-Z0-9._@+-]{0,3}`).Draw(t, "username")
		made := Generate(username)
		require.False(t, seen[made])
		seen[made] = true
		require.Len(t, made, generatedLength)
		require.Empty(t, Check(made, username))
	})
}
