package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) {
	RunIfWorker()
	leaks.Main(m)
}

// newPool makes a pool whose functions may also fetch from loopback addresses.
func newPool(t testing.TB, change ...func(*Config)) *Pool {
	t.Helper()
	client := outbound.New(outbound.Config{AllowPrivate: true})
	t.Cleanup(client.CloseIdleConnections)
	c := Config{
		Workers: 2, Idle: time.Minute, Client: client, Log: basic.Log(t), Metrics: prometheus.NewRegistry(),
	}
	for _, f := range change {
		f(&c)
	}
	p := NewPool(c)
	t.Cleanup(p.Close)
	return p
}

func js(source string) *Call { return call(JavaScript, "main", []byte(source)) }

func call(runtime Runtime, entry string, code []byte) *Call {
	hash := sha256.Sum256(code)
	return &Call{
		Code: Code{Runtime: runtime, Entry: entry, Hash: hex.EncodeToString(hash[:]),
			Load: func() ([]byte, error) { return code, nil }},
		Limits: Limits{Timeout: 10 * time.Second, CPU: 2 * time.Second, Memory: 32 << 20},
		Input:  json.RawMessage("null"),
	}
}

func of(t testing.TB, tenant string) context.Context { return request.System(t.Context(), tenant) }

func run(t testing.TB, p *Pool, c *Call) Result {
	t.Helper()
	r, err := p.Run(of(t, "acme"), c)
	require.NoError(t, err)
	return r
}

func TestJavaScript(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for name, row := range map[string]struct{ source, input, output string }{
		"empty":            {`function main() {}`, `null`, `null`},
		"input":            {`function main(input) { return input.a + 1 }`, `{"a": 41}`, `42`},
		"unicode":          {`function main(input) { return input + "语" }`, `"<汉>"`, `"<汉>语"`},
		"const":            {`const main = input => ({got: input})`, `[1,"x",null]`, `{"got":[1,"x",null]}`},
		"async":            {`async function main() { return await Promise.resolve(7) }`, `null`, `7`},
		"promise":          {`function main() { return Promise.resolve(1).then(x => x + 1) }`, `null`, `2`},
		"environment":      {`function main(_, context) { return context.env.A }`, `null`, `"one"`},
		"toJSON":           {`function main() { return {toJSON() { return "x" }} }`, `null`, `"x"`},
		"JSON is replaced": {`JSON.stringify = JSON.parse = null; function main(i) { return i }`, `[1]`, `[1]`},
		"__proto__ input":  {`function main(i) { return [i.x, ({}).x] }`, `{"__proto__":{"x":1}}`, `[null,null]`},
		"no host": {`function main() { return [typeof process, typeof require, typeof setTimeout, typeof Deno] }`,
			`null`, `["undefined","undefined","undefined","undefined"]`},
		"a source map": {"function main() { return 1 }\n//# sourceMappingURL=/etc/passwd", `null`, `1`},
	} {
		t.Run(name, func(t *testing.T) {
			c := js(row.source)
			c.Input, c.Env = json.RawMessage(row.input), map[string]string{"A": "one"}
			r := run(t, p, c)
			require.Equal(t, Succeeded, r.Outcome, "%+v", r.Fault)
			require.Equal(t, row.output, string(r.Output))
			require.Nil(t, r.Fault)
		})
	}
}

func TestJavaScriptFails(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for name, row := range map[string]struct {
		source string
		fault  Fault
	}{
		"throws":         {"function main() {\n  throw new Error('boom')\n}", Fault{"Error: boom", 2, 9}},
		"throws a value": {`function main() { throw {code: 7} }`, Fault{`{"code":7}`, 1, 19}},
		"rejects":        {`async function main() { throw new TypeError("no") }`, Fault{Message: "TypeError: no"}},
		"no entry":       {`function other() {}`, Fault{Message: "there is no function main"}},
		"a stuck promise": {`function main() { return new Promise(() => {}) }`,
			Fault{Message: "the function returned a promise that is never settled"}},
		"a function": {`function main() { return main }`,
			Fault{Message: "the function returned a value that JSON cannot represent, such as a function"}},
		"a cycle": {`function main() { const a = {}; a.a = a; return a }`,
			Fault{Message: "TypeError: Converting circular structure to JSON"}},
		"a large output": {`function main() { return "x".repeat(1 << 20) }`, Fault{Message: errTooMuchOutput.Error()}},
		"syntax":         {"function main() {\n  return ][\n}", Fault{"Unexpected token ]", 2, 10}},
		"throws while thrown": {`function main() { throw {toString() { throw 1 }, toJSON() { throw 2 }} }`,
			Fault{Message: "an object", Line: 1, Column: 19}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, p, js(row.source))
			require.Equal(t, Failed, r.Outcome)
			require.Equal(t, &row.fault, r.Fault)
			require.Equal(t, "null", string(r.Output))
		})
	}
}

func TestRecursionThatIsTooDeep(t *testing.T) {
	t.Parallel()
	r := run(t, newPool(t), js("function main() {\n  return main()\n}"))
	require.Equal(t, OutOfMemory, r.Outcome)
	require.Equal(t, &Fault{"the recursion is too deep", 2, 14}, r.Fault)
}

func TestLogs(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	r := run(t, p, js(`function main() {
		console.log("a", 1, {b: 2}, [undefined], new Error("x"))
		console.warn("w"); console.error(null); console.debug()
	}`))
	require.Equal(t, []Line{
		{"info", `a 1 {"b":2} [null] Error: x`}, {"warn", "w"}, {"error", "null"}, {"debug", ""},
	}, r.Logs)

	r = run(t, p, js(`function main() { for (let i = 0; i < 100000; i++) console.log("line " + i) }`))
	require.Equal(t, Succeeded, r.Outcome)
	require.Len(t, r.Logs, MaxLogLines+1)
	require.Equal(t, Line{"warn", "further lines are left out"}, r.Logs[MaxLogLines])

	r = run(t, p, js(`function main() { console.log("x".repeat(1 << 20)); console.log("never") }`))
	require.Equal(t, Succeeded, r.Outcome)
	require.LessOrEqual(t, len(r.Logs), 2)

	c := js(`function main() { console.log("before"); for (;;) {} }`)
	c.CPU = 100 * time.Millisecond
	r = run(t, p, c)
	require.Equal(t, TimedOut, r.Outcome)
	require.Equal(t, []Line{{"info", "before"}}, r.Logs, "the logs of a call that was ended are kept")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	fault, err := p.Check(of(t, "acme"), js("function main() {\n let a; let a }").Code, MaxMemory)
	require.NoError(t, err)
	require.Equal(t, 2, fault.Line)
	require.NotEmpty(t, fault.Message)
	fault, err = p.Check(of(t, "acme"), js("function main() { for (;;) {} } for (;;) {}").Code, MaxMemory)
	require.NoError(t, err)
	require.Nil(t, fault, "nothing is run")
	c := js("")
	c.Entry = "main; attack()"
	fault, err = p.Check(of(t, "acme"), c.Code, MaxMemory)
	require.NoError(t, err)
	require.NotNil(t, fault)
}
