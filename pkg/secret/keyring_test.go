package secret_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/secret"
)

// key is a ring entry whose 32 bytes are all b.
func key(id string, b byte) string {
	return id + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), 32)))
}

func ring(t require.TestingT, entries ...string) *secret.Keyring {
	k, err := secret.ParseKeyring(secret.New(strings.Join(entries, ", ")))
	require.NoError(t, err)
	return k
}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	k := ring(t, secret.NewKey().Reveal())
	rapid.Check(t, func(t *rapid.T) {
		plain, ad := rapid.SliceOf(rapid.Byte()).Draw(t, "plain"), rapid.SliceOf(rapid.Byte()).Draw(t, "ad")
		sealed := k.Seal(plain, ad)
		require.NotEqual(t, sealed, k.Seal(plain, ad), "nonces are random")
		opened, err := k.Open(sealed, ad)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(opened))

		_, err = k.Open(sealed, append(ad, 0))
		require.ErrorIs(t, err, secret.ErrOpen)
	})
}

// A sealed text with any one character altered, added or removed cannot be opened.
func TestAlteredTextIsRefused(t *testing.T) {
	t.Parallel()
	k := ring(t, key("a", 'x'), key("b", 'x')) // both have the same bytes: the id is authenticated all the same
	ad := []byte("tenant/7/secret")
	for _, plain := range []string{"", "p", "pl", "pla"} { // every length of the last base64 group
		sealed := k.Seal([]byte(plain), ad)
		for i := range len(sealed) {
			for _, c := range []byte("AabQ9_-.\n=v") {
				inserted := sealed[:i] + string(c) + sealed[i:]
				_, err := k.Open(inserted, ad)
				require.ErrorIs(t, err, secret.ErrOpen, inserted)
				if sealed[i] != c {
					altered := sealed[:i] + string(c) + sealed[i+1:]
					_, err = k.Open(altered, ad)
					require.ErrorIs(t, err, secret.ErrOpen, altered)
				}
			}
			_, err := k.Open(sealed[:i], ad)
			require.ErrorIs(t, err, secret.ErrOpen)
		}
		_, err := k.Open(sealed+"\n", ad)
		require.ErrorIs(t, err, secret.ErrOpen)
	}
}

// Of the 64 values of the last character, exactly one opens.
func TestSealedTextHasOneForm(t *testing.T) {
	t.Parallel()
	k := ring(t, key("a", 'x'))
	sealed := k.Seal([]byte("pl"), nil) // 24+2+16 bytes leave no spare bits in base64; 24+3+16 and 24+1+16 do
	for _, sealed := range []string{sealed, k.Seal([]byte("pla"), nil), k.Seal([]byte("p"), nil)} {
		opens := 0
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if _, err := k.Open(sealed[:len(sealed)-1]+string(c), nil); err == nil {
				opens++
			}
		}
		require.Equal(t, 1, opens)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	before, after := ring(t, key("old", 'o')), ring(t, key("new", 'n'))
	during := ring(t, key("new", 'n'), key("old", 'o'))
	sealed := before.Seal([]byte("p"), nil)
	require.False(t, before.NeedsReseal(sealed))

	require.True(t, during.NeedsReseal(sealed))
	opened, err := during.Open(sealed, nil)
	require.NoError(t, err)
	resealed := during.Seal(opened, nil)
	require.False(t, during.NeedsReseal(resealed))

	_, err = after.Open(sealed, nil)
	require.ErrorIs(t, err, secret.ErrOpen)
	opened, err = after.Open(resealed, nil)
	require.NoError(t, err)
	require.Equal(t, "p", string(opened))
	require.True(t, after.NeedsReseal("not sealed"))
}

// Text sealed by an earlier version must open with every later one.
func TestSealedTextOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	const sealed = "v1.k1.XQ5dUZ_l8ZrvTdRFGhtnR2OWiz-hp_F2jMwXb_liO_41i7pjdzLbVVnd2hLjq11FXlYL5yk5lkT3"
	opened, err := ring(t, key("k1", 'k')).Open(sealed, []byte("tenant/7/secret"))
	require.NoError(t, err)
	require.Equal(t, "李伟's password", string(opened))
}

func TestParseKeyringFaults(t *testing.T) {
	t.Parallel()
	good := key("a", 'x')
	for name, entries := range map[string]string{
		"nothing":       "",
		"no key":        "a",
		"no id":         good[1:],
		"bad id":        "a.b" + good[1:],
		"long id":       strings.Repeat("i", 33) + good[1:],
		"short key":     "a:" + base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"long key":      "a:" + base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"not base64":    "a:" + strings.Repeat("!", 44),
		"twice":         good + "," + good,
		"trailing":      good + ",",
		"second is bad": good + ",sUpErSeCrEt",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, err := secret.ParseKeyring(secret.New(entries))
			require.Error(t, err)
			require.Nil(t, k)
			for _, part := range strings.FieldsFunc(entries, func(r rune) bool { return r == ',' || r == ':' }) {
				if len(part) > 3 {
					require.NotContains(t, err.Error(), part)
				}
			}
		})
	}
}

func TestKeyringIsNeverPrinted(t *testing.T) {
	t.Parallel()
	k := ring(t, key("k1", 'k'))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, value := range []any{k, struct{ k *secret.Keyring }{k}, []*secret.Keyring{k}} {
			printed := fmt.Sprintf(verb, value)
			require.NotContains(t, printed, "107 107", verb)
			require.NotContains(t, printed, "kkkk", verb)
			require.NotContains(t, printed, "6b6b", verb)
			require.NotContains(t, printed, "0x6b, 0x6b", verb)
		}
	}
	require.Equal(t, "keyring of 1, primary k1", fmt.Sprint(k))
}

func TestTokenAndEqual(t *testing.T) {
	t.Parallel()
	a, b := secret.Token(32), secret.Token(32)
	require.Len(t, a, 43)
	require.NotEqual(t, a, b)
	require.NotContains(t, a, "=")
	require.True(t, secret.Equal(a, a))
	require.True(t, secret.Equal("", ""))
	require.False(t, secret.Equal(a, b))
	require.False(t, secret.Equal(a, a[:42]))
	require.False(t, secret.Equal(a, ""))
}

// No text that the fuzzer makes may open: the key is a new one in each of its processes.
func FuzzOpen(f *testing.F) {
	_, random, _ := strings.Cut(secret.NewKey().Reveal(), ":")
	k := ring(f, "k1:"+random, key("k0", 'o'))
	for _, seed := range []string{
		ring(f, key("k1", 'k')).Seal([]byte("p"), nil), "", "v1.", "v1.k1.", "v1..", "v2.k1.AAAA",
		"v1.k0." + strings.Repeat("A", 60),
	} {
		f.Add(seed, []byte(nil))
	}
	f.Fuzz(func(t *testing.T, text string, ad []byte) {
		opened, err := k.Open(text, ad)
		require.ErrorIs(t, err, secret.ErrOpen)
		require.Nil(t, opened)
		k.NeedsReseal(text)
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	k, plain := ring(b, key("k1", 'k')), []byte(strings.Repeat("p", 64))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Open(k.Seal(plain, nil), nil); err != nil {
			b.Fatal(err)
		}
	}
}
