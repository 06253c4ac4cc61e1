package textindex

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestHavingPart(t *testing.T) {
	t.Parallel()
	for keyword, want := range map[string]docstore.Filter{
		"": {}, " \t": {},
		"\u0301": docstore.Or(), "a\nb": docstore.Or(),
		" Café ": docstore.Prefix(byPart, "cafe"),
		"ＡＢＣＤＥＦＧＨＩＪＫＬＭ": docstore.And(docstore.Eq(byPart, docstore.Text("abcdefghijkl")),
			docstore.Eq(byPart, docstore.Text("bcdefghijklm")), docstore.Contains(byWhole, "abcdefghijklm")),
	} {
		require.Equal(t, want, HavingPart(keyword), "%q", keyword)
	}
}
