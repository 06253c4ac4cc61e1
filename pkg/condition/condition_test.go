package condition

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const record = `{"id": "1048577", "username": "li.wei", "display_name": "李伟", "status": "1", "locked": false, "picture": null,
	"time_created": "2026-01-31T08:00:00.000Z", "groups": ["eng", "平台"], "roles": [{"id": "r1", "level": 3}, {"id": "r2", "level": 5}],
	"free_ext_props": {"team": "平台", "n": 9007199254740993, "ratio": 0.5, "one": 1.0, "big": 18446744073709551616, "huge": 1e400,
	"deep": {"er": {"est": true}}, "a-b": 1, "0": "zero", "weird": [[1, 2], {"k": null}]}}`

func newEnvironment(t testing.TB) *Environment {
	env, err := NewEnvironment(Map("user"), Timestamp("now"))
	require.NoError(t, err)
	return env
}

func input(t testing.TB, raw string) map[string]any {
	user, err := FromJSON([]byte(raw))
	require.NoError(t, err)
	return map[string]any{"user": user, "now": noon}
}

func TestEval(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), input(t, record)
	for text, want := range map[string]bool{
		`user.status == "1" && user.free_ext_props.team == "平台"`:                  true,
		`user.display_name == "李伟" && user.display_name.size() == 2`:              true,
		`user.display_name.startsWith("李") && user.display_name.charAt(1) == "伟"`: true,
		`user.display_name.contains("王")`:                                         false,
		`user.display_name.matches("^\\p{Han}{2}$")`:                              true,
		`user.username.upperAscii() == "LI.WEI"`:                                  true,
		`"平台" in user.groups && !("hr" in user.groups)`:                           true,
		`user.id in ["1", "1048577"]`:                                             true,
		`"team" in user.free_ext_props`:                                           true,
		`user.roles.exists(r, r.level > 4 && r.id == "r2")`:                       true,
		`user.roles.all(r, r.level > 4)`:                                          false,
		`user.roles.map(r, r.id) == ["r1", "r2"]`:                                 true,
		`user.roles.filter(r, r.level == 3).size() == 1`:                          true,
		`user.free_ext_props.all(k, k != "")`:                                     true,
		`user.free_ext_props.n == 9007199254740993`:                               true,
		// Compared as integers, not as doubles.
		`user.free_ext_props.n == 9007199254740992`:                     false,
		`user.free_ext_props.n + 1 == 9007199254740994`:                 true,
		`user.free_ext_props.ratio < 1 && user.free_ext_props.one == 1`: true,
		// Beyond 64 bits, so compared as doubles.
		`user.free_ext_props.big > 18446744073709551615.0`:                      false,
		`user.free_ext_props.big > 18446744073709000000.0`:                      true,
		`user.free_ext_props.deep.er.est`:                                       true,
		`user.free_ext_props["a-b"] == 1 && user.free_ext_props["0"] == "zero"`: true,
		`user.free_ext_props.weird == [[1, 2], {"k": null}]`:                    true,
		`has(user.free_ext_props.team) && !has(user.free_ext_props.nope)`:       true,
		`user.picture == null && has(user.picture)`:                             true,
		`user.locked ? false : user.username == "li.wei"`:                       true,
		`timestamp(user.time_created) + duration("24h") < now`:                  true,
		`timestamp(user.time_created).getFullYear() == 2026`:                    true,
		`now.getHours("Asia/Shanghai") == 20`:                                   true,
		// A string never equals a number.
		`user.status == 1`: false,
		// An undecided part does not matter if the rest decides.
		`user.nope == 1 || user.status == "1"`: true,
		`user.nope == 1 && user.status == "2"`: false,
		`has(user.free_ext_props.huge)`:        true,
		"true // a comment":                    true,
	} {
		program, err := env.Compile(text)
		require.NoError(t, err, text)
		got, err := program.Eval(t.Context(), in)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestEvalUndecided(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), input(t, record)
	for text, reason := range map[string]string{
		`user.nope == 1`:                         "there is no member nope",
		`user.free_ext_props.nope.x`:             "there is no member nope",
		`has(user.nope.x)`:                       "there is no member nope",
		`user.username > 5`:                      "no such overload",
		`user.username && true`:                  "no such overload",
		`user.username`:                          "its result is not a bool but of type string",
		`user.picture.url == ""`:                 "there is no member url",
		`user.groups[7] == "x"`:                  "index out of bounds: 7",
		`user.groups.size() / 0 == 1`:            "division by zero",
		`user.free_ext_props.huge > 5`:           "a number is out of range",
		`timestamp(user.username) < now`:         `invalid RFC 3339 timestamp "li.wei"`,
		`int(user.username) == 1`:                "type conversion error",
		`now.getHours("Mars/Olympus") == 1`:      "Mars/Olympus",
		`user.free_ext_props.n * 10000 == 1`:     "integer overflow",
		`timestamp(user.free_ext_props.n) < now`: "timestamp overflow",
	} {
		program, err := env.Compile(text)
		require.NoError(t, err, text)
		holds, err := program.Eval(t.Context(), in)
		require.ErrorIs(t, err, ErrUndecided, text)
		require.NotErrorIs(t, err, ErrCost, text)
		require.ErrorContains(t, err, reason, text)
		require.False(t, holds)
	}
	program, err := env.Compile(`user.status == "1"`)
	require.NoError(t, err)
	for _, in := range []map[string]any{
		nil, {}, {"user": nil}, {"user": "text"}, {"user": struct{}{}}, {"user": make(chan int)},
	} {
		_, err = program.Eval(t.Context(), in)
		require.ErrorIs(t, err, ErrUndecided)
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t)
	for _, tt := range []struct {
		text         string
		line, column int
		message      string
	}{
		{``, 1, 1, "syntax error"},
		{`user.a ==`, 1, 10, "syntax error"},
		{"user.a == '李' &&\n  usr.b", 2, 3, "undeclared reference to 'usr' (did you mean 'user'?)"},
		// The column counts characters, not bytes.
		{`user.a == '李' && usr`, 1, 18, "undeclared reference to 'usr' (did you mean 'user'?)"},
		{`'a' == 1`, 1, 5, "found no matching overload for '_==_' applied to '(string, int)'"},
		{`user.a.foo()`, 1, 11, "undeclared reference to 'foo'"},
		{`1 + 1`, 1, 1, "must be true or false; it is of type int"},
		{`user.list.map(x, 1)`, 1, 1, "must be true or false; it is of type list(int)"},
		{`user.a.matches('(')`, 1, 16, "invalid matches argument"},
		{`user.a.matches(user.b)`, 1, 20, "matches needs a pattern that is written in the condition"},
		{`user.a.matches('(a?){99}')`, 1, 16, "regex program size 398 exceeds limit of 200"},
		{`timestamp('x') < now`, 1, 11, "invalid timestamp argument"},
		{`timestamp(9223372036854775807) < now`, 1, 11, "invalid timestamp argument"},
		{`true && int('x') == 1`, 1, 12, "type conversion error from 'string' to 'int'"},
		{`google.protobuf.Struct{} == user`, 1, 23, "types cannot be constructed here"},
		{`'%s'.format([user]) == ''`, 1, 12, "format cannot be used here"},
		{`user.a.replace('', 'xx') == ''`, 1, 15, "replace cannot be used here"},
		{`user.list.join(user.a) == ''`, 1, 15, "join cannot be used here"},
		{`strings.quote(user.a) == ''`, 1, 14, "strings.quote cannot be used here"},
		{`user.a.indexOf(user.b) < 0`, 1, 15, "indexOf cannot be used here"},
		{`user.a.lastIndexOf(user.b) < 0`, 1, 19, "lastIndexOf cannot be used here"},
		{strings.Repeat(" ", MaxLength-3) + "true", 1, 1, "must be at most 4096 bytes long"},
		{
			strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000), 1, 1,
			"expression recursion limit exceeded: 64",
		},
		{"1" + strings.Repeat("+1", 2000) + "==1", 1, 1, "max recursion depth exceeded"},
		{strings.Repeat("[1].exists(x,", 40) + "true" + strings.Repeat(")", 40), 1, 1, "is nested too deeply"},
		{
			`user.list.all(a, user.list.all(b, user.list.all(c, a==b && b==c)))`, 1, 1,
			"could take too long: lists of 50 entries would cost 2140303, the limit is 200000",
		},
	} {
		program, err := env.Compile(tt.text)
		require.Nil(t, program)
		require.Equal(t, &Error{tt.line, tt.column, tt.message}, err, tt.text)
	}
	_, err := env.Compile(`usr`)
	require.EqualError(t, err, "line 1, column 1: undeclared reference to 'usr' (did you mean 'user'?)")
	_, err = env.Compile(strings.Repeat(" ", MaxLength-4) + "true")
	require.NoError(t, err)
}

