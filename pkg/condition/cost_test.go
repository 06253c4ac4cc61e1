package condition

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// large is a record of about one megabyte.
func large(t testing.TB) map[string]any {
	var groups, objects strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&groups, `"00000000-0000-0000-0000-%012d",`, i)
		fmt.Fprintf(&objects, `{"id": "%d", "kind": "organizational unit"},`, i)
	}
	return input(t, fmt.Sprintf(`{"groups": [%[1]s "last"], "objects": [%[2]s {"id": "last", "kind": ""}],
		"nested": [[%[2]s 1]], "text": %[3]q, "pages": %[4]q, "s": ["a", "b", "c"], "n": 1, "photo": %[5]q}`,
		groups.String(), objects.String(),
		strings.Repeat("a", maxText), strings.Repeat("1", maxText), strings.Repeat("x", maxText+1)))
}

// If one of these conditions were not stopped, or only after a call that takes minutes, the test would not end.
func TestCost(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), large(t)
	every := func(body string) string { return "user.groups.all(x, user.groups.all(y, " + body + " || true))" }
	for _, text := range []string{
		every("x == y"),
		every("user.text == user.pages"),
		every("user.text in ['a', 'b']"), // optimized to a look-up in a set
		every("{'a': 1}[user.text] == 1"),
		every("user.nope"),
		every("duration(x) < duration(y)"),
		every("dyn(x) < dyn(y)"),
		every("size({x: y, y: x}) > 5"),
		every("(x + y + x + y).size() > 5"),
		every("string(user.text) == ''"),
		every("x in user.groups"),
		every("user.objects != []"),
		"user.groups.all(x, int(user.pages) > 0 || true)",
		"user.groups.all(x, bytes(user.text) != b'')",
		"user.groups.all(x, user.text.size() > 0)",
		"user.groups.all(x, user.text.lowerAscii() != '')",
		"user.groups.all(x, user.text.split('').size() > 0)",
		"user.groups.all(x, user.text.charAt(5) == 'a')",
		"user.groups.all(x, user.text.reverse() == user.text)",
		"user.groups.all(x, user.text.matches('(a|b|c){60}d') || true)",
		"user.groups.all(x, user.text.matches('(.*a){15}d') || true)",
		"user.groups.all(x, user.text + x != '')",
		"user.groups.all(x, user.text <= user.text)",
		"user.groups.all(x, now.getHours('Asia/Shanghai') == 20)",
		"user.objects.all(x, user.objects == user.objects)",
		"user.objects.all(x, user.nested == user.nested)",
		"user.objects.all(x, user.nested != user.nested || true)",
		"user.objects.all(x, x in user.objects || true)",
		"user.objects.all(x, [x] in [user.objects] || true)",
		"user.text.contains(user.text)",
		"user.objects.exists_one(x, user.objects.exists_one(y, false))",
		"user.objects.filter(x, user.objects.filter(y, false) != []) == []",
		// These have little text but many values to compare: their construction is stopped.
		"[user.n]" + strings.Repeat(".map(x, [x, x, x, x, x, x, x, x])", 20) + ".all(x, x == x)",
		"[user.n]" + strings.Repeat(".map(x, {'a': x, 'b': x, 'c': x, 'd': x})", 20) + ".all(x, x == x)",
		"[[user.objects, user.objects]].all(x, [[x, x, x, x, x, x]].all(x, [[x, x, x, x, x, x]].all(x, x == x)))",
	} {
		program, err := env.Compile(text)
		require.NoError(t, err, text)
		_, err = program.Eval(t.Context(), in)
		require.ErrorIs(t, err, ErrCost, text)
		require.ErrorIs(t, err, ErrUndecided, text)
	}
	for _, text := range []string{ // refused before they run
		every("user.groups.all(z, x == y && y == z)"),
		"['aaaaaaaaaa']" + strings.Repeat(".map(x, x + x)", 25) + ".all(x, x == x)",
		"[[1]]" + strings.Repeat(".map(x, x + x)", 25) + ".all(x, x == x)",
	} {
		_, err := env.Compile(text)
		require.ErrorContains(t, err, "could take too long", text)
	}
}

