package textindex

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestGrams(t *testing.T) {
	t.Parallel()
	require.Empty(t, Grams("1/", ""))
	require.Equal(t, []string{"1/平"}, Grams("1/", "平"))
	require.Equal(t, []string{"平台研发", "台研发", "研发", "发"}, Grams("", "平台研发"))
	require.Equal(t, []string{"1/abcdefghijkl", "1/bcdefghijklm", "1/cdefghijklm"}, Grams("1/", "abcdefghijklm")[:3])
}

func TestContaining(t *testing.T) {
	t.Parallel()
	eq := func(gram string) docstore.Filter { return docstore.Eq("grams", docstore.Text("1/"+gram)) }
	for part, want := range map[string]docstore.Filter{
		"":             docstore.Prefix("grams", "1/"),
		"台":            docstore.Prefix("grams", "1/台"),
		"平台研发":         docstore.Prefix("grams", "1/平台研发"),
		"abcdefghijkl": docstore.Prefix("grams", "1/abcdefghijkl"),
		"abcdefghijklm": docstore.And(eq("abcdefghijkl"), eq("bcdefghijklm"),
			docstore.Contains("whole", "abcdefghijklm")),
		"abcdefghijklmnopqrstuvwxyz": docstore.And(eq("abcdefghijkl"), eq("mnopqrstuvwx"), eq("opqrstuvwxyz"),
			docstore.Contains("whole", "abcdefghijklmnopqrstuvwxyz")),
	} {
		require.Equal(t, want, Containing("grams", "whole", "1/", part), part)
	}
	require.Len(t, Containing("grams", "whole", "", strings.Repeat("a", 1000)).Sub, maxGrams+1)
}

// TestContainingMeansContains compares with strings.Contains, on texts that have much in common.
func TestContainingMeansContains(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("aab平平台"))
		text := string(rapid.SliceOfN(letters, 0, 40).Draw(t, "text"))
		part := string(rapid.SliceOfN(letters, 0, 30).Draw(t, "part"))
		if rapid.Bool().Draw(t, "of the text") {
			runes := []rune(text)
			from := rapid.IntRange(0, len(runes)).Draw(t, "from")
			part = string(runes[from:rapid.IntRange(from, len(runes)).Draw(t, "to")])
		}
		if text == "" {
			return // an empty text has no entry
		}
		grams := Grams("1/", text)
		var selects func(f docstore.Filter) bool
		selects = func(f docstore.Filter) bool {
			switch f.Op {
			case docstore.OpAnd:
				return !slices.ContainsFunc(f.Sub, func(s docstore.Filter) bool { return !selects(s) })
			case docstore.OpPrefix:
				return slices.ContainsFunc(grams, func(g string) bool { return strings.HasPrefix(g, f.Values[0].Text) })
			case docstore.OpIn:
				return slices.Contains(grams, f.Values[0].Text)
			case docstore.OpContains:
				return strings.Contains(text, f.Values[0].Text)
			}
			t.Fatalf("operation %d", f.Op)
			return false
		}
		require.Equal(t, strings.Contains(text, part), selects(Containing("grams", "whole", "1/", part)),
			"%q in %q", part, text)
	})
}
