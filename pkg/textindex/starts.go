package textindex

import "github.com/idplatform/idplatform/pkg/docstore"

// sizes are the lengths of the entries that an index has for a word, each with the mark before its entries. Words have
// no such marks, so entries of different sizes do not mix.
var sizes = [...]struct {
	mark  string
	bytes int
}{{"", 4}, {"+", 8}, {"*", MaxWordBytes}}

// Starts returns the entries of words for an index that Matching searches: the first four bytes of each word, its first
// eight bytes if it is longer, and the whole word if it is longer still. A search reads the entries of the least size
// that tells whether a word begins with the text. Many words share a start, so it reads few entries, even if most words
// are unique, such as user names with a number.
func Starts(words []string) []string {
	starts := make([]string, 0, 2*len(words))
	for _, word := range words {
		for _, size := range sizes {
			starts = append(starts, size.mark+Start(word, size.bytes))
			if len(word) <= size.bytes {
				break
			}
		}
	}
	return starts
}

// Matching selects the documents that a keyword finds: see Query. index names a list index of the Starts of their
// Words.
func Matching(index, keyword string) docstore.Filter {
	terms := Query(keyword)
	if len(terms) == 0 {
		return docstore.Or() // a keyword of punctuation only is in no text
	}
	all := make([]docstore.Filter, len(terms))
	for i, term := range terms {
		entry := entryOf(term.Text)
		if term.Prefix {
			all[i] = docstore.Prefix(index, entry)
		} else {
			// The start of another word may be the same only if it is the first character of a pair. The character is
			// then a word of the document, too.
			all[i] = docstore.Eq(index, docstore.Text(entry))
		}
	}
	return docstore.And(all...)
}

// entryOf is the beginning of the entries to look for, which are of the least size that has the whole text.
func entryOf(text string) string {
	i := 0
	for len(text) > sizes[i].bytes {
		i++
	}
	return sizes[i].mark + text
}
