package sandbox

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Each attack ends its own call. Meanwhile calls of another tenant succeed, and the memory of this process does not
// grow.
func TestAttacks(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Workers = 4 })
	before := residentMiB(t)
	for name, row := range map[string]struct {
		source   string
		outcomes []Outcome
	}{
		"an endless loop": {`for (;;) {}`, []Outcome{TimedOut}},
		"an endless job queue": {`const f = () => Promise.resolve().then(f); f()`,
			[]Outcome{TimedOut, OutOfMemory}},
		"recursion":                {`const f = () => f() + 1; f()`, []Outcome{OutOfMemory}},
		"recursion through native": {`const f = () => [1].map(f); f()`, []Outcome{Failed, OutOfMemory, TimedOut}},
		"a string of 10 GiB":       {`"x".repeat(10 * 2 ** 30).length`, []Outcome{OutOfMemory, Failed}},
		"a string of 300 MiB":      {`"x".repeat(300 * 2 ** 20).length`, []Outcome{OutOfMemory}},
		"a doubled string":         {`let s = "xxxxxxxx"; for (;;) s += s`, []Outcome{OutOfMemory, Failed}},
		"a large array":            {`const a = new Array(2 ** 32 - 1).fill(0)`, []Outcome{TimedOut, OutOfMemory}},
		"a growing array":          {`const a = []; for (;;) a.push([1, 2, 3])`, []Outcome{OutOfMemory}},
		"a typed array":            {`new Float64Array(2 ** 30)`, []Outcome{OutOfMemory, Failed}},
		"a backtracking pattern":   {`/(?=(a+)+$)((a+)+)+\1b/.test("a".repeat(40))`, []Outcome{TimedOut}},
		"a log flood":              {`for (;;) console.log("x")`, []Outcome{TimedOut}},
		"a fetch flood":            {`for (;;) fetch("https://example.com")`, []Outcome{TimedOut, OutOfMemory}},
		"an endless catch":         {`for (;;) try { null.x } catch (e) {}`, []Outcome{TimedOut}},
		"a deep result": {`const p = () => new Proxy({}, {ownKeys: () => ["a"],
			getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true}), get: () => p()}); return p()`,
			[]Outcome{Failed, OutOfMemory, TimedOut}},
		"an endless getter":    {`return {get a() { for (;;) {} }}`, []Outcome{TimedOut}},
		"an endless toString":  {`throw {toJSON() { for (;;) {} }}`, []Outcome{TimedOut}},
		"an endless thenable":  {`return {then() { for (;;) {} }}`, []Outcome{TimedOut}},
		"deep source for eval": {`eval("(".repeat(1e7))`, []Outcome{Failed, OutOfMemory, TimedOut}},
		"a sorted flood": {`const a = Array.from({length: 1e5}, Math.random); for (;;) a.sort(() => 1)`,
			[]Outcome{TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := js("async function main() {" + row.source + "}")
			c.Timeout, c.CPU = time.Minute, time.Minute
			if slices.Contains(row.outcomes, TimedOut) {
				c.Timeout, c.CPU = 10*time.Second, 300*time.Millisecond
			}
			r := run(t, p, c)
			require.Contains(t, row.outcomes, r.Outcome, "%+v", r.Fault)
			require.NotEmpty(t, r.Fault.Message)
			other, err := p.Run(of(t, "globex"), js(`function main() { return 42 }`))
			require.NoError(t, err)
			require.Equal(t, "42", string(other.Output))
		})
	}
	t.Cleanup(func() { require.Less(t, residentMiB(t), before+150, "the platform's own memory in MiB") })
}

// residentMiB is the memory of this process.
func residentMiB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the memory of a process is read from /proc")
	}
	pages, err := strconv.Atoi(string(bytes.Fields(text)[1]))
	require.NoError(t, err)
	return pages * os.Getpagesize() >> 20
}

// Source that takes much time or memory to compile has a fault, and does not end this process.
func TestSourcesThatDoNotCompile(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	for name, source := range map[string]string{
		"parentheses": strings.Repeat("(", 256<<10),
		"arrays":      strings.Repeat("[{a:", 60_000),
		"functions":   strings.Repeat("()=>", 60_000),
		"operators":   strings.Repeat("!", 250_000) + ";(",
		"additions":   "1" + strings.Repeat("+1", 120_000) + ";(",
		"a bad byte":  "function main() { \xff }(",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault, err := p.Check(of(t, "acme"), js(source).Code, MaxMemory)
			require.NoError(t, err)
			require.NotNil(t, fault)
			require.NotEmpty(t, fault.Message)
			require.LessOrEqual(t, len(fault.Message), maxMessage)
		})
	}
}