// Conditions that people usually write stay within the bounds, with large records too.
func TestCostAffordable(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), large(t)
	for _, text := range []string{
		"'last' in user.groups",
		"user.groups.exists(g, g == 'last')",
		"user.objects.exists(o, o.id == 'last' && o.kind == '')",
		"user.objects.filter(o, o.id == 'last').size() == 1",
		"user.groups.filter(g, g.endsWith('99')).size() == 100",
		"user.objects == user.objects && user.objects != [] && user.groups[10000] == 'last'",
		"user.s.exists(x, user.s.exists(y, x + y == 'ca' && x != y))",
		"user.text.startsWith('aaa') && user.text.matches('^a{10}') && user.text.size() == 65536",
		"has(user.photo) && user.n == 1",
		"(user.s[0] + ' ' + user.s[1]).lowerAscii() == 'a b' && (user.s[0] + user.s[1]).size() == 2",
	} {
		program, err := env.Compile(text)
		require.NoError(t, err, text)
		holds, err := program.Eval(t.Context(), in)
		require.NoError(t, err, text)
		require.True(t, holds, text)
	}
	program, err := env.Compile("user.photo == 'x'")
	require.NoError(t, err)
	_, err = program.Eval(t.Context(), in)
	require.EqualError(t, err, "the condition cannot be decided: a text is longer than 65536 bytes")
	program, err = env.Compile("(user.text + user.text).matches('b')")
	require.NoError(t, err)
	_, err = program.Eval(t.Context(), in)
	require.EqualError(t, err, "the condition cannot be decided: a text is longer than 65536 bytes")
	program, err = env.Compile("int(user.text) == 1")
	require.NoError(t, err)
	_, err = program.Eval(t.Context(), in)
	require.ErrorIs(t, err, ErrUndecided)
	require.Less(t, len(err.Error()), 300) // the error quotes what it could not convert, shortened
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t)
	measure := func(text string, in map[string]any) (holds bool, cost int64, err error) {
		program, err := env.Compile(text)
		require.NoError(t, err)
		require.Positive(t, program.Cost())
		require.LessOrEqual(t, program.Cost(), int64(MaxCost))
		return program.Measure(t.Context(), in, nil)
	}
	record := input(t, `{"id": "1", "roles": [1, 2, 3, 4, 5]}`)
	holds, cheap, err := measure(`user.id == "1"`, record)
	require.NoError(t, err)
	require.True(t, holds)
	require.Positive(t, cheap)
	_, loop, err := measure(`user.roles.all(a, user.roles.all(b, a + b > 0))`, record)
	require.NoError(t, err)
	require.Greater(t, loop, 20*cheap)
	_, undecided, err := measure(`user.nope == 1`, record)
	require.ErrorIs(t, err, ErrUndecided)
	require.Positive(t, undecided)
	many := input(t, `{"roles": [`+strings.Repeat("1,", 2000)+`1]}`)
	_, stopped, err := measure(`user.roles.all(a, user.roles.all(b, a + b > 0))`, many)
	require.ErrorIs(t, err, ErrCost)
	require.EqualValues(t, MaxCost, stopped)
}

// Evaluations pause whatever their loops do, and cost the same with pauses. The error of a pause ends them.
func TestPauses(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), map[string]any{"user": map[string]any{"list": make([]int64, 100)}}
	for _, text := range []string{
		"user.list.all(a, user.list.all(b, a + b >= 0))",
		"!user.list.exists(a, user.list.exists(b, false))",
		"!user.list.exists_one(a, user.list.exists_one(b, false))",
		"user.list.map(a, user.list.filter(b, false)).size() == 100",
	} {
		program, err := env.Compile(text)
		require.NoError(t, err, text)
		holds, cost, err := program.Measure(t.Context(), in, nil)
		require.NoError(t, err, text)
		require.True(t, holds, text)

		paused := int64(0)
		holds, again, err := program.Measure(t.Context(), in, func() error { paused++; return nil })
		require.NoError(t, err, text)
		require.True(t, holds, text)
		require.Equal(t, cost, again, text)
		require.Greater(t, paused, cost/PauseCost*4/5, text)

		_, _, err = program.Measure(t.Context(), in, func() error { return io.ErrClosedPipe })
		require.ErrorIs(t, err, io.ErrClosedPipe, text)
	}
}
