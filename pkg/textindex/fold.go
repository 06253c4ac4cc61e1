// Package textindex makes the words that are stored and looked up for text search. Words are folded, so that case,
// accents and character width do not matter. In scripts without spaces between words, the characters and pairs of
// neighbouring characters count as words. The words of a document are kept in a multi-value index; a search looks up
// a few of them.
package textindex

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Key returns the form in which equal user names or addresses are equal: compatibility caseless matching (Unicode,
// definition D146), in NFKC. It keeps accents, which distinguish people's names. Key(Key(s)) == Key(s).
func Key(s string) string {
	if isPlain(s) {
		return lowerASCII(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if isComposed(s) {
		return norm.NFKC.String(foldCase(s)) // same result, in a third of the time
	}
	return keyOfAny(s)
}

// keyOfAny is Unicode's definition D146 without shortcuts.
func keyOfAny(s string) string {
	return norm.NFKC.String(foldCase(norm.NFKD.String(foldCase(norm.NFD.String(s)))))
}

// foldCase is Unicode's full case folding.
func foldCase(s string) string {
	// A Caser must not be shared by goroutines, so each call makes one.
	return strings.Map(capitalCherokee, cases.Fold().String(s))
}

// isComposed reports whether s has only plain characters and precomposed Latin and Cyrillic letters, whose order
// folding cannot change.
func isComposed(s string) bool {
	for _, r := range s {
		switch {
		case r < 0x0300, r >= 0x0400 && r <= 0x0481, r >= 0x1E00 && r <= 0x1EFF, isPlainCJK(r):
		default:
			return false
		}
	}
	return norm.NFKC.IsNormalString(s)
}

// capitalCherokee returns the capital of a Cherokee letter; other letters stay. Unicode folds Cherokee to capitals,
// while cases.Fold swaps its two cases.
func capitalCherokee(r rune) rune {
	switch {
	case r >= 0xAB70 && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case r >= 0x13F8 && r <= 0x13FD:
		return r - 0x13F8 + 0x13F0
	}
	return r
}

// Fold returns the form in which searches compare texts: Key without accents and invisible characters. Fold(Fold(s))
// == Fold(s), and every part of a folded text is folded.
func Fold(s string) string {
	if isPlain(s) {
		return lowerASCII(s)
	}
	return norm.NFC.String(strings.Map(strip, norm.NFD.String(Key(s))))
}

// strip removes accents and invisible characters, and replaces letters that contain a stroke.
func strip(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case unicode.Is(accents, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Cf, r):
		return -1
	}
	switch r { // Unicode does not decompose letters with a stroke, nor the dotless i
	case 'ø':
		return 'o'
	case 'ł':
		return 'l'
	case 'đ':
		return 'd'
	case 'ħ':
		return 'h'
	case 'ŧ':
		return 't'
	case 'ı':
		return 'i'
	}
	return r
}

// accents are the marks that people often leave out when they type: those of Latin, Greek and Cyrillic, the Hebrew
// points and the Arabic vowels. They are not all of Unicode's class Mn, which in Thai and the scripts of India
// includes vowels, and in Japanese the mark that makes か into が.
var accents = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0300, Hi: 0x036F, Stride: 1}, {Lo: 0x0483, Hi: 0x0487, Stride: 1}, {Lo: 0x0591, Hi: 0x05BD, Stride: 1},
	{Lo: 0x05BF, Hi: 0x05BF, Stride: 1}, {Lo: 0x05C1, Hi: 0x05C2, Stride: 1}, {Lo: 0x05C4, Hi: 0x05C5, Stride: 1},
	{Lo: 0x05C7, Hi: 0x05C7, Stride: 1}, {Lo: 0x0610, Hi: 0x061A, Stride: 1}, {Lo: 0x064B, Hi: 0x065F, Stride: 1},
	{Lo: 0x0670, Hi: 0x0670, Stride: 1}, {Lo: 0x1AB0, Hi: 0x1AFF, Stride: 1},
	{Lo: 0x1DC0, Hi: 0x1DFF, Stride: 1}, {Lo: 0x20D0, Hi: 0x20F0, Stride: 1}, {Lo: 0xFE20, Hi: 0xFE2F, Stride: 1},
}}

// isPlain reports whether folding changes nothing in s but ASCII capitals.
func isPlain(s string) bool {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !isPlainCJK(r) {
			return false
		}
		i += size
	}
	return true
}

// isPlainCJK reports whether r is in a block of Chinese, Japanese or Korean whose characters have no case, no marks
// and no other forms.
func isPlainCJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 ||
		r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FC
}

// lowerASCII is strings.ToLower for ASCII letters only. ToLower is slower on other texts, because it goes rune by
// rune.
func lowerASCII(s string) string {
	upper := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	if strings.IndexFunc(s, upper) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if upper(rune(c)) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
