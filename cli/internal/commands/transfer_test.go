package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/session"
)

// faulty passes each write on only after every way to lose it: a connection that breaks before and after the platform
// has done it, a platform that is away, one that asks to wait, and an answer that says that nobody knows.
func faulty(k *killer, w http.ResponseWriter, r *http.Request) {
	switch k.sent(r) {
	case 1:
		panic(http.ErrAbortHandler)
	case 2:
		k.platform.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case 3:
		w.Header().Set("Retry-After", "0")
		refuse(w, http.StatusServiceUnavailable, "unavailable")
	case 4:
		w.Header().Set("Retry-After", "0")
		refuse(w, http.StatusTooManyRequests, "rate_limited")
	case 5:
		refuse(w, http.StatusBadGateway, "outcome_unknown")
	case 6:
		k.platform.ServeHTTP(&cutting{ResponseWriter: w}, r)
	default:
		k.platform.ServeHTTP(w, r)
	}
}

// cutting breaks an answer off in its middle.
type cutting struct{ http.ResponseWriter }

func (c *cutting) Write(p []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(p[:len(p)/2])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// TestTransferThroughFaults imports every kind through a faulty proxy: what is there then is what is there without it.
func TestTransferThroughFaults(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	proxy := httptest.NewUnstartedServer(p.killedBy(faulty))
	proxy.Start()
	t.Cleanup(proxy.Close)
	direct := p.env["IDPCLI_URL"]
	exports := map[string]string{}
	for _, tenant := range []string{"plain", "faulty"} {
		p.env["IDPCLI_TENANT"] = tenant
		p.frame()
		for _, kind := range transferred {
			if tenant == "faulty" {
				p.env["IDPCLI_URL"] = proxy.URL
			}
			p.done(kind, "import", fileOf(t, kind), "--wait", "60s")
			p.env["IDPCLI_URL"] = direct
			got := p.done(kind, "export").out
			if tenant == "faulty" {
				assert.Equal(t, exports[kind], got, kind)
			}
			exports[kind] = got
		}
	}
}

// imported is a platform that takes users, and keeps what came.
type imported struct {
	mu     sync.Mutex
	lines  []string
	keys   []string
	answer func(line string) string // the result; "": created
}

func (i *imported) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/users/import" {
		refuse(w, http.StatusNotFound, "not_found")
		return
	}
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lines, i.keys = nil, append(i.keys, r.Header.Get("Idempotency-Key"))
	w.Header().Set("Content-Type", "application/x-ndjson")
	for line := range strings.Lines(string(body)) {
		i.lines = append(i.lines, strings.TrimSpace(line))
		result := `"status":"created","id":"7"`
		if i.answer != nil {
			result = i.answer(line)
		}
		fmt.Fprintf(w, "{\"line\":%d,%s}\n", len(i.lines), result)
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestImportedRecords checks what becomes of cells and lines.
func TestImportedRecords(t *testing.T) {
	t.Parallel()
	platform := &imported{}
	p := newPlay(t, platform.serve)
	for _, c := range []struct {
		name, content string
		flags         []string
		want          []string
	}{
		{"bom.csv", "\ufeffusername, email \r\nli.wei,a@b\r\n\r\nw,\r\n", nil,
			[]string{`{"email":"a@b","username":"li.wei"}`, `{"username":"w"}`}},
		{"hostile.csv", "username,display_name,locale\n=cmd|'/c'!A1,\"+1\n\"\"-2\"\"\",@x\n", nil,
			[]string{`{"display_name":"+1\n\"-2\"","locale":"@x","username":"=cmd|'/c'!A1"}`}},
		{"extra.csv", "username,free_ext_props,free_ext_props.team,free_ext_props.a.b,email_verified,version\n" +
			"x,\"{\"\"n\"\":12345678901234567890}\",平台,1,TRUE,7\ny,,,,maybe,\n", nil, []string{
			`{"email_verified":true,"free_ext_props":{"n":12345678901234567890,"team":"平台","a":{"b":"1"}},` +
				`"username":"x"}`,
			`{"email_verified":"maybe","username":"y"}`}},
		{"mapped.csv", "Mail,Login,Notes,reason\na@b,x,secret,was bad\n",
			[]string{"--map", "Mail=email", "--map", "Login=username", "--map", "Notes=", "--set", "locale=zh-CN"},
			[]string{`{"email":"a@b","locale":"zh-CN","username":"x"}`}},
		{"lines.ndjson", `{"username":"x","sys_ext_props":{"a":<>}}`, nil, nil},
		{"lines.ndjson", `{"Username":"x"}`, nil, nil},
		{"lines.jsonl", "\ufeff\n" + `{"login":"x","id":"9","mobile":null,"sys_ext_props":{"b":"<","a":1e400}}` + "\n",
			[]string{"--map", "login=username"},
			[]string{`{"mobile":null,"sys_ext_props":{"b":"<","a":1e400},"username":"x"}`}},
	} {
		got := p.run(append([]string{"users", "import", writeFile(t, c.name, c.content)}, c.flags...)...)
		if c.want == nil {
			assert.Equal(t, 9, got.code, "%s: %s", c.name, got.err)
			continue
		}
		assert.Equal(t, 0, got.code, "%s: %s", c.name, got.err)
		assert.Equal(t, c.want, platform.lines, c.name)
	}
}

// TestImportRefusesFiles checks that nothing is sent of a file that cannot be right, and what is said.
func TestImportRefusesFiles(t *testing.T) {
	t.Parallel()
	p := newPlay(t, (&imported{}).serve)
	for _, c := range []struct {
		name, content string
		flags         []string
		want          string
	}{
		{"a.csv", "username,Mail,xyzzy\n", nil,
			`no column "Mail"; near it: email, email_verified (--map 'Mail=email'; --map 'Mail=' leaves it out)`},
		{"a.csv", "username,Mail,xyzzy\n", nil, `no column "xyzzy": one of username, display_name, email`},
		{"a.csv", "usernme\nx\n", nil, "near it: username"},
		{"a.csv", "username,email,username\n", nil, `"username" is there twice, as columns 1 and 3`},
		{"a.csv", "username,Mail,email\n", []string{"--map", "Mail=email"},
			`columns "Mail" and "email" both give email`},
		{"a.csv", "username,free_ext_props.a,free_ext_props.a.b\n", nil, "both give free_ext_props.a.b"},
		{"a.csv", "username,locale\n", []string{"--set", "locale=x"}, "--set locale: the column"},
		{"a.csv", "", nil, "is empty"},
		{"a.csv", "username\n\"a\nb\nc\n", nil, "a.csv:2: is not CSV"},
		{"a.csv", "username\nx\na\"b\n", nil, "a.csv:3: is not CSV"},
		{"a.csv", "username\n\"" + strings.Repeat("x", 3<<20), nil, "does not end"},
		{"a.csv", "\xff\xfeu\x00", nil, "UTF-16"},
		{"a.txt", "username\n", nil, "--format csv"},
		{"a.txt", "username\n", []string{"--format", "xlsx"}, "--format must be one of csv, jsonl"},
		{"a.jsonl", "{\"username\":\"" + strings.Repeat("x", 1<<20) + "\"}", nil, "a.jsonl:1: the line has more than"},
		{"a.csv", "username\n", []string{"--map", "a"}, "must be name=value"},
		{"a.csv", "username\n", []string{"--map", "a=nonsense"}, `no column "nonsense"`},
		{"a.csv", "username\n", []string{"--set", "sys_ext_props={"}, "is not JSON"},
		{"a.csv", "username\n", []string{"--on-conflict", "merge"}, "must be one of fail, skip, update"},
		{"a.csv", "username\n", []string{"--curl"}, "--curl"},
		{"a.csv", "username\n", []string{"--if-version", "1"}, "--if-version"},
	} {
		got := p.run(append([]string{"users", "import", writeFile(t, c.name, c.content)}, c.flags...)...)
		assert.Equal(t, 2, got.code, "%q %v: %s", c.content[:min(40, len(c.content))], c.flags, got.err)
		assert.Contains(t, got.err, c.want)
		assert.Empty(t, p.asked())
	}
	assert.Equal(t, 2, p.run("users", "import", filepath.Join(t.TempDir(), "none.csv")).code)
	assert.Equal(t, 2, p.run("users", "export", "-o", "json").code)
	assert.Equal(t, 2, p.run("users", "export", "--fields", "password").code)
	assert.Empty(t, p.asked())
}

// TestImportFailures checks the file of failures: the same columns with a reason, whole rows, and that it can be
// imported.
func TestImportFailures(t *testing.T) {
	t.Parallel()
	platform := &imported{answer: func(line string) string {
		if strings.Contains(line, "bad") {
			return `"status":"failed","errors":[{"location":"body.email","message":"is\u001b[31m\nwrong"},` +
				`{"location":"body","message":"too"}]`
		}
		return `"status":"skipped"`
	}}
	p := newPlay(t, platform.serve)
	path := writeFile(t, "people.csv", "Mail,username\n\"=1,\n2\",bad\nfew\na,b,many\nok@x,good\n\xff,x\n")
	got := p.run("users", "import", path, "--map", "Mail=email", "-o", "json")
	require.Equal(t, 9, got.code, got.err)
	failed := strings.TrimSuffix(path, ".csv") + ".failed.csv"
	assert.JSONEq(t, fmt.Sprintf(`{"lines":5,"created":0,"updated":0,"skipped":1,"failed":4,"failed_file":%q}`, failed),
		got.out)
	content, err := os.ReadFile(failed)
	require.NoError(t, err)
	assert.Equal(t, "reason,Mail,username\nemail: is [31m wrong; too,\"=1,\n2\",bad\n"+
		"\"has 1 cells, but the header has 2\",few\n\"has 3 cells, but the header has 2\",a,b,many\n"+
		"is not UTF-8,\xff,x\n", string(content))
	require.Len(t, platform.lines, 2, "what cannot be read is not sent")

	require.NoError(t, os.WriteFile(failed, []byte("reason,Mail,username\nold,a@b,bad\n"), 0o600))
	require.Equal(t, 9, p.run("users", "import", failed, "--map", "Mail=email").code)
	content, err = os.ReadFile(strings.TrimSuffix(failed, ".csv") + ".failed.csv")
	require.NoError(t, err)
	assert.Equal(t, "reason,Mail,username\nemail: is [31m wrong; too,a@b,bad\n", string(content))

	path = writeFile(t, "people.jsonl",
		`{"username":"bad","sys_ext_props":{"z":1,"a":12345678901234567890}}`+"\n[1]\n")
	require.Equal(t, 9, p.run("users", "import", path, "--failed", path+"x").code)
	content, err = os.ReadFile(path + "x")
	require.NoError(t, err)
	assert.Equal(t, `{"reason":"email: is [31m wrong; too","username":"bad",`+
		`"sys_ext_props":{"z":1,"a":12345678901234567890}}`+"\n"+
		`{"reason":"is not a JSON object","text":"[1]"}`+"\n", string(content))

	got = p.run("users", "import", path, "--dry-run")
	assert.Equal(t, 9, got.code)
	assert.Contains(t, got.err, "people.jsonl:2: is not a JSON object")
	assert.Contains(t, got.err, "dry run: nothing was changed")
	assert.NoFileExists(t, strings.TrimSuffix(path, ".jsonl")+".failed.jsonl", "a dry run writes nothing")
}

// TestImportGoesOnOnlyWithTheSame checks what an interrupted import refuses to go on with.
func TestImportGoesOnOnlyWithTheSame(t *testing.T) {
	t.Parallel()
	platform := &imported{}
	away := true
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if away {
			platform.keys = append(platform.keys, r.Header.Get("Idempotency-Key"))
			refuse(w, http.StatusServiceUnavailable, "unavailable")
			return
		}
		platform.serve(w, r)
	})
	path := writeFile(t, "people.csv", "username\nx\n")
	args := []string{"users", "import", path, "--wait", "0", "--set", "password=s3cret"}
	got := p.run(args...)
	require.Equal(t, 7, got.code, got.err)
	assert.Contains(t, got.err, "the same command goes on")
	away = false
	require.NoError(t, os.WriteFile(path, []byte("username\ny\n"), 0o600))
	got = p.run(args...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "the file has changed since")
	assert.Contains(t, got.err, "delete "+path+".progress")
	require.NoError(t, os.WriteFile(path, []byte("username\nx\n"), 0o600))
	assert.Contains(t, p.run(append(args, "--on-conflict", "skip")...).err, "with other flags")
	p.env["IDPCLI_TENANT"] = "globex"
	assert.Contains(t, p.run(args...).err, "not to globex")
	p.env["IDPCLI_TENANT"] = "acme"
	assert.Empty(t, p.asked(), "nothing was sent")
	old, err := os.ReadFile(path + ".progress")
	require.NoError(t, err)
	assert.NotContains(t, string(old), "s3cret")
	var kept map[string]any
	require.NoError(t, json.Unmarshal(old, &kept))
	kept["started"] = "2020-01-31T09:30:00Z"
	aged, err := json.Marshal(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".progress", aged, 0o600))
	assert.Contains(t, p.run(args...).err, "after 24 hours")
	require.NoError(t, os.WriteFile(path+".progress", old, 0o600))
	info, err := os.Stat(path + ".progress")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	got = p.run(args...)
	require.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.err, "goes on with the import of")
	assert.Equal(t, platform.keys[0], platform.keys[len(platform.keys)-1], "it has the same key")
	assert.NoFileExists(t, path+".progress")
}

