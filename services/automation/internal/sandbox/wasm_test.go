package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A module that Go's compiler makes is a function without further steps.
func TestModuleMadeByGo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "echo.wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "./testdata/echo")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	code, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Less(t, len(code), MaxCode)

	p := newPool(t)
	c := call(WebAssembly, "_start", code)
	c.Input, c.Env, c.Memory = json.RawMessage(`{"汉":[1]}`), map[string]string{"A": "one"}, 64<<20
	for range 2 {
		r := run(t, p, c)
		require.Equal(t, Succeeded, r.Outcome, "%+v", r.Fault)
		require.JSONEq(t, `{"input":{"汉":[1]},"a":"one","file":false,"variables":1}`, string(r.Output))
		require.Equal(t, []Line{{"info", "a line"}, {"info", "another"}}, r.Logs)
	}
	c.Input = json.RawMessage(`"fail"`)
	r := run(t, p, c)
	require.Equal(t, Failed, r.Outcome)
	require.Equal(t, "the module ended with exit code 3", r.Fault.Message)
	require.Equal(t, []Line{{"info", "asked to fail"}}, r.Logs)
}

// wasm assembles a module that exports its last function as main, and its memory of one page with data at 64. It
// imports fd_write (function 0), idp.fetch (1) and idp.read (2). Each body is the code of a further function without
// parameters and results.
func wasm(data string, bodies ...[]byte) []byte {
	vec := func(items ...[]byte) []byte {
		return append(leb(len(items)), slices.Concat(items...)...)
	}
	text := func(s string) []byte { return append(leb(len(s)), s...) }
	section := func(id byte, content []byte) []byte {
		return append(append([]byte{id}, leb(len(content))...), content...)
	}
	i32 := byte(0x7f)
	types := vec([]byte{0x60, 0, 0}, []byte{0x60, 4, i32, i32, i32, i32, 1, i32}, []byte{0x60, 2, i32, i32, 1, i32},
		[]byte{0x60, 1, i32, 1, i32})
	imported := func(module, name string, kind byte) []byte {
		return slices.Concat(text(module), text(name), []byte{0, kind})
	}
	imports := vec(imported("wasi_snapshot_preview1", "fd_write", 1), imported("idp", "fetch", 2),
		imported("idp", "read", 3))
	functions, code := make([][]byte, len(bodies)), make([][]byte, len(bodies))
	for i, body := range bodies {
		functions[i] = []byte{0}
		body = slices.Concat([]byte{0}, body, []byte{0x0b})
		code[i] = append(leb(len(body)), body...)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types), section(2, imports), section(3, vec(functions...)),
		section(4, vec([]byte{0x70, 0, 1})), section(5, vec([]byte{0, 1})),
		section(7, vec(slices.Concat(text("main"), []byte{0}, leb(2+len(bodies))),
			slices.Concat(text("memory"), []byte{2, 0}))),
		section(10, vec(code...)),
		section(11, vec(slices.Concat([]byte{0, 0x41}, signed(64), []byte{0x0b}, text(data)))))
}

// leb encodes a number as unsigned LEB128.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// Bodies of functions.
var (
	noBody     = []byte{}
	loop       = forever(nil)
	growing    = forever([]byte{0x41, 16, 0x40, 0, 0x1a})                                  // memory.grow by 16 pages
	tables     = forever([]byte{0xd0, 0x70, 0x41, 0x80, 0x80, 0xc0, 0, 0xfc, 15, 0, 0x1a}) // table.grow by 2^20
	recursive  = []byte{0x10, 3}                                                           // call of itself
	trap       = []byte{0x00}                                                              // unreachable
	outOfRange = []byte{0x41, 0x7f, 0x28, 0, 0, 0x1a}                                      // i32.load at −1
)

// output writes the first length bytes of the module's data to a descriptor.
func output(fd byte, length int) []byte {
	return slices.Concat(
		[]byte{0x41, 0, 0x41}, signed(64), []byte{0x36, 2, 0}, // i32.store 0: address
		[]byte{0x41, 4, 0x41}, signed(length), []byte{0x36, 2, 0}, // i32.store 4: length
		[]byte{0x41, fd, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a}) // fd_write(fd, 0, 1, 8)
}

