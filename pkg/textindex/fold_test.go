package textindex

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeyAndFold(t *testing.T) {
	t.Parallel()
	// The third column is the Fold of the text.
	for _, tt := range []struct{ text, key, fold string }{
		{"", "", ""},
		{"Li.Wei+1@Example.COM", "li.wei+1@example.com", "li.wei+1@example.com"},
		{"[\\]^_`{|}~@AZaz", "[\\]^_`{|}~@azaz", "[\\]^_`{|}~@azaz"},
		{"李伟Wei", "李伟wei", "李伟wei"},
		{"Ｌｉ　１２３＠", "li 123@", "li 123@"},      // full width
		{"ｱﾊﾟｰﾄ", "アパート", "アパート"},              // half width; the mark is joined to its letter
		{"か\u3099", "が", "が"},                  // not か without its mark
		{"각 \u1100\u1161\u11a8", "각 각", "각 각"}, // Hangul, composed and decomposed
		{"José", "josé", "jose"},
		{"Jose\u0301", "josé", "jose"}, // decomposed
		{"STRASSE Straße", "strasse strasse", "strasse strasse"},
		{"ΣΊΣΥΦΟΣ σίσυφος", "σίσυφοσ σίσυφοσ", "σισυφοσ σισυφοσ"}, // final sigma
		{"İstanbul ISPARTA ısparta", "i\u0307stanbul isparta ısparta", "istanbul isparta isparta"},
		{"Łukasz Øre Đoković Ħal", "łukasz øre đoković ħal", "lukasz ore dokovic hal"},
		{"Ёлкин Й", "ёлкин й", "елкин и"},
		{"ﬁn ㎏ ① ½ Ⅳ", "fin kg 1 1⁄2 iv", "fin kg 1 1⁄2 iv"},
		{"שָׁלוֹם", "שָׁלוֹם", "שלום"},   // Hebrew points
		{"مُحَمَّد", "مُحَمَّد", "محمد"}, // Arabic vowels
		{"हिन्दी", "हिन्दी", "हिन्दी"},   // vowel marks stay
		{"ที่", "ที่", "ที่"},
		{"so\u00adft a\u200db", "so\u00adft a\u200db", "soft ab"}, // invisible characters
		{"葛\U000E0100", "葛\U000E0100", "葛"},                       // a variation selector
		{"𠮷野", "𠮷野", "𠮷野"},                                        // outside the basic plane
		{"⽊ 豈", "木 豈", "木 豈"},                                     // radicals and compatibility characters
		{"a\xffb", "a\uFFFDb", "a\uFFFDb"},                        // not valid UTF-8
		{"ᏣᎳᎩ ꮳꮃꭹ", "ᏣᎳᎩ ᏣᎳᎩ", "ᏣᎳᎩ ᏣᎳᎩ"},
		{"ᾳ \u1fb3\u0345", "αι αιι", "αι αιι"},
	} {
		require.Equal(t, tt.key, Key(tt.text), "%q", tt.text)
		require.Equal(t, tt.fold, Fold(tt.text), "%q", tt.text)
	}
}

// All characters that differ only in case, according to Unicode, have one Key.
func TestKeyIsCaseless(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if other := unicode.SimpleFold(r); other != r {
			require.Equal(t, Key(string(r)), Key(string(other)), "%U %U", r, other)
			checkFold(t, string(r))
			checkFold(t, "α"+string(r)+"\u0301")
		}
	}
}

// Key's shortcut for composed characters gives the same as keyOfAny: for each such character, alone and between
// others.
func TestComposedCharacters(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r <= 0x1EFF; r++ {
		if isComposed(string(r)) {
			checkFold(t, string(r))
			checkFold(t, "é"+string(r)+"é")
			checkFold(t, "ß"+string(r)+"İ")
			checkFold(t, "ǰ"+string(r)+"李")
		}
	}
}

// texts generates texts of characters that are difficult to fold, and of any characters.
func texts() *rapid.Generator[string] {
	awkward := []rune("aZ09 .-_'ÀéßſİıøŁǅΣςσЁй李伟𠮷々〇がかカｶﾞー한국\u1100\u1161\u11a8ไทย्हि½①Ⅳﬁ㎏㍿Ａ１" +
		"\u0301\u0345\u3099\u200d\u00ad\ufe0f\u0323ᾳ😀\ufffd")
	return rapid.StringOfN(rapid.OneOf(rapid.SampledFrom(awkward), rapid.Rune()), 0, 40, -1)
}

func TestFoldingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkFold(t, texts().Draw(t, "text")) })
}

func checkFold(t require.TestingT, text string) {
	key, fold := Key(text), Fold(text)
	require.True(t, utf8.ValidString(key) || isPlain(text))
	require.Equal(t, key, Key(key), "%+q", text)
	require.Equal(t, key, keyOfAny(strings.ToValidUTF8(text, "\uFFFD")), "the shortcuts give the same: %+q", text)
	require.Equal(t, fold, Fold(fold), "%+q", text)
	require.Equal(t, fold, Fold(key), "%+q", text)
}

// The shortcut for plain characters gives the same as the full way: for each such character, alone and between
// others.
func TestPlainCharacters(t *testing.T) {
	t.Parallel()
	plain := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && isPlain(string(r)) {
			plain++
			key, fold, slow := Key(string(r)), Fold(string(r)), "é"+string(r)+"é"
			if Key(slow) != "é"+key+"é" || Fold(slow) != "e"+fold+"e" { // require would be slow for so many characters
				require.Fail(t, "differs", "%U", r)
			}
		}
	}
	require.Greater(t, plain, 30_000)
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{
		"", "Straße", "ｶﾞ", "\u0345\u0301", "é\xff", "\u1fb3\u0345", "\u0f73\u0f71", "\U0001d15e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkFold(t, text) })
}
