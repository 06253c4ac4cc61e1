package textindex

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

type class int

const (
	separator class = iota
	mark            // belongs to the word before it
	word
	cjk
)

// runs folds a text and yields its runs of word characters and its runs of CJK characters. All are substrings of the
// folded text, so they need no memory of their own.
func runs(text string) iter.Seq2[string, bool] {
	return func(yield func(run string, isCJK bool) bool) {
		text = Fold(Start(text, maxTextBytes))
		start, current := 0, separator
		for i := 0; i < len(text); {
			next, size := classify(text[i:])
			if next == mark {
				next = separator
				if current == word {
					next = word
				}
			}
			if next != current {
				if current != separator && !yield(text[start:i], current == cjk) {
					return
				}
				start, current = i, next
			}
			i += size
		}
		if current != separator {
			yield(text[start:], current == cjk)
		}
	}
}

// classify returns the class and size of the first character of s.
func classify(s string) (class, int) {
	c := s[0]
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9': // a folded text has no capitals
		return word, 1
	case c < utf8.RuneSelf:
		return separator, 1
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	// Most of Han; and the long vowel mark of kana, which Unicode assigns to no script.
	case r >= 0x4E00 && r <= 0x9FFF, r == 'ー':
		return cjk, size
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return cjk, size
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return word, size
	case unicode.IsMark(r):
		return mark, size
	}
	return separator, size
}
