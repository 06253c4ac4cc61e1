package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// asProgram is the variable with the arguments of a command line that is a process of its own, which can be killed.
const asProgram = "IDP_TEST_ARGUMENTS"

// TestAsProgram is that process.
func TestAsProgram(t *testing.T) {
	var args []string
	if json.Unmarshal([]byte(os.Getenv(asProgram)), &args) != nil {
		t.Skip("it runs only in processes that other tests start")
	}
	os.Exit(Main(context.Background(), session.Terminal{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, ConfigPath: "none", CachePath: os.TempDir(),
	}, args))
}

// killer is a proxy before the platform that kills the command line at chosen moments.
type killer struct {
	t        testing.TB
	platform *httputil.ReverseProxy
	strike   func(k *killer, w http.ResponseWriter, r *http.Request) // passes a write on, or kills

	mu    sync.Mutex
	child *exec.Cmd
	kills int
	seen  map[string]int // how often a write was sent, by its key or its path
}

// killedBy puts a killer before the platform of a play.
func (p *play) killedBy(strike func(*killer, http.ResponseWriter, *http.Request)) *killer {
	p.t.Helper()
	address, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(p.t, err)
	k := &killer{t: p.t, platform: httputil.NewSingleHostReverseProxy(address), strike: strike, seen: map[string]int{}}
	k.platform.ErrorLog, k.platform.FlushInterval = nil, -1
	k.platform.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return k
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/batch/users-exist", "/v1/batch/tree-nodes-check":
		k.platform.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodGet {
		k.platform.ServeHTTP(w, r)
		return
	}
	k.strike(k, w, r)
}

// kill kills the command line.
func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills++
	_ = k.child.Process.Kill() // it may have ended
}

// sent counts how often a write was sent.
func (k *killer) sent(r *http.Request) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := r.Header.Get("Idempotency-Key") + r.URL.Path
	k.seen[id]++
	return k.seen[id]
}

// everyStep kills before each write is passed on, after it is answered and before the answer is passed on, and a little
// after that, when the progress and the file of failures are written.
func everyStep(k *killer, w http.ResponseWriter, r *http.Request) {
	switch k.sent(r) {
	case 1:
		k.kill()
		panic(http.ErrAbortHandler)
	case 2:
		k.platform.ServeHTTP(httptest.NewRecorder(), r)
		k.kill()
		panic(http.ErrAbortHandler)
	case 3:
		time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, k.kill)
	}
	k.platform.ServeHTTP(w, r)
}

// anyByte kills when a random number of bytes has come, up to a number of kills.
func anyByte(kills int, size int64) func(*killer, http.ResponseWriter, *http.Request) {
	return func(k *killer, w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		armed := k.kills < kills
		k.mu.Unlock()
		if armed {
			deadly := &deadlyBody{in: r.Body, left: rand.Int64N(size + size/10), kill: k.kill}
			r.Body = struct {
				io.Reader
				io.Closer
			}{deadly, r.Body}
			k.platform.ServeHTTP(httptest.NewRecorder(), r)
			if deadly.left > 0 { // all of it was answered before
				k.kill()
			}
			panic(http.ErrAbortHandler)
		}
		k.platform.ServeHTTP(w, r)
	}
}

type deadlyBody struct {
	in   io.Reader
	left int64
	kill func()
}

func (b *deadlyBody) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left > 0 && b.left <= int64(n) {
		b.kill()
	}
	b.left -= int64(n)
	return n, err
}

// until runs the program until it ends by itself.
func (p *play) until(k *killer, args ...string) ended {
	p.t.Helper()
	proxy := httptest.NewUnstartedServer(k)
	proxy.Config.ErrorLog = nil
	proxy.Start()
	defer proxy.Close()
	text, err := json.Marshal(args)
	require.NoError(p.t, err)
	for {
		var out, notes strings.Builder
		child := exec.Command(os.Args[0], "-test.run=^TestAsProgram$")
		child.Env = append(os.Environ(), asProgram+"="+string(text))
		for name, value := range p.env {
			child.Env = append(child.Env, name+"="+value)
		}
		child.Env = append(child.Env, "IDPCLI_URL="+proxy.URL)
		child.Stdout, child.Stderr = &out, &notes
		k.mu.Lock()
		err := child.Start()
		k.child = child
		k.mu.Unlock()
		require.NoError(p.t, err)
		_ = child.Wait() // the state says how it ended
		if child.ProcessState.Exited() {
			return ended{child.ProcessState.ExitCode(), out.String(), notes.String()}
		}
		if out.Len() > 0 { // it was killed when it had told what it had done
			return ended{failure.Partly, out.String(), notes.String()}
		}
	}
}