// signed encodes a positive number as signed LEB128, for i32.const.
func signed(n int) (b []byte) {
	for ; n >= 0x40; n >>= 7 {
		b = append(b, byte(n&0x7f)|0x80)
	}
	return append(b, byte(n))
}

// forever repeats a body: loop, body, br 0, end.
func forever(body []byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, body, []byte{0x0c, 0, 0x0b})
}

func TestModules(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Workers = 4 })
	before := residentMiB(t)
	text := `{"汉":1}`
	for name, row := range map[string]struct {
		code     []byte
		outcomes []Outcome
		output   string
	}{
		"empty":              {wasm("", noBody), []Outcome{Succeeded}, "null"},
		"output":             {wasm(text, output(1, len(text))), []Outcome{Succeeded}, text},
		"not JSON":           {wasm(text, output(1, 3)), []Outcome{Failed}, "null"},
		"an output flood":    {wasm(text, forever(output(1, 9))), []Outcome{TimedOut}, "null"},
		"a log flood":        {wasm("x\n", forever(output(2, 2))), []Outcome{TimedOut}, "null"},
		"an endless loop":    {wasm("", loop), []Outcome{TimedOut}, "null"},
		"memory.grow":        {wasm("", growing), []Outcome{TimedOut, OutOfMemory}, "null"},
		"table.grow":         {wasm("", tables), []Outcome{TimedOut, OutOfMemory}, "null"},
		"recursion":          {wasm("", recursive), []Outcome{OutOfMemory}, "null"},
		"a trap":             {wasm("", trap), []Outcome{Failed}, "null"},
		"outside its memory": {wasm("", outOfRange), []Outcome{Failed}, "null"},
		"not a module":       {[]byte("x"), []Outcome{Failed}, "null"},
		"an unknown import":  {slices.Replace(wasm("", noBody), 49, 50, 'X'), []Outcome{Failed}, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(WebAssembly, "main", row.code)
			c.Timeout, c.CPU = time.Minute, time.Minute
			if slices.Contains(row.outcomes, TimedOut) {
				c.Timeout, c.CPU = 10*time.Second, 300*time.Millisecond
			}
			r := run(t, p, c)
			require.Contains(t, row.outcomes, r.Outcome, "%+v", r.Fault)
			require.Equal(t, row.output, string(r.Output))
			other, err := p.Run(of(t, "globex"), js(`function main() { return 42 }`))
			require.NoError(t, err)
			require.Equal(t, "42", string(other.Output))
		})
	}
	t.Cleanup(func() { require.Less(t, residentMiB(t), before+150, "the platform's own memory in MiB") })
}

// An endless loop in a module ends with the call's time, although a module's code cannot be interrupted.
func TestModuleTimesOut(t *testing.T) {
	t.Parallel()
	c := call(WebAssembly, "main", wasm("", loop))
	c.Timeout, c.CPU = 50*time.Millisecond, time.Minute
	r := run(t, newPool(t), c)
	require.Equal(t, TimedOut, r.Outcome)
}

func TestEntryOfAModule(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for entry, ok := range map[string]bool{"main": true, "_start": false, "": false, "memory": false} {
		fault, err := p.Check(of(t, "acme"), call(WebAssembly, entry, wasm("", noBody)).Code, MaxMemory)
		require.NoError(t, err)
		require.Equal(t, ok, fault == nil, entry)
	}
}

// A module sends a request in JSON with idp.fetch, and copies the response into its memory with idp.read.
func TestModuleFetches(t *testing.T) {
	t.Parallel()
	request := `{"url":"https://example.com"}`
	refused := `{"error":"the host is not on the list of allowed hosts"}`
	body := slices.Concat(
		[]byte{0x41}, signed(64), []byte{0x41}, signed(len(request)), []byte{0x10, 1, 0x1a}, // idp.fetch(64, length)
		[]byte{0x41}, signed(64), []byte{0x10, 2, 0x1a}, // idp.read(64)
		output(1, len(refused)))
	r := run(t, newPool(t), call(WebAssembly, "main", wasm(request, body)))
	require.Equal(t, Succeeded, r.Outcome, fmt.Sprint(r.Fault))
	require.Equal(t, refused, string(r.Output))
}