func TestImportOfStandardInput(t *testing.T) {
	t.Parallel()
	platform := &imported{}
	p := newPlay(t, platform.serve)
	p.input = "username\nx\n"
	got := p.run("users", "import", "-")
	require.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.err, "this import cannot go on")
	assert.Equal(t, []string{`{"username":"x"}`}, platform.lines)
	p.input = `{"username":"y"}`
	got = p.run("users", "import", "-", "--format", "jsonl", "--progress", filepath.Join(t.TempDir(), "p"))
	require.Equal(t, 0, got.code, got.err)
	assert.NotContains(t, got.err, "cannot go on")
	assert.Equal(t, []string{`{"username":"y"}`}, platform.lines)
}

// TestImportInterrupted checks that Ctrl-C keeps what was done, says so, and that the same command goes on.
func TestImportInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	platform := &imported{}
	interrupted := false
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if !interrupted {
			interrupted = true
			cancel()
			<-r.Context().Done()
			return
		}
		platform.serve(w, r)
	})
	path := writeFile(t, "people.csv", "username\nx\n")
	p.ctx = ctx
	got := p.run("users", "import", path)
	assert.Equal(t, 130, got.code, got.err)
	assert.Contains(t, got.err, "the same command goes on")
	assert.FileExists(t, path+".progress")
	p.ctx = t.Context()
	assert.Equal(t, 0, p.run("users", "import", path).code)
	assert.Equal(t, []string{`{"username":"x"}`}, platform.lines)
}