// peopleFile makes a file of n users; every hundredth has a fault.
func peopleFile(t *testing.T, n int) (path string, size int64) {
	t.Helper()
	var file strings.Builder
	file.WriteString("username,display_name,email,free_ext_props.note\n")
	for i := range n {
		at := "@"
		if i%100 == 99 {
			at = " "
		}
		fmt.Fprintf(&file, "user%06d,\"用户, %d\",user%06d%sacme.test,\"=1+%d\nnext\"\n", i, i, i, at, i)
	}
	path = filepath.Join(t.TempDir(), "people.csv")
	require.NoError(t, os.WriteFile(path, []byte(file.String()), 0o600))
	return path, int64(file.Len())
}

// TestImportKilled kills the import of users at random moments. IDP_TEST_IMPORT_USERS=100000 makes it a soak.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	p, n := realPlay(t), 2000
	if text := os.Getenv("IDP_TEST_IMPORT_USERS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	path, size := peopleFile(t, n)
	k := p.killedBy(anyByte(20, 2*size))
	began := time.Now()
	got := p.until(k, "users", "import", path, "--wait", "60s", "-o", "json")
	t.Logf("%d users, %d kills: %v\n%s%s", n, k.kills, time.Since(began), got.out, got.err)
	require.Equal(t, 9, got.code, got.err)
	require.GreaterOrEqual(t, k.kills, 20)
	require.JSONEq(t, fmt.Sprintf(`{"lines":%d,"created":%d,"updated":0,"skipped":0,"failed":%d,"failed_file":%q}`,
		n, n-n/100, n/100, strings.TrimSuffix(path, ".csv")+".failed.csv"), got.out)
	require.NoFileExists(t, path+".progress")

	var want []string
	for i := range n {
		if i%100 != 99 {
			want = append(want, fmt.Sprintf("user%06d 用户, %d =1+%d\nnext", i, i, i))
		}
	}
	require.Equal(t, want, p.exported("users", "username", "display_name", "free_ext_props.note"))
	mend(t, strings.TrimSuffix(path, ".csv")+".failed.csv", " acme", "@acme", n/100)
	p.done("users", "import", strings.TrimSuffix(path, ".csv")+".failed.csv")
	require.Len(t, p.exported("users", "username"), n)
}

// mend replaces what is wrong in a file of failures, which has so many records.
func mend(t *testing.T, path, wrong, right string, records int) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, records, strings.Count(string(content), wrong), path)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(content), wrong, right)), 0o600))
}

// exported exports records, and returns members of each.
func (p *play) exported(kind string, members ...string) []string {
	p.t.Helper()
	var list []string
	for line := range strings.Lines(p.done(kind, "export", "-o", "jsonl").out) {
		var record map[string]any
		require.NoError(p.t, json.Unmarshal([]byte(line), &record))
		var parts []string
		for _, member := range members {
			outer, inner, nested := strings.Cut(member, ".")
			value := record[outer]
			if object, ok := value.(map[string]any); nested && ok {
				value = object[inner]
			}
			parts = append(parts, fmt.Sprint(value))
		}
		list = append(list, strings.Join(parts, " "))
	}
	return list
}

// manyRecords are several batches.
const manyRecords = 2100

// lost tells of which records the user does not exist, and refused which ones the platform refuses.
func lost(i int) bool    { return i%100 == 99 }
func refused(i int) bool { return i%50 == 48 }

func tooLong(i int) string {
	if refused(i) {
		return strings.Repeat("x", 300)
	}
	return ""
}

