package condition

import (
	"fmt"
	"testing"
)

func BenchmarkEval(b *testing.B) {
	env, in := newEnvironment(b), input(b, record)
	for name, text := range map[string]string{
		"members": `user.status == "1" && has(user.free_ext_props.team) && user.free_ext_props.team == "平台"`,
		"list":    `user.status == "1" && "平台" in user.groups && user.id in ["1", "2", "1048577"]`,
		"loop":    `user.roles.exists(r, r.level > 4 && r.id == "r2")`,
		"pattern": `user.username.matches("^[a-z]+[.][a-z]+$")`,
		"time":    `timestamp(user.time_created) + duration("24h") < now`,
		"missing": `user.free_ext_props.nope == 1`,
	} {
		program, err := env.Compile(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				_, _ = program.Eval(ctx, in)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	env := newEnvironment(b)
	for b.Loop() {
		_, _ = env.Compile(`user.status == "1" && has(user.free_ext_props.team) && user.free_ext_props.team == "平台"`)
	}
}

func BenchmarkCached(b *testing.B) {
	env := newEnvironment(b)
	var texts [100]string
	for i := range texts {
		texts[i] = fmt.Sprintf(`user.status == "%d" && has(user.free_ext_props.team) && `+
			`user.free_ext_props.team == "平台"`, i)
	}
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := env.Cached(texts[i%len(texts)]); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkFromJSON(b *testing.B) {
	raw := []byte(record)
	for b.Loop() {
		_, _ = FromJSON(raw)
	}
}
