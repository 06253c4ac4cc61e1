package request_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
)

func TestInfoTravelsInTheContext(t *testing.T) {
	t.Parallel()
	require.Zero(t, request.From(context.Background()))
	info := request.Info{ID: "r-1", Tenant: "acme", Actor: "ann", PayloadOrigin: "x", Operation: "op"}
	ctx := request.With(context.Background(), info)
	require.Equal(t, info, request.From(ctx))
	require.Equal(t, "acme", request.Tenant(ctx))

	system := request.System(ctx, "globex")
	require.Equal(t, request.Info{ID: "r-1", Tenant: "globex", Actor: "system", PayloadOrigin: "x", Operation: "op"},
		request.From(system))
	require.Equal(t, info, request.From(ctx), "the outer context is not changed")
}

func TestNewIDIsSaneAndNew(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := request.NewID()
		require.Regexp(t, `^[0-9a-z]{26}$`, id)
		require.True(t, request.Sane(id))
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestSane(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "mine-42", "A.B_c-9", strings.Repeat("x", 128)} {
		require.True(t, request.Sane(id), id)
		require.Equal(t, id, request.IDOf(id))
	}
	for _, id := range []string{
		"", strings.Repeat("x", 129), "a b", "a\n", "a\x00", "é", "李", "a/b", `"`, "a:b", "\xff",
	} {
		require.False(t, request.Sane(id), "%q", id)
		require.True(t, request.Sane(request.IDOf(id)))
	}
}

func TestWantsEvents(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream;q=0.9": true, "TEXT/EVENT-STREAM": true,
		"": false, "*/*": false, "application/json": false, "text/event-stream;q=0": false, "text/event-streams": false,
		";;": false,
	} {
		require.Equal(t, want, request.WantsEvents(accept), accept)
	}
}

var sane = regexp.MustCompile(`\A[A-Za-z0-9._-]{1,128}\z`)

// FuzzSane compares Sane with the regular expression that it implements.
func FuzzSane(f *testing.F) {
	for _, seed := range []string{"", "mine-42", "a\n", "é", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) { require.Equal(t, sane.MatchString(id), request.Sane(id)) })
}