// What a call changes in its runtime is not there for the next call of the same worker.
func TestCallsShareNothing(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Workers = 1 })
	poison := `
		globalThis.left = 1; Object.prototype.x = "poison"; Array.prototype.map = () => "poison"
		JSON.parse = () => "poison"; Promise.prototype.then = () => "poison"; RegExp.prototype.test = () => "poison"
		String.prototype.toString = () => "poison"; console.log = 7; delete globalThis.fetch`
	honest := `
		var count = (globalThis.count || 0) + 1; const tag = (s) => { try { s.n = 1 } catch (e) {} return s.n }
		function main(i) {
			return [typeof left, ({}).x, [1].map(x => x + 1), JSON.parse("2"), typeof fetch, typeof console.log, count,
				/a/.test("b"), tag` + "`t`" + `, i]
		}`
	for range 3 {
		r := run(t, p, js(poison+`; function main() { }`))
		require.Equal(t, Succeeded, r.Outcome)
		c := js(honest)
		c.Input = []byte(`{"a":1}`)
		r = run(t, p, c)
		require.JSONEq(t, `["undefined",null,[2],2,"function","function",1,false,null,{"a":1}]`, string(r.Output))
	}
	require.Len(t, p.all, 1, "one worker ran all calls")
}

// If a worker is killed during a call, only that call fails. One that is killed while it is idle is replaced.
func TestKilledWorkers(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	run(t, p, js(`function main() {}`))
	idle := theWorker(t, p)
	require.NoError(t, idle.cmd.Process.Signal(syscall.SIGKILL))
	run(t, p, js(`function main() {}`))
	require.NotSame(t, idle, theWorker(t, p))

	begun := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	c := js(fmt.Sprintf(`function main() { return fetch(%q) }`, server.URL))
	c.Hosts = []string{strings.TrimPrefix(server.URL, "http://")}
	failed := make(chan error, 1)
	go func() {
		_, err := p.Run(of(t, "acme"), c)
		failed <- err
	}()
	<-begun
	require.NoError(t, theWorker(t, p).cmd.Process.Signal(syscall.SIGKILL))
	require.Equal(t, apperr.OutcomeUnknown, apperr.KindOf(<-failed))
	require.Equal(t, Succeeded, run(t, p, js(`function main() {}`)).Outcome)
}

func theWorker(t *testing.T, p *Pool) *process {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.all {
		return w
	}
	t.Fatal("there is no worker")
	return nil
}

// Calls end when their time is over or the pool is closed.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c := js(`function main() { console.log("begun"); for (;;) {} }`)
	c.CPU = time.Minute
	c.Timeout = time.Second
	r := run(t, p, c)
	require.Equal(t, TimedOut, r.Outcome)
	require.Len(t, r.Logs, 1)

	c.Timeout = time.Minute
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := p.Run(of(t, "acme"), c)
			require.Error(t, err)
		})
	}
	wait.Until(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.all) > 0 && len(p.idle) == 0 })
	p.Close()
	calls.Wait()
	_, err := p.Run(of(t, "acme"), c)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}

// Workers end when there is no call for a while.
func TestIdleWorkersEnd(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Idle = time.Millisecond })
	require.Empty(t, p.all, "there is no worker before the first call")
	for range 3 {
		require.Equal(t, Succeeded, run(t, p, js(`function main() {}`)).Outcome)
	}
	wait.Until(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.all) == 0 })
}

// The pipes to a worker are closed with it.
func TestPipesAreClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Pool, *process){
		"it expires":         func(p *Pool, w *process) { p.expire(w) },
		"it is used up":      func(p *Pool, w *process) { w.spent = true; p.release(w) },
		"it is killed":       func(_ *Pool, w *process) { w.kill(); <-w.exited },
		"the pool is closed": func(p *Pool, _ *process) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			run(t, p, js(`function main() {}`))
			w := theWorker(t, p)
			end(p, w)
			wait.Until(t, func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.all) == 0
			})
			for _, end := range w.ends {
				require.ErrorIs(t, end.Close(), os.ErrClosed)
			}
		})
	}
}

// Code that has taken its worker over cannot make the pool report what is no outcome or log level.
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	for _, forged := range []string{
		`{"outcome":"won","fault":{"message":"x"}}`, `{"outcome":"failed"}`, `{"outcome":"succeeded","fault":{}}`, `[]`,
	} {
		_, err := (&running{}).verdict([]byte(forged))
		require.ErrorIs(t, err, errProtocol, forged)
	}
	for _, forged := range []string{`{"level":"loud","text":"x"}`, `7`} {
		require.ErrorIs(t, (&running{}).note([]byte(forged)), errProtocol, forged)
	}
}