// TestImportTwice checks that a second import with the same progress is kept out while the first one runs, and leaves
// it alone.
func TestImportTwice(t *testing.T) {
	t.Parallel()
	platform := &imported{}
	var p *play
	var path string
	var second ended
	p = newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		second = p.run("users", "import", path)
		platform.serve(w, r)
	})
	path = writeFile(t, "people.csv", "username\nx\n")
	first := p.run("users", "import", path)
	assert.Equal(t, 0, first.code, first.err)
	assert.Equal(t, 7, second.code, second.err)
	assert.Contains(t, second.err, "another import is under way, which keeps its progress in "+path+".progress")
	assert.Equal(t, []string{`{"username":"x"}`}, platform.lines)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "neither the progress nor its lock is left")
}

// TestUserColumns checks that an import knows every member that the platform takes or exports.
func TestUserColumns(t *testing.T) {
	t.Parallel()
	platform := &imported{}
	p := newPlay(t, platform.serve)
	var header []string
	for _, m := range session.Operation("create-user").Members {
		header = append(header, m.Name)
	}
	header = append(header, "id", "version", "locked", "lock_reason", "locked_until", "real_name_status", "real_name",
		"id_number_masked", "password_set", "time_password_changed", "time_last_login", "time_resigned", "time_created",
		"time_modified", "tenant_id", "avatar_url", "password_hash")
	slices.Sort(header)
	got := p.run("users", "import", writeFile(t, "a.csv", strings.Join(slices.Compact(header), ",")+"\n"))
	assert.Equal(t, 0, got.code, got.err)
}
