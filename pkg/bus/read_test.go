package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadOfEventsThatTheStreamHas(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	publish(t, b, history(3, 10)...)
	stream, err := b.epochOf(t.Context(), EventStream)
	require.NoError(t, err)
	js, err := b.js.Stream(t.Context(), EventStream)
	require.NoError(t, err)
	before := js.CachedInfo().State.FirstSeq - 1
	end := before + 25
	want := Pages{Stream: stream, Subjects: []string{"idp.events.acme.user.*"}, After: before + 4, UpTo: end, Limit: 15}
	page, err := b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, page.Events, 15)
	require.EqualValues(t, before+19, page.Next)
	require.Equal(t, Place{Stream: stream, Number: before + 5}, page.Events[0].Place)
	require.Contains(t, string(page.Events[0].JSON), `"sequence"`)

	want.After = page.Next
	page, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, page.Events, 6)
	require.EqualValues(t, end, page.Next)
	require.False(t, page.Lost)

	want.Subjects = []string{"idp.events.acme.job.*"}
	page, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, Page{Next: end}, page, "other events only")

	want.Stream = "another"
	page, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, Page{Next: end, Lost: true}, page)

	require.NoError(t, js.Purge(t.Context()))
	want.Stream = stream
	page, err = b.Read(t.Context(), want)
	require.NoError(t, err)
	require.True(t, page.Lost)
	require.EqualValues(t, end, page.Next)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]bool{
		"a.b.c": true, "a.*.c": true, "a.>": true, "*.*.*": true, "a.b": false, "a.b.c.d": false, "a.b.c.>": false,
		"a.*.d": false,
	} {
		require.Equal(t, want, matches(filter, "a.b.c"), filter)
	}
}
