package textindex

import (
	"slices"
	"unicode/utf8"
)

// What one document and one search can cost. What is beyond a limit is not found, or not asked for; nothing fails.
const (
	MaxWords     = 256     // that Words returns
	MaxWordBytes = 64      // longer words are cut, at a character's end
	MaxTerms     = 16      // that Query returns
	maxTextBytes = 8 << 10 // that are read of one text
)

// Words are what a document with these texts is found by, each once, in the order of the texts.
//
// A run of letters, digits and their marks is a word. But Han, kana and Hangul give each character, and each pair of neighbours:
// Chinese and Japanese are written without spaces, and Korean hangs particles onto its nouns and writes compounds as one, so there the
// start of a run is not all that people look for. Where such a script begins or ends, a word does: 李伟2 gives 李, 伟, 李伟, 2.
func Words(texts ...string) []string {
	words := make([]string, 0, 16)
	add := func(word string) {
		if len(words) < MaxWords && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, text := range texts {
		for run, cjk := range runs(text) {
			if len(words) == MaxWords {
				return words
			}
			if !cjk {
				add(cut(run, MaxWordBytes))
				continue
			}
			before := 0
			for i, r := range run {
				end := i + utf8.RuneLen(r)
				add(run[i:end])
				if i > 0 {
					add(run[before:end])
				}
				before = i
			}
		}
	}
	return words
}

// Term is one thing that a document must have among its Words to be found.
type Term struct {
	Text   string
	Prefix bool // it may be no more than the start of a word
}

// Query is what to ask for when somebody types keyword: every term must match. Words may be left unfinished, each of them. A run of Han,
// kana or Hangul is found wherever it stands: its pairs of neighbours must be there (not necessarily in one place, which people
// don't notice). No terms: there is nothing in keyword to look for.
func Query(keyword string) []Term {
	var terms []Term
	add := func(term Term) {
		if len(terms) < MaxTerms && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for run, cjk := range runs(keyword) {
		if !cjk {
			add(Term{cut(run, MaxWordBytes), true})
			continue
		}
		_, first := utf8.DecodeRuneInString(run)
		if first == len(run) {
			add(Term{run, false})
			continue
		}
		before := 0
		for i, r := range run {
			if i > 0 {
				add(Term{run[before : i+utf8.RuneLen(r)], false})
			}
			before = i
		}
	}
	return terms
}

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
