package rest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var texts = []string{"", "a", "orders/1", `"`, `\`, "\n", "\x00", "\x7f", "记录 1", "é\"", "\xff", "a\xe8", "<&>",
	"\u2028",
	strings.Repeat("x", 100)}

func TestAppendText(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		require.Equal(t, string(appendQuoted([]byte("x"), text)), string(AppendText([]byte("x"), text)), "%q", text)
	}
}

func FuzzAppendText(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, string(appendQuoted(nil, text)), string(AppendText(nil, text)))
	})
}
