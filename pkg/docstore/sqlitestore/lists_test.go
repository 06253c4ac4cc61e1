package sqlitestore

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestListsSurviveEncoding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lists := rapid.SliceOf(rapid.SliceOf(rapid.StringN(0, 10, 300))).Draw(rt, "lists")
		blob := encodeLists(lists)
		for slot, want := range lists {
			require.Equal(rt, slices.Clip(append([]string(nil), want...)), slices.Clip(decodeList(blob, slot)))
		}
	})
}

// FuzzValues: reading a damaged blob neither panics nor runs forever.
func FuzzValues(f *testing.F) {
	f.Add(encodeLists([][]string{{"a", "北京"}, nil, {""}}), 2)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0)
	f.Add([]byte{2, 0x80}, 0)
	f.Fuzz(func(t *testing.T, blob []byte, slot int) {
		n := 0
		values(blob, slot&7, func(b []byte) bool { n++; return true })
		if n > len(blob) {
			t.Fatalf("%d values in %d bytes", n, len(blob))
		}
	})
}

func TestDifference(t *testing.T) {
	t.Parallel()
	removed, added := difference([]string{"a", "b", "d"}, []string{"b", "c", "d", "e"}, strings.Compare)
	require.Equal(t, []string{"a"}, removed)
	require.Equal(t, []string{"c", "e"}, added)
}

// FuzzSuccessor: the range of a prefix contains all texts that start with it, and no others.
func FuzzSuccessor(f *testing.F) {
	f.Add("a", "ab")
	f.Add("\xff\xff", "\xff\xff\xff")
	f.Add("a\xff", "b")
	f.Add("\U0010FFFF", "\U0010FFFF\x00")
	f.Fuzz(func(t *testing.T, prefix, s string) {
		if prefix == "" {
			return
		}
		n := between(&column{}, &docstore.Value{Text: prefix}, successor(prefix))
		if got := n.accepts([]byte(s), 0); got != strings.HasPrefix(s, prefix) {
			t.Fatalf("%q in the range of prefix %q: %v", s, prefix, got)
		}
	})
}
