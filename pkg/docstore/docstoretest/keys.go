package docstoretest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var keyCases = []testCase{
	{name: "keys/case and Unicode are kept apart", run: keysAreBytes},
	{name: "keys/awkward characters", run: awkwardKeys},
	{name: "keys/NUL", run: nulInKeys},
	{name: "keys/ids", run: awkwardIDs},
}

// keysAreBytes: engines neither fold nor normalize keys; the code that makes a key does.
func keysAreBytes(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	keys := []string{"ada", "Ada", "ADA", "ádá", "a\u0301da\u0301", "ａｄａ", "ada ", " ada", "straße", "strasse", "İ",
		"i̇", "京", "北京", "🙂", "\U0010FFFF"}
	for i, k := range keys {
		f.insert(t, ctx, thing(docID(i), code(k), name(k), words(k), logins(k)))
	}
	for i, k := range keys {
		for _, index := range []string{"code", "name", "words", "logins"} {
			require.Equal(t, []string{docID(i)}, f.ids(t, ctx, docstore.Eq(index, docstore.Text(k))), "%s = %q", index,
				k)
		}
	}
	f.check(t)
}

func awkwardKeys(t *testing.T, s *suite) {
	checkKeys(t, s, "%", "_", "*", "?", "[a-z]", `\`, `\%`, "'", `"`, "`", "''; DROP TABLE things; --", "$gt",
		"{\"$ne\":1}", "a.b", ".", "\t", "\n", "\r\n", "\x7f", "\u2028", "\ufeff", "null", "NaN", "0", "-1")
}

func nulInKeys(t *testing.T, s *suite) {
	checkKeys(t, s, "\x00", "a", "a\x00", "a\x00b", "a\x00c", "\x00a")
}

// checkKeys: each key is found by equality and by prefix, and no other key is.
func checkKeys(t *testing.T, s *suite, keys ...string) {
	t.Helper()
	f, ctx := s.open(t), in(t, "t1")
	for i, k := range keys {
		f.insert(t, ctx, thing(docID(i), code(k), name(k+"x"), words(k, k+"x"), logins(k)))
	}
	for i, k := range keys {
		for _, index := range []string{"code", "words", "logins"} {
			var want []string
			for j, other := range keys {
				if other == k || (index == "words" && other+"x" == k) {
					want = append(want, docID(j))
				}
			}
			require.Equal(t, want, f.ids(t, ctx, docstore.Eq(index, docstore.Text(k))), "%s = %q", index, k)
		}
		var starts []string
		for j, other := range keys {
			if len(other)+1 >= len(k) && (other + "x")[:len(k)] == k {
				starts = append(starts, docID(j))
			}
		}
		require.Contains(t, starts, docID(i))
		require.Equal(t, starts, f.ids(t, ctx, docstore.Prefix("name", k)), "name starts with %q", k)
		require.Equal(t, starts, f.ids(t, ctx, docstore.Prefix("words", k)), "a word starts with %q", k)
	}
	f.check(t)
}

func awkwardIDs(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	ids := []string{"1", "01", "1.0", "-1", "+1", "0", "2", "3", "9007199254740991", "999999999999999999",
		"1000000000000000000", "9223372036854775808", "a", "A", "a b", "a/b", "é", "京", "%", "_", "'", `"`, "$id"}
	others := in(t, "t2")
	f.insert(t, others, thing("2", name("theirs")), thing("a", name("theirs")), thing("4", name("theirs")))
	for _, id := range ids {
		f.insert(t, ctx, thing(id, name("of "+id)))
	}
	f.insert(t, others, thing("3", name("theirs")))
	for _, id := range ids {
		require.Equal(t, "of "+id, f.get(t, ctx, id).Name)
		require.Equal(t, []string{id}, f.ids(t, ctx, docstore.ID(id)))
		var taken *docstore.DuplicateError
		require.ErrorAs(t, f.tryInsert(ctx, thing(id)), &taken, id)
		require.Empty(t, taken.Index)
	}
	for _, id := range []string{"2", "a", "4", "3"} {
		require.NoError(t, f.change(others, id, func(v *Thing) { v.Name += "!" }))
		require.Equal(t, "theirs!", f.get(t, others, id).Name)
	}
	require.NoError(t, f.delete(others, "2"))
	require.Equal(t, []string{"3", "4", "a"}, f.ids(t, others, docstore.Filter{}))
	require.Equal(t, []string{"3", "a"}, f.ids(t, others, docstore.ID("1", "2", "3", "a")))
	f.insert(t, others, thing("2"))
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	require.Equal(t, sorted, f.ids(t, ctx, docstore.Filter{}))

	docs, err := f.things.FindMany(ctx, f.Store, append([]string{"missing", "", "1"}, ids...))
	require.NoError(t, err)
	require.Len(t, docs, len(ids), "each once, missing ones left out")
	docs, err = f.things.FindMany(ctx, f.Store, nil)
	require.NoError(t, err)
	require.Empty(t, docs)

	for _, id := range []string{"missing", "4", "12", "001"} {
		_, err = f.things.Find(ctx, f.Store, id)
		require.Equal(t, apperr.NotFound, apperr.KindOf(err), id)
	}
	f.check(t)
}

// docID returns ids that are numbers and sort in the same order.
func docID(i int) string {
	return string([]byte{'1', byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)})
}
