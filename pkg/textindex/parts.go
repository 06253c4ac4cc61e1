package textindex

import (
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	gramSize = 12 // characters. A part of at most this size can be found as the prefix of a gram.
	maxGrams = 4  // the most grams that a filter looks up: few of them leave few texts to compare
)

// Grams returns the entries of a text for an index of parts: one for each character, made of it and the eleven
// characters that follow, or fewer at the end. Each entry starts with within, so that one index can hold separate
// sets of texts. See Containing.
func Grams(within, text string) []string {
	starts := characters(text)
	grams := make([]string, 0, len(starts)-1)
	for i, start := range starts[:len(starts)-1] {
		grams = append(grams, within+text[start:starts[min(i+gramSize, len(starts)-1)]])
	}
	return grams
}

// Containing selects the texts that contain part. grams names a list index of their Grams, whole a text index of the
// texts themselves. Text and part must have been folded in the same way, for example by Key.
func Containing(grams, whole, within, part string) docstore.Filter {
	starts := characters(part)
	last := len(starts) - 1 - gramSize // the start of the last full gram
	if last <= 0 {
		return docstore.Prefix(grams, within+part)
	}
	var all []docstore.Filter
	has := func(at int) {
		all = append(all, docstore.Eq(grams, docstore.Text(within+part[starts[at]:starts[at+gramSize]])))
	}
	for at, step := 0, max(gramSize, last/(maxGrams-1)+1); at < last; at += step {
		has(at)
	}
	has(last)
	return docstore.And(append(all, docstore.Contains(whole, part))...)
}

// characters returns the byte offsets of the characters of a text, and the text's length.
func characters(text string) []int {
	starts := make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		starts = append(starts, i)
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return append(starts, len(text))
}
