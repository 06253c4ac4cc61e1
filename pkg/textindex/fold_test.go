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
	for _, tt := range []struct{ text, key, fold string }{
		{"", "", ""},
		{"Li.Wei+1@Example.COM", "li.wei+1@example.com", "li.wei+1@example.com"},
		{"[\\]^_`{|}~@AZaz", "[\\]^_`{|}~@azaz", "[\\]^_`{|}~@azaz"},
		{"李伟Wei", "李伟wei", "李伟wei"},
		{"Ｌｉ　１２３＠", "li 123@", "li 123@"},                                                          // full width
		{"ｱﾊﾟｰﾄ", "アパート", "アパート"},                                                                  // half width, its mark joined
		{"か\u3099", "が", "が"},                                                                      // else it would be a か
		{"각 \u1100\u1161\u11a8", "각 각", "각 각"},                                                     // Hangul by letters
		{"José", "josé", "jose"},                                                                   //
		{"Jose\u0301", "josé", "jose"},                                                             // the same in two characters
		{"STRASSE Straße", "strasse strasse", "strasse strasse"},                                   //
		{"ΣΊΣΥΦΟΣ σίσυφος", "σίσυφοσ σίσυφοσ", "σισυφοσ σισυφοσ"},                                  // final sigma
		{"İstanbul ISPARTA ısparta", "i\u0307stanbul isparta ısparta", "istanbul isparta isparta"}, //
		{"Łukasz Øre Đoković Ħal", "łukasz øre đoković ħal", "lukasz ore dokovic hal"},             //
		{"Ёлкин Й", "ёлкин й", "елкин и"},                                                          //
		{"ﬁn ㎏ ① ½ Ⅳ", "fin kg 1 1⁄2 iv", "fin kg 1 1⁄2 iv"},                                       //
		{"שָׁלוֹם", "שָׁלוֹם", "שלום"},                                                             // Hebrew points
		{"مُحَمَّد", "مُحَمَّد", "محمد"},                                                           // Arabic vowels
		{"हिन्दी", "हिन्दी", "हिन्दी"},                                                             // vowels of another kind stay
		{"ที่", "ที่", "ที่"},                                                                      //
		{"so\u00adft a\u200db", "so\u00adft a\u200db", "soft ab"},                                  // invisible
		{"葛\U000E0100", "葛\U000E0100", "葛"},                                                        // a variant's selector
		{"𠮷野", "𠮷野", "𠮷野"},                                                                         // four bytes
		{"⽊ 豈", "木 豈", "木 豈"},                                                                      // radicals and compatibility characters
		{"a\xffb", "a\uFFFDb", "a\uFFFDb"},                                                         // not UTF-8
		{"ᏣᎳᎩ ꮳꮃꭹ", "ᏣᎳᎩ ᏣᎳᎩ", "ᏣᎳᎩ ᏣᎳᎩ"},
		{"ᾳ \u1fb3\u0345", "αι αιι", "αι αιι"}, //
	} {
		require.Equal(t, tt.key, Key(tt.text), "%q", tt.text)
		require.Equal(t, tt.fold, Fold(tt.text), "%q", tt.text)
	}
}

// Characters that Unicode takes for one another but for their case have one Key: all of them.
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

// The middle way is the long one too: every character that takes it, alone and between others.
func TestComposedCharacters(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r <= 0x1EFF; r++ {
		if isComposed(string(r)) {
			for _, text := range []string{string(r), "é" + string(r) + "é", "ß" + string(r) + "İ", "ǰ" + string(r) + "李"} {
				checkFold(t, text)
			}
		}
	}
}

// texts are made of characters that are awkward in one way or another, and of any.
func texts() *rapid.Generator[string] {
	awkward := []rune("aZ09 .-_'ÀéßſİıøŁǅΣςσЁй李伟𠮷々〇がかカｶﾞー한국\u1100\u1161\u11a8ไทย्हि½①Ⅳﬁ㎏㍿Ａ１\u0301\u0345\u3099\u200d\u00ad\ufe0f\u0323ᾳ😀\ufffd")
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
	require.Equal(t, key, keyOfAny(strings.ToValidUTF8(text, "\uFFFD")), "the short ways lead to the same: %+q", text)
	require.Equal(t, fold, Fold(fold), "%+q", text)
	require.Equal(t, fold, Fold(key), "%+q", text)
}

// The quick way is the same as the long one, for every character that takes it, alone and next to others.
func TestPlainCharacters(t *testing.T) {
	t.Parallel()
	plain := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && isPlain(string(r)) {
			plain++
			key, fold, slow := Key(string(r)), Fold(string(r)), "é"+string(r)+"é"
			if Key(slow) != "é"+key+"é" || Fold(slow) != "e"+fold+"e" { // require is slow, for so many
				require.Fail(t, "differs", "%U", r)
			}
		}
	}
	require.Greater(t, plain, 30_000)
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{"", "Straße", "ｶﾞ", "\u0345\u0301", "é\xff", "\u1fb3\u0345", "\u0f73\u0f71", "\U0001d15e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkFold(t, text) })
}
