package docstoretest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var contentCases = []testCase{
	{name: "content/JSON as it was sent", run: jsonContent},
	{name: "content/huge numbers", run: hugeNumbers},
	{name: "content/times to the millisecond", run: times},
	{name: "content/empty and nil lists", run: emptyLists},
	{name: "content/2.5 MiB", run: largeDocument},
	{name: "content/rows belong to the receiver", run: ownedRows},
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// requireSameJSON compares member by member, and numbers digit by digit.
func requireSameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	canonical := func(b []byte) string {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var v any
		require.NoError(t, d.Decode(&v))
		return string(mustJSON(t, v))
	}
	require.Equal(t, canonical(want), canonical(got))
}

func (f *fixture) requireKept(t *testing.T, props string) {
	t.Helper()
	ctx := in(t, "t1")
	id, err := f.NewID(ctx)
	require.NoError(t, err)
	f.insert(t, ctx, thing(id, func(v *Thing) { v.Props = json.RawMessage(props) }))
	requireSameJSON(t, []byte(props), f.get(t, ctx, id).Props)
	d, err := f.things.Find(ctx, f.Store, id)
	require.NoError(t, err)
	body, err := d.JSON()
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &members))
	requireSameJSON(t, []byte(props), members["props"])
}

func jsonContent(t *testing.T, s *suite) {
	f := s.open(t)
	for _, props := range []string{
		`{}`, `[]`, `0`, `""`, `true`, `{"a":null}`, `[null,[],{},""]`,
		`{"":"empty key","a.b":"dot","$set":"dollar","_id":"x","a":{"$ref":1}}`,
		`{"京":"北京\u2028\ud83d\ude42","<b>":"&amp;"}`,
		`{"int":9007199254740993,"max":9223372036854775807,"min":-9223372036854775808,"zero":0,"float":0.1,"neg":-1.5}`,
		`{"deep":` + strings.Repeat(`{"d":[`, 30) + `1` + strings.Repeat(`]}`, 30) + `}`,
		`{"z":1,"a":2,"m":{"y":1,"b":2}}`,
	} {
		f.requireKept(t, props)
	}
}

func hugeNumbers(t *testing.T, s *suite) {
	f := s.open(t)
	for _, props := range []string{
		`{"n":18446744073709551616}`,
		`{"n":-170141183460469231731687303715884105728}`,
		`{"n":3.14159265358979323846264338327950288}`,
		`{"n":1e400}`,
		`[1.0,1.10,1e2,-0]`,
		`{"n":` + strings.Repeat("9", 1000) + `}`,
	} {
		f.requireKept(t, props)
	}
}

func times(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for i, text := range []string{"2026-01-31T09:30:00.001Z", "2026-01-31T09:30:00.999Z", "1969-12-31T23:59:59.999Z",
		"0001-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z"} {
		at := mustParse(text)
		id := docID(i)
		f.insert(t, ctx, thing(id, seen(at)))
		got := f.get(t, ctx, id).Seen
		require.Equal(t, at.String(), got.String())
		require.Equal(t, []string{id}, f.ids(t, ctx, docstore.Eq("seen", docstore.Moment(at))))
	}
	f.insert(t, ctx, thing("never"))
	require.Equal(t, clock.Time{}, f.get(t, ctx, "never").Seen, "an absent member stays absent")
	require.NotContains(t, f.ids(t, ctx, docstore.Eq("seen", docstore.Number(0))), "never")
}

func emptyLists(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("nil"), thing("empty", words()), thing("blank", words("")))
	require.NoError(t, f.change(ctx, "empty", func(v *Thing) { v.Words, v.Name = []string{}, "n" }))
	require.Nil(t, f.get(t, ctx, "nil").Words)
	require.NotNil(t, f.get(t, ctx, "empty").Words)
	require.Empty(t, f.get(t, ctx, "empty").Words)
	require.Equal(t, []string{""}, f.get(t, ctx, "blank").Words)
	f.check(t)
}

func largeDocument(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	image := make([]byte, 2_621_440)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(image) // never fails
	f.insert(t, ctx, thing("a", words("w"), func(v *Thing) { v.Image = image }), thing("b", words("w")))
	require.True(t, bytes.Equal(image, f.get(t, ctx, "a").Image))
	require.Equal(t, []string{"a", "b"}, f.ids(t, ctx, docstore.Eq("words", docstore.Text("w"))))
	require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Rank = 1 }))
	require.True(t, bytes.Equal(image, f.get(t, ctx, "a").Image))
	require.NoError(t, f.delete(ctx, "a"))
	f.check(t)
}

// ownedRows: what a read has returned must not change later.
func ownedRows(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.insert(t, ctx, thing("a", name("first")), thing("b", name("second")))
	rows, err := f.engine.Get(ctx, f.things.Def(), "t1", []string{"a"})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	before := bytes.Clone(rows[0].Data)
	for i := range 20 {
		require.NoError(t, f.change(ctx, "a", func(v *Thing) { v.Name = strings.Repeat("x", i) }))
		_, err := f.engine.Get(ctx, f.things.Def(), "t1", []string{"a", "b"})
		require.NoError(t, err)
	}
	require.Equal(t, before, rows[0].Data)
}
