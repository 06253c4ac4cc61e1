package textindex

import (
	"slices"
	"unicode/utf8"
)

// Limits on the cost of one document and of one search. What exceeds a limit is left out of the index or of the
// search; nothing fails.
const (
	MaxWords     = 256     // that Words returns for one document
	MaxWordBytes = 64      // longer words are cut at the end of a character
	MaxTerms     = 16      // that Query returns
	maxTextBytes = 8 << 10 // that are read of one text
)

// Words returns the words by which a document with these texts is found, each once, in the order of the texts.
//
// A run of letters, digits and their marks is one word. Han, kana and Hangul are different: each character is a word,
// and so is each pair of neighbours. Chinese and Japanese are written without spaces, and Korean attaches particles
// to nouns and writes compounds as one word, so people search not only for the start of a run. A word ends where such
// a script begins, and the other way round: 李伟2 gives 李, 伟, 李伟, 2.
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
				add(Start(run, MaxWordBytes))
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

// Term is a condition on the Words of a document.
type Term struct {
	Text   string
	Prefix bool // the start of a word is enough
}

// Query returns the terms to look up for a keyword that somebody typed: a document must match all of them. Each word
// may be unfinished. A run of Han, kana or Hangul is found at any position: the document must have all pairs of
// neighbours of the run, not necessarily next to each other, which people do not notice. No terms mean that keyword
// contains nothing to search for.
func Query(keyword string) []Term {
	var terms []Term
	add := func(term Term) {
		if len(terms) < MaxTerms && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for run, cjk := range runs(keyword) {
		if !cjk {
			add(Term{Start(run, MaxWordBytes), true})
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

// Start is the first bytes of a text, at most n, cut at a character's end.
func Start(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
