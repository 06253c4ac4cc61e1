package textindex

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		texts []string
		want  string // words, separated by spaces
	}{
		{nil, ""},
		{[]string{"", " .-_ ", "😀"}, ""},
		{[]string{"Ada Lovelace", "ada@example.com"}, "ada lovelace example com"},
		{[]string{"A-17", "room12 7b"}, "a 17 room12 7b"},
		{[]string{"O'Neil snake_case"}, "o neil snake case"},
		{[]string{"李伟2"}, "李 伟 李伟 2"},
		{[]string{"李"}, "李"},
		{[]string{"王小明,李 明"}, "王 小 王小 明 小明 李"},
		{[]string{"T恤衫"}, "t 恤 衫 恤衫"},
		{[]string{"明明明"}, "明 明明"},
		{[]string{"カード ガー"}, "カ ー カー ド ード ガ ガー"},
		{[]string{"佐々木と𠮷野"}, "佐 々 佐々 木 々木 と 木と 𠮷 と𠮷 野 𠮷野"},
		{[]string{"김철수는"}, "김 철 김철 수 철수 는 수는"},
		{[]string{"José हिन्दी ภาษาไทย"}, "jose हिन्दी ภาษาไทย"},
		{[]string{"①½ ㎏"}, "11 2 kg"},
		{[]string{"\u0301 a\u0301", "् क"}, "a क"},
		{[]string{"a\xffb"}, "a b"},
		{[]string{strings.Repeat("x", 100)}, strings.Repeat("x", 64)},
		{
			[]string{strings.Repeat("é", 70) + " " + "x" + strings.Repeat("д", 70)},
			strings.Repeat("e", 64) + " x" + strings.Repeat("д", 31),
		},
	} {
		require.Equal(t, strings.Fields(tt.want), Words(tt.texts...), "%q", tt.texts)
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	prefix, exact := func(s string) Term { return Term{s, true} }, func(s string) Term { return Term{s, false} }
	for _, tt := range []struct {
		keyword string
		want    []Term
	}{
		{"", nil},
		{" -.!😀", nil},
		{"Ada", []Term{prefix("ada")}},
		{"ada LOVE ada", []Term{prefix("ada"), prefix("love")}},
		{"A-17", []Term{prefix("a"), prefix("17")}},
		{"李", []Term{exact("李")}},
		{"𠮷", []Term{exact("𠮷")}},
		{"李伟", []Term{exact("李伟")}},
		{"王小明", []Term{exact("王小"), exact("小明")}},
		{"李 伟2b", []Term{exact("李"), exact("伟"), prefix("2b")}},
		{"José", []Term{prefix("jose")}},
		{strings.Repeat("x", 100), []Term{prefix(strings.Repeat("x", 64))}},
	} {
		require.Equal(t, tt.want, Query(tt.keyword), tt.keyword)
	}
	require.Len(t, Query("a b c d e f g h i j k l m n o p q r s t"), MaxTerms)
	require.Len(t, Query("一二三四五六七八九十百千万亿兆京垓秭穰沟"), MaxTerms)
}

func TestFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, keyword string
		want          bool
	}{
		{"Müller, Jörg", "mull jor", true},
		{"Müller, Jörg", "MÜLLER", true},
		{"Jürgen Strauß", "strauss", true},
		{"strauss", "Strauß", true},
		{"Ada Lovelace", "lace", false},
		{"Ada Lovelace", "ada x", false},
		{"北京大学医学部", "大学医", true},
		{"北京大学医学部", "学", true},
		{"北京大学医学部", "京学", false},
		{"김철수는", "철수", true},
		{"ｶﾞｰﾄﾞ", "ガード", true},
		{"かき", "が", false},
		{"ＡＢＣ１２３", "abc12", true},
		{"室A-17", "a-17", true},
	} {
		require.Equal(t, tt.want, found(tt.text, tt.keyword), "%q in %q", tt.keyword, tt.text)
	}
}

func found(text, keyword string) bool {
	words := Words(text)
	terms := Query(keyword)
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term Term) bool {
		return !slices.ContainsFunc(words, func(word string) bool {
			return word == term.Text || term.Prefix && strings.HasPrefix(word, term.Text)
		})
	})
}

// The start of each word of a text and each part of its CJK runs find the text, unless a limit is reached.
func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		words := Words(text)
		if len(words) == MaxWords || len(words) == 0 {
			t.Skip("at the limit, or nothing to find")
		}
		var pieces []string
		for run, isCJK := range runs(text) {
			chars := []rune(run)
			from := 0
			if isCJK {
				from = rapid.IntRange(0, len(chars)-1).Draw(t, "from")
			}
			pieces = append(pieces, string(chars[from:rapid.IntRange(from+1, len(chars)).Draw(t, "to")]))
		}
		asked := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 3).Draw(t, "asked")
		require.True(t, found(text, strings.Join(asked, " ")), "%+q in %+q", asked, text)
		require.True(t, found(text, strings.ToUpper(asked[0])), "%+q in %+q", strings.ToUpper(asked[0]), text)
	})
}

func TestWordsAreBounded(t *testing.T) {
	t.Parallel()
	var many []string
	cjk := ""
	for i := range MaxWords + 1 {
		many = append(many, "w"+strconv.Itoa(i))
		cjk += string(rune('一' + i))
	}
	require.Len(t, Words(strings.Join(many, " ")), MaxWords)
	require.Len(t, Words(many...), MaxWords)
	require.Equal(t, "w0", Words(many...)[0], "the first texts come first")
	require.Len(t, Words(cjk), MaxWords)
	require.Equal(t, []string{"x"}, Words("x"+strings.Repeat(" ", maxTextBytes)+"y"),
		"a text is read only to its limit")
}

// checkWords checks, for any text, the properties that the index and the limits rely on.
func checkWords(t require.TestingT, text string) {
	words := Words(text)
	require.LessOrEqual(t, len(words), MaxWords)
	for i, word := range words {
		require.NotEmpty(t, word)
		require.LessOrEqual(t, len(word), MaxWordBytes)
		require.True(t, utf8.ValidString(word))
		require.NotContains(t, words[i+1:], word)
		require.Equal(t, word, Fold(word), "%+q", text)
	}
	terms := Query(text)
	require.LessOrEqual(t, len(terms), MaxTerms)
	require.Equal(t, len(words) == 0, len(terms) == 0)
	if len(words) < MaxWords {
		require.True(t, len(words) == 0 || found(text, text), "%+q", text)
	}
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{
		"", "Ada A-17", "李伟2", "ｶﾞ\u3099か", "a\u0301\u200d\u0301", "\xff李", strings.Repeat("é", 5000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkWords(t, text) })
}

var fields = map[string][]string{
	"latin": {
		"ada.lovelace", "Ada Lovelace", "ada.lovelace@example.com", "+49 170 1234567", "E-100234", "Analytical Engines",
	},
	"cjk": {"li.wei", "李伟", "li.wei@example.com", "+86 138 0013 8000", "E-100234", "软件研发中心"},
	"accent": {
		"joerg.mueller", "Jörg Müller", "joerg.mueller@example.com", "+49 170 1234567", "E-100234",
		"Qualität und Prüfung",
	},
}

func BenchmarkWords(b *testing.B) {
	for name, texts := range fields {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Words(texts...)
			}
		})
	}
}

func BenchmarkKey(b *testing.B) {
	for _, text := range []string{"ada.lovelace", "Ada.Lovelace", "李伟", "Jörg"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Key(text)
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Query("李伟 Lovel")
	}
}
