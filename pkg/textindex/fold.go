// Package textindex turns text into what is stored and asked for when people search: folded words, so that case, accents and width
// don't matter, and characters and pairs of them where a script writes no spaces. The words are kept in a multi-value index; a search
// is a look-up of a few of them.
package textindex

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Key is the form in which two user names or addresses are the same one: compatibility caseless matching (Unicode, D146), in NFKC.
// Accents stay: they tell people apart. Key(Key(s)) == Key(s).
func Key(s string) string {
	if isPlain(s) {
		return lowerASCII(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if isComposed(s) {
		return norm.NFKC.String(foldCase(s)) // the same in a third of the time
	}
	return keyOfAny(s)
}

// keyOfAny is D146 as it stands.
func keyOfAny(s string) string {
	return norm.NFKC.String(foldCase(norm.NFKD.String(foldCase(norm.NFD.String(s)))))
}

// foldCase is full case folding.
func foldCase(s string) string {
	return strings.Map(capitalCherokee, cases.Fold().String(s)) // a Caser may not be shared by goroutines
}

// isComposed reports whether a text has Latin and Cyrillic letters with their accents built in and plain characters only, nothing that
// folding could put into another order.
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

// capitalCherokee has nothing to do for other letters. Unicode folds Cherokee to capitals; cases.Fold swaps its two cases.
func capitalCherokee(r rune) rune {
	switch {
	case r >= 0xAB70 && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case r >= 0x13F8 && r <= 0x13FD:
		return r - 0x13F8 + 0x13F0
	}
	return r
}

// Fold is the form in which searches compare: Key without accents and invisible characters. Fold(Fold(s)) == Fold(s), and what is cut
// out of a folded text is folded.
func Fold(s string) string {
	if isPlain(s) {
		return lowerASCII(s)
	}
	return norm.NFC.String(strings.Map(strip, norm.NFD.String(Key(s))))
}

// strip drops accents, and joins letters that have them built in to those without.
func strip(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case unicode.Is(accents, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Cf, r):
		return -1
	}
	switch r { // no decomposition has these strokes, nor the missing dot
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

// accents are the marks that people leave out when they type: those of Latin, Greek and Cyrillic, Hebrew points, Arabic vowels. Not
// all of Unicode's Mn: in Thai and the scripts of India those are vowels, in Japanese they make が of か.
var accents = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x0300, Hi: 0x036F, Stride: 1}, {Lo: 0x0483, Hi: 0x0487, Stride: 1}, {Lo: 0x0591, Hi: 0x05BD, Stride: 1},
	{Lo: 0x05BF, Hi: 0x05BF, Stride: 1}, {Lo: 0x05C1, Hi: 0x05C2, Stride: 1}, {Lo: 0x05C4, Hi: 0x05C5, Stride: 1}, {Lo: 0x05C7, Hi: 0x05C7, Stride: 1},
	{Lo: 0x0610, Hi: 0x061A, Stride: 1}, {Lo: 0x064B, Hi: 0x065F, Stride: 1}, {Lo: 0x0670, Hi: 0x0670, Stride: 1}, {Lo: 0x1AB0, Hi: 0x1AFF, Stride: 1},
	{Lo: 0x1DC0, Hi: 0x1DFF, Stride: 1}, {Lo: 0x20D0, Hi: 0x20F0, Stride: 1}, {Lo: 0xFE20, Hi: 0xFE2F, Stride: 1},
}}

// isPlain reports whether nothing but ASCII letters changes when s is folded.
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

// isPlainCJK is true for the blocks of Chinese, Japanese and Korean that have neither case nor marks nor other forms.
func isPlainCJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FC
}

// lowerASCII is strings.ToLower for ASCII letters only. (ToLower goes rune by rune where there is anything else.)
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
