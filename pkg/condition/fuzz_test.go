package condition

import (
	"errors"
	"testing"
	"time"
)

// Any text and any input give an answer or an error, in bounded time.
func FuzzCompileEval(f *testing.F) {
	for _, text := range []string{
		`user.status == "1" && has(user.free_ext_props.team) && user.free_ext_props.team == "平台"`,
		`user.roles.exists(r, r.level > 4 && r.id in ["r2"])`,
		`timestamp(user.time_created) + duration("1h") < now`, `user.display_name.matches("^\\p{Han}+$")`,
		`user.groups.map(g, [g, g]).filter(x, x == x).size() > 1`,
		`user.free_ext_props.all(k, user.free_ext_props[k] != null)`,
		`{"a": user.groups}.a[0].split("").exists_one(c, c == "e")`,
		`int(user.id) % 2 == 0 ? bytes(user.id) == b"1" : now.getHours("Asia/Shanghai") > 3`,
		`[[user, user]].all(y, [[y, y]].all(z, z == z))`,
		`dyn([1, 2u, 3.0, null, type(user)]) == user.groups + user.roles`,
		`-(1 + 2) * 3 / 4 < 5 || !(1 in [2]) && "a" <= 'b' + r"\c"`, "user.a(", "\xff'\"`",
	} {
		f.Add(text, record)
	}
	env := newEnvironment(f)
	f.Fuzz(func(t *testing.T, text, raw string) {
		if len(raw) > 1<<20 {
			return
		}
		user, err := FromJSON([]byte(raw))
		if err != nil {
			user = map[string]any{"raw": raw}
		}
		start := time.Now()
		program, err := env.Compile(text)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Fatalf("%#v", err)
			}
		} else {
			holds, err := program.Eval(t.Context(), map[string]any{"user": user, "now": noon})
			if err != nil && (holds || !errors.Is(err, ErrUndecided)) {
				t.Fatalf("%v, %v", holds, err)
			}
		}
		if took := time.Since(start); took > 5*time.Second { // hundreds of times the worst case on an idle machine
			t.Fatalf("took %v", took)
		}
	})
}