// imports are files of every kind but users, and what is there after the import.
var imports = []struct {
	kind, header string
	line         func(i int) string
	members      []string
	want         func(i int) string
	n            int
}{
	{"nodes", "tree,ref,parent_ref,name", func(i int) string {
		if lost(i) { // there is no such parent
			return fmt.Sprintf("company,n%d,nowhere,Node", i)
		}
		parent := ""
		if i > 0 && i%7 != 0 {
			parent = fmt.Sprintf("n%d", i-i%7)
		}
		return fmt.Sprintf("company,n%d,%s,Node %d%s", i, parent, i, tooLong(i))
	}, []string{"ref", "name"}, func(i int) string { return fmt.Sprintf("n%d Node %d", i, i) }, manyRecords},
	{"members", "node,user,title", func(i int) string {
		return fmt.Sprintf("company/n0,user%06d,%s", i, tooLong(i)+fmt.Sprint(i))
	}, []string{"node", "user", "title"}, func(i int) string {
		return fmt.Sprintf("company/n0 user%06d %d", i, i)
	}, manyRecords},
	{"accounts", "application,user,account", func(i int) string {
		return fmt.Sprintf("crm,user%06d,a%d%s", i, i, tooLong(i))
	}, []string{"user", "account"}, func(i int) string { return fmt.Sprintf("user%06d a%d", i, i) }, manyRecords},
	{"grants", "to,object,type,actions", func(i int) string {
		if refused(i) {
			return fmt.Sprintf("user:user%06d,crm:nothing,data,read", i)
		}
		return fmt.Sprintf("user:user%06d,crm:invoice,data,read", i)
	}, []string{"to", "object"}, func(i int) string {
		return fmt.Sprintf("user:user%06d crm:invoice", i)
	}, manyRecords},
	{"kv", "bucket,key,value", func(i int) string {
		if lost(i) || refused(i) {
			return fmt.Sprintf("settings,../k%d,%d", i, i)
		}
		return fmt.Sprintf("settings,k%03d,%d", i, i)
	}, []string{"key", "value"}, func(i int) string { return fmt.Sprintf("k%03d %d", i, i) }, 50},
}

// TestImportKilledAtEveryStep kills the import of every other kind at every step of every request. The files have
// several batches, with records that nobody can send and that the platform refuses, so that batches are sent again.
func TestImportKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.frame()
	path, _ := peopleFile(t, manyRecords)
	require.Equal(t, 9, p.run("users", "import", path).code)
	for _, c := range imports {
		file := []string{c.header}
		var want []string
		for i := range c.n {
			file = append(file, c.line(i))
			if !lost(i) && !refused(i) && (c.kind != "nodes" || !lostWith(i)) {
				want = append(want, c.want(i))
			}
		}
		path := filepath.Join(t.TempDir(), c.kind+".csv")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(file, "\n")), 0o600))
		k := p.killedBy(everyStep)
		began := time.Now()
		got := p.until(k, c.kind, "import", path, "-o", "json")
		t.Logf("%s: %d kills, %v: %s", c.kind, k.kills, time.Since(began), got.out)
		require.Equal(t, 9, got.code, "%s: %s", c.kind, got.err)
		require.Greater(t, k.kills, 5)
		failed := c.n - len(want)
		assert.JSONEq(t, fmt.Sprintf(`{"lines":%d,"created":%d,"updated":0,"skipped":0,"failed":%d,"failed_file":%q}`,
			c.n, len(want), failed, strings.TrimSuffix(path, ".csv")+".failed.csv"), got.out)
		there := p.exported(c.kind, c.members...)
		slices.Sort(there)
		slices.Sort(want)
		assert.Equal(t, want, there, c.kind)
		content, err := os.ReadFile(strings.TrimSuffix(path, ".csv") + ".failed.csv")
		require.NoError(t, err)
		rows := strings.Split(strings.TrimSpace(string(content)), "\n")
		if len(rows) != failed+1 {
			t.Logf("%v", rows[:min(len(rows), 5)])
		}
		assert.Equal(t, failed+1, len(rows), "each failure once, and the header")
		assert.Equal(t, failed+1, len(slices.Compact(slices.Sorted(slices.Values(rows)))))
	}
}

// lostWith reports whether a node's parent was not made.
func lostWith(i int) bool {
	parent := i - i%7
	return lost(parent) || refused(parent)
}

// TestImportWhilePlatformRestarts kills the platform in the middle of an import, which waits for it and goes on.
func TestImportWhilePlatformRestarts(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	const n = 6000 // three of the batches that the platform stores
	path, size := peopleFile(t, n)
	requests, restarts := 0, 0
	proxy := httptest.NewServer(p.killedBy(func(k *killer, w http.ResponseWriter, r *http.Request) {
		if requests++; requests <= 3 {
			left, restart := size*int64(requests)/2, func() { restarts++; p.restart() }
			r.Body = struct {
				io.Reader
				io.Closer
			}{&deadlyBody{in: r.Body, left: left, kill: restart}, r.Body}
		}
		k.platform.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	direct := p.env["IDPCLI_URL"]
	p.env["IDPCLI_URL"] = proxy.URL
	got := p.run("users", "import", path, "--wait", "60s", "--jq", ".created")
	require.Equal(t, 9, got.code, got.err)
	require.Equal(t, fmt.Sprintf("%d\n", n-n/100), got.out)
	require.Equal(t, 3, restarts)
	p.env["IDPCLI_URL"] = direct
	usernames := p.exported("users", "username")
	slices.Sort(usernames)
	require.Len(t, slices.Compact(usernames), n-n/100)
}
