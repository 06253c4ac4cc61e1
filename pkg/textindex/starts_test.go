package textindex

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestStarts(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{ // the entries, separated by spaces
		"li":            "li",
		"wang":          "wang",
		"wang1":         "wang +wang1",
		"wang1234":      "wang +wang1234",
		"wang12345":     "wang +wang1234 *wang12345",
		"иванов":        "ив +иван *иванов",
		"伟":             "伟",
		"李伟":            "李 +李伟",
		"𠮷野":            "𠮷 +𠮷野",
		"हिन्दी":        "ह +हि *हिन्दी",
		"8613800123456": "8613 +86138001 *8613800123456",
	} {
		require.Equal(t, strings.Fields(want), Starts([]string{word}), word)
	}
	require.Empty(t, Starts(nil))
}

func TestMatching(t *testing.T) {
	t.Parallel()
	begins := func(entry string) docstore.Filter { return docstore.Prefix("words", entry) }
	is := func(entry string) docstore.Filter { return docstore.Eq("words", docstore.Text(entry)) }
	long := strings.Repeat("x", MaxWordBytes)
	for keyword, want := range map[string]docstore.Filter{
		"":             docstore.Or(),
		"...":          docstore.Or(),
		"w":            begins("w"),
		"wang":         begins("wang"),
		"wang1":        begins("+wang1"),
		"wang1234":     begins("+wang1234"),
		"wang12345":    begins("*wang12345"),
		long + "y":     begins("*" + long),
		"伟":            is("伟"),
		"𠮷野":           is("+𠮷野"),
		"王小明 li":       docstore.And(is("+王小"), is("+小明"), begins("li")),
		"Ivan Иван.Ив": docstore.And(begins("ivan"), begins("+иван"), begins("ив")),
	} {
		require.Equal(t, want, Matching("words", keyword), keyword)
	}
}

// The filter of a keyword selects the Starts of exactly the texts whose Words the keyword's terms are in. The texts
// have many beginnings in common, of all sizes.
func TestMatchingMeansFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.StringMatching(`[a1李伟𠮷é]{1,14}`)
		text := strings.Join(rapid.SliceOfN(pieces, 1, 4).Draw(t, "text"), " ")
		keyword := strings.Join(rapid.SliceOfN(pieces, 0, 2).Draw(t, "keyword"), " ")
		if rapid.Bool().Draw(t, "of the text") {
			runes := []rune(text)
			from := rapid.IntRange(0, len(runes)).Draw(t, "from")
			keyword += string(runes[from:rapid.IntRange(from, len(runes)).Draw(t, "to")])
		}
		starts := Starts(Words(text))
		require.Equal(t, found(text, keyword), selects(Matching("words", keyword), starts), "%q in %q", keyword, text)
	})
}

// selects reports whether a filter of one list index selects a document with these entries.
func selects(f docstore.Filter, entries []string) bool {
	some := func(accepts func(entry string) bool) bool { return slices.ContainsFunc(entries, accepts) }
	switch f.Op {
	case docstore.OpAnd:
		return !slices.ContainsFunc(f.Sub, func(s docstore.Filter) bool { return !selects(s, entries) })
	case docstore.OpPrefix:
		return some(func(entry string) bool { return strings.HasPrefix(entry, f.Values[0].Text) })
	case docstore.OpIn:
		return some(func(entry string) bool { return entry == f.Values[0].Text })
	}
	return false // an "or" without parts
}
