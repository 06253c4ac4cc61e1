package docstoretest

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/textindex"
)

var searchCases = []testCase{
	{name: "searches/random texts", run: randomTexts},
}

// Names and numbers that have beginnings in common, of every length.
var (
	someName   = rapid.StringMatching(`(li|liu|wang|8613)[12]{0,7}|[李伟王]{1,3}`)
	someSearch = rapid.StringMatching(`(l|li|liu|wa|wang|8|8613)[12]{0,7}|[李伟王]{1,3}`)
)

// randomTexts writes texts and searches for words in them. Each run of rapid is a tenant.
func randomTexts(t *testing.T, s *suite) {
	f := s.open(t)
	var tenants atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		ctx := request.With(t.Context(), request.Info{Tenant: fmt.Sprint("tenant", tenants.Add(1))})
		texts := map[string]string{} // by id
		for range rapid.IntRange(1, 6).Draw(rt, "transactions") {
			if err := f.writeTexts(ctx, rt, texts); err != nil {
				rt.Fatal(err)
			}
			for range 3 {
				keyword := strings.Join(rapid.SliceOfN(someSearch, 1, 2).Draw(rt, "keyword"), " ")
				f.checkSearch(ctx, rt, keyword, texts)
			}
		}
	})
	f.check(t)
}

// writeTexts inserts, changes and deletes texts in one transaction.
func (f *fixture) writeTexts(ctx context.Context, rt *rapid.T, texts map[string]string) error {
	var steps []step
	for range rapid.IntRange(1, 8).Draw(rt, "steps") {
		id, op := someID.Draw(rt, "id"), rapid.SampledFrom([]string{"put", "put", "delete"}).Draw(rt, "op")
		text := strings.Join(rapid.SliceOfN(someName, 0, 3).Draw(rt, "text"), " ")
		if texts[id] = text; op == "delete" {
			delete(texts, id)
		}
		steps = append(steps, step{op, thing(id, name(text), words(textindex.Starts(textindex.Words(text))...))})
	}
	return f.write(ctx, func(tx *docstore.Tx) error {
		for _, st := range steps {
			if err := f.step(ctx, tx, st); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkSearch compares what a keyword finds, and the total, with the texts.
func (f *fixture) checkSearch(ctx context.Context, rt *rapid.T, keyword string, texts map[string]string) {
	page, err := f.things.Page(ctx, f.Store, docstore.Query{Filter: textindex.Matching("words", keyword),
		Limit: len(texts) + 1, Count: true})
	if err != nil {
		rt.Fatal(err)
	}
	var got, want []string
	for i := range page.Docs {
		got = append(got, page.Docs[i].ID)
	}
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		if hasWords(texts[id], keyword) {
			want = append(want, id)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || page.Total != int64(len(want)) {
		rt.Fatalf("%q finds %v, total %d; it must find %v in %q", keyword, got, page.Total, want, texts)
	}
}

var wordRuns = regexp.MustCompile(`[a-z0-9]+|\p{Han}+`)

// hasWords reports whether a keyword finds a text, in the simplest way: each of its words begins a word of the text,
// and each pair of neighbouring characters of its Han words is in the text.
func hasWords(text, keyword string) bool {
	for _, word := range wordRuns.FindAllString(keyword, -1) {
		if word[0] < 0x80 {
			if !slices.ContainsFunc(wordRuns.FindAllString(text, -1), func(w string) bool {
				return strings.HasPrefix(w, word)
			}) {
				return false
			}
			continue
		}
		characters := []rune(word)
		for i := range max(1, len(characters)-1) {
			if !strings.Contains(text, string(characters[i:min(i+2, len(characters))])) {
				return false
			}
		}
	}
	return true
}
