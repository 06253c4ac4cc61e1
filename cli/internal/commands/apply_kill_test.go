package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// applyKiller stands between a command and the platform. It kills the command at its nth change: before the platform
// hears of it, or when the platform has answered, but the command has not heard.
type applyKiller struct {
	platform *httputil.ReverseProxy

	mu       sync.Mutex
	left     int // changes until the kill; 0: none
	answered bool
	kill     func() // returns when the process is gone
}

func (k *applyKiller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	now := false
	if changes(r) && k.left > 0 {
		k.left--
		now = k.left == 0
	}
	k.mu.Unlock()
	if !now {
		k.platform.ServeHTTP(w, r)
		return
	}
	if k.answered {
		k.platform.ServeHTTP(httptest.NewRecorder(), r)
	}
	k.kill()
	panic(http.ErrAbortHandler)
}

// changes reports whether a request changes something.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.URL.Query().Get("dry_run") == "" &&
		!strings.HasSuffix(r.URL.Path, "-check") && !strings.HasSuffix(r.URL.Path, "-exist") &&
		r.URL.Path != "/v1/auth-impact"
}

// TestApplyKilled kills the program itself (SIGKILL) at each change of an apply, and runs the same command again: it
// needs no other flag, and the end is that of an apply that nobody has killed.
func TestApplyKilled(t *testing.T) {
	t.Parallel()
	real := realPlay(t)
	program := filepath.Join(filepath.Dir(os.Getenv("IDP_TEST_PROGRAM")), "idp")
	require.FileExists(t, program)
	target, err := url.Parse(real.env["IDPCLI_URL"])
	require.NoError(t, err)
	for _, set := range []bool{false, true} {
		for _, answered := range []bool{false, true} {
			t.Run(fmt.Sprintf("set %t answered %t", set, answered), func(t *testing.T) {
				t.Parallel()
				k := &applyKiller{platform: httputil.NewSingleHostReverseProxy(target), answered: answered}
				transport := &http.Transport{} // httptest servers of other tests close connections of the default one
				t.Cleanup(transport.CloseIdleConnections)
				k.platform.Transport = transport
				server := httptest.NewServer(k)
				t.Cleanup(server.Close)
				tenants := &killed{t: t, real: real, program: program, killer: k, url: server.URL, set: set}
				whole := tenants.apply("whole", 0)
				steps := 1
				for ; ; steps++ {
					got := tenants.apply("killed", steps)
					require.Equal(t, whole.records, got.records, "killed at change %d", steps)
					require.Equal(t, whole.state, got.state, "killed at change %d", steps)
					if set { // without one, the secrets of lost answers are lost
						require.Equal(t, whole.secrets, got.secrets, "killed at change %d", steps)
					}
					if !got.killed {
						break
					}
				}
				assert.Greater(t, steps, 20, "there are that many changes")
				t.Logf("killed %d times", steps-1)
			})
		}
	}
}

// killed makes tenants by applies that are killed.
type killed struct {
	t       *testing.T
	real    *play
	program string
	killer  *applyKiller
	url     string
	set     bool
}

// left is what an apply has left in a tenant.
type left struct {
	records map[string]string // files of an export
	state   string            // of the set, without ids
	secrets []string          // the records whose secrets are known, and good
	killed  bool
}

// apply applies all kinds in a new tenant. The nth change kills the program (0: none does), and the same command is run
// again.
func (k *killed) apply(name string, nth int) left {
	t := k.t
	p := &play{t: t, server: k.real.server, config: k.real.config, ctx: t.Context(), env: maps.Clone(k.real.env)}
	p.inTenant(fmt.Sprintf("%s-%t-%t-%d", name, k.set, k.killer.answered, nth))
	file, secrets := p.file(allKinds), filepath.Join(t.TempDir(), "secrets")
	args := []string{"apply", "-f", file, "--yes", "--wait", "0", "--secrets-to", secrets}
	if k.set {
		args = append(args, "--set", "all")
	}
	out := left{killed: nth > 0 && k.run(p.env, nth, args)}
	if out.killed || nth == 0 {
		require.False(t, k.run(p.env, 0, args))
	}
	folder := t.TempDir()
	got := p.run("export", "-f", folder)
	require.Equal(t, 0, got.code, got.err)
	out.records = contents(t, folder)
	if k.set {
		out.state = p.run("api", "get-kv-object", "idp-apply", "set.all", "--jq",
			".value.records | map(del(.id)) | sort_by(.kind, .key)").out
		locks := p.run("api", "list-kv-objects", "idp-apply", "--prefix", "lock.", "--jq", ".items | length")
		require.Equal(t, "0\n", locks.out)
	}
	out.secrets = p.goodSecrets(secrets)
	return out
}

// run runs the program. It returns whether it was killed at the nth change, or was stopped before by an answer that a
// busy machine did not give (--wait 0 waits for none); otherwise it has ended well.
func (k *killed) run(env map[string]string, nth int, args []string) bool {
	t := k.t
	var notes bytes.Buffer
	command := exec.Command(k.program, args...)
	command.Stdout, command.Stderr = &notes, &notes
	command.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir())
	for name, value := range env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Env = append(command.Env, "IDPCLI_URL="+k.url)
	ended := make(chan struct{})
	k.killer.mu.Lock()
	k.killer.left = nth
	k.killer.kill = func() {
		_ = command.Process.Kill()
		<-ended
	}
	k.killer.mu.Unlock()
	require.NoError(t, command.Start())
	err := command.Wait()
	close(ended)
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		require.Equal(t, syscall.SIGKILL, status.Signal())
		return true
	}
	if code := command.ProcessState.ExitCode(); nth > 0 && (code == failure.Partly || code == failure.Unavailable) {
		t.Logf("stopped by itself before change %d: %s", nth, notes.String()) // the same command goes on all the same
		return true
	}
	require.NoError(t, err, notes.String())
	return false
}

// goodSecrets are the records whose secrets are in the file, a line each. The application's is tried.
func (p *play) goodSecrets(file string) []string {
	text, err := os.ReadFile(file)
	require.NoError(p.t, err)
	var out []string
	for line := range strings.Lines(string(text)) {
		var made map[string]string
		require.NoError(p.t, json.Unmarshal([]byte(line), &made), line)
		out = append(out, made["record"])
		if made["record"] != "Application crm" {
			continue
		}
		answer, err := http.PostForm(p.env["IDPCLI_URL"]+"/v1/oauth2/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {made["client_id"]},
			"client_secret": {made["client_secret"]},
		})
		require.NoError(p.t, err)
		require.NoError(p.t, answer.Body.Close())
		assert.Equal(p.t, http.StatusOK, answer.StatusCode)
	}
	return out
}