func TestNewEnvironment(t *testing.T) {
	t.Parallel()
	_, err := NewEnvironment(Map("user"), Timestamp("user"))
	require.Error(t, err)
	env, err := NewEnvironment(Map("subject"), Map("resource"), Map("action"), Map("context"), Timestamp("now"))
	require.NoError(t, err)
	program, err := env.Compile(`subject.properties.team == resource.properties.team && action.name == "read" &&
		context.ip.startsWith("10.") && now > timestamp("2026-01-01T00:00:00Z")`)
	require.NoError(t, err)
	team := map[string]any{"properties": map[string]any{"team": "平台"}}
	holds, err := program.Eval(t.Context(), map[string]any{
		"subject": team, "resource": team, "action": map[string]any{"name": "read"},
		"context": map[string]any{"ip": "10.1.2.3"}, "now": noon,
	})
	require.NoError(t, err)
	require.True(t, holds)
}

// A cancelled context ends an evaluation with the context's error. Only loops look at the context: everything else is
// short.
func TestEvalContext(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), input(t, `{"list": [`+strings.Repeat("1,", 1000)+`1]}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	program, err := env.Compile("user.list.all(x, x == 1)")
	require.NoError(t, err)
	_, err = program.Eval(ctx, in)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrUndecided)
	holds, err := program.Eval(t.Context(), in)
	require.NoError(t, err)
	require.True(t, holds)
	program, err = env.Compile("user.list[0] == 1")
	require.NoError(t, err)
	holds, err = program.Eval(ctx, in)
	require.NoError(t, err)
	require.True(t, holds)
}

// Programs, their inputs and two of CEL's errors are shared by goroutines; the race detector checks them here.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	env, in := newEnvironment(t), input(t, record)
	var wg sync.WaitGroup
	for _, text := range []string{
		`user.roles.exists(r, r.id == "r2")`, `user.username > 5 || user.username < 5`,
		`user.username + 1 == 2 && user.username`,
		`user.free_ext_props.huge || user.free_ext_props.huge`, `timestamp(user.free_ext_props.n) < now || user.nope`,
		`user.roles == [{"id": "r1", "level": 3}] || user.username in ["a", "b"]`,
		`user.username.matches("^li") || user.locked.matches("x")`,
	} {
		program, err := env.Compile(text)
		require.NoError(t, err)
		first, firstErr := program.Eval(t.Context(), in)
		for range 4 {
			wg.Go(func() {
				for range 50 {
					holds, err := program.Eval(t.Context(), in)
					if holds != first || (err == nil) != (firstErr == nil) {
						t.Errorf("%s: first %v, %v, then %v, %v", text, first, firstErr, holds, err)
						return
					}
					if _, err = env.Cached(text); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for _, shared := range []ref.Val{
		types.NoSuchOverloadErr(), types.Int(math.MaxInt64).ConvertToType(types.TimestampType),
	} {
		// Checked directly, because a data race happens only at the first use of a shared error.
		require.EqualValues(t, nowhere, shared.(*types.Err).NodeID())
	}
}
