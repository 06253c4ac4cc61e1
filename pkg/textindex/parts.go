package textindex

import (
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	gramSize = 12 // characters: a part that is not longer begins entries of those texts alone that contain it
	maxGrams = 4  // that a filter asks for: few leave little to be tested
)

// Grams are the entries of a text in an index of parts: for each of its characters, that and the eleven after it,
// where there are as many. Each entry begins with within, so that an index can hold many sets of texts apart. See
// Containing.
func Grams(within, text string) []string {
	starts := characters(text)
	grams := make([]string, 0, len(starts)-1)
	for i, start := range starts[:len(starts)-1] {
		grams = append(grams, within+text[start:starts[min(i+gramSize, len(starts)-1)]])
	}
	return grams
}

// Containing selects the texts that contain a part: grams is a list index of their Grams, whole a text index of themselves. Text and part
// must have been made alike, by Key say.
func Containing(grams, whole, within, part string) docstore.Filter {
	starts := characters(part)
	last := len(starts) - 1 - gramSize // where the last whole gram begins
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

// characters lists where the characters of a text begin, and its end.
func characters(text string) []int {
	starts := make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		starts = append(starts, i)
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return append(starts, len(text))
}
