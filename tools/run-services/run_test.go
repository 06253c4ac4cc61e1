//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

const module = "github.com/idplatform/idplatform/"

var programsDir string

func TestMain(m *testing.M) {
	made, err := os.MkdirTemp("", "idp-programs-*")
	if err != nil {
		panic(err)
	}
	programsDir = cmp.Or(os.Getenv("IDP_TEST_PROGRAMS"), made)
	code := m.Run()
	_ = os.RemoveAll(made)
	os.Exit(leaks.Check(code))
}

// build builds all programs, unless IDP_TEST_PROGRAMS is the folder in which "make services" has just done so.
var build = sync.OnceValue(func() error {
	if os.Getenv("IDP_TEST_PROGRAMS") != "" {
		return nil
	}
	args := []string{"build", "-trimpath", "-tags", "nomsgpack", "-ldflags", "-s -w", "-o", programsDir,
		module + "gateway/cmd/idp-gateway", module + "console/cmd/idp-console", "github.com/nats-io/nats-server/v2"}
	for _, name := range services {
		args = append(args, module+"services/"+name+"/cmd/idp-"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// settingsForTest are those of a platform of its own.
func settingsForTest(t testing.TB) settings {
	t.Helper()
	require.NoError(t, build())
	s := defaults()
	s.BasePort, s.DataDir, s.Programs, s.NATSConfig = 0, t.TempDir(), programsDir, "../../deploy/nats/nats.conf"
	return s
}

func TestEveryServiceRuns(t *testing.T) {
	t.Parallel()
	commands, err := filepath.Glob("../../services/*/cmd/idp-*")
	require.NoError(t, err)
	var names []string
	for _, command := range commands {
		names = append(names, strings.TrimPrefix(filepath.Base(command), "idp-"))
	}
	assert.ElementsMatch(t, names, services)
}

// The programs' default ports are those of the default base port. So they do not clash, and a program that is started
// by hand has the same port as with "make run-services".
func TestDefaultPorts(t *testing.T) {
	t.Parallel()
	require.NoError(t, build())
	for i, name := range append([]string{"gateway"}, services...) {
		help, err := exec.Command(filepath.Join(programsDir, "idp-"+name), "--help").Output()
		require.NoError(t, err)
		port := defaults().BasePort + i
		assert.Contains(t, string(help), local(port), name)
		assert.Contains(t, string(help), local(port+adminOffset), name)
	}
	help, err := exec.Command(filepath.Join(programsDir, "idp-console"), "--help").Output()
	require.NoError(t, err)
	assert.Contains(t, string(help), local(defaults().BasePort+consoleOffset))
}

func TestSecretsAreKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	secrets := func() map[string]string {
		f, err := openFolder(dir)
		require.NoError(t, err)
		defer f.close()
		_, err = openFolder(dir)
		require.ErrorContains(t, err, "is in use")
		found := map[string]string{}
		for _, name := range []string{encryptionKeys, natsPassword, readersPassword, administratorSecret} {
			info, err := os.Stat(f.join(name))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
			found[name], err = f.read(name)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, len(found[name]), 32, name)
		}
		return found
	}
	first := secrets()
	assert.Equal(t, first, secrets())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestStartTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := settingsForTest(t)
	s.NATSConfig = filepath.Join(t.TempDir(), "none")
	_, err := start(t.Context(), s, io.Discard)
	require.ErrorContains(t, err, "nats ended")
	require.ErrorContains(t, err, "no such file", "the end of its log")

	s = settingsForTest(t)
	s.BasePort = freeBasePort()
	taken, err := net.Listen("tcp", local(s.BasePort+1))
	require.NoError(t, err)
	defer taken.Close()
	_, err = start(t.Context(), s, io.Discard)
	require.ErrorContains(t, err, "IDP_BASE_PORT")

	require.ErrorContains(t, run(t.Context(), []string{"--base-port", "70000"}, io.Discard), "base_port must be")
}

func TestCommand(t *testing.T) {
	t.Parallel()
	s := settingsForTest(t)
	flags := []string{
		"--base-port", "0", "--data-dir", s.DataDir, "--programs", s.Programs, "--nats-config", s.NATSConfig,
		"--", "bash", "-c",
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), append(flags, `
		curl -s -u "$IDP_BOOTSTRAP_CLIENT_ID:$(cat $IDP_BOOTSTRAP_CLIENT_SECRET_FILE)" \
			-d grant_type=client_credentials $IDP/v1/oauth2/token`), &out))
	assert.Contains(t, out.String(), `"scope":"platform:admin"`)
	var exit *exec.ExitError
	require.ErrorAs(t, run(t.Context(), append(flags, "exit 7"), io.Discard), &exit)
	assert.Equal(t, 7, exit.ExitCode())
}

// When the program is told to stop, it stops all processes, and they end without an error.
func TestStop(t *testing.T) {
	t.Parallel()
	s := settingsForTest(t)
	s.BasePort = freeBasePort()
	p, err := start(context.Background(), s, io.Discard)
	require.NoError(t, err)
	var greeting bytes.Buffer
	p.greet(t.Context(), &greeting)
	assert.Contains(t, greeting.String(), "identity-sources")
	assert.Contains(t, greeting.String(), "/console/sign-in#")
	logs := func() map[string]string {
		all := map[string]string{}
		for _, name := range append([]string{"gateway", "console"}, services...) {
			log, err := os.ReadFile(p.folder.join("logs/" + name + ".log"))
			require.NoError(t, err)
			all[name] = string(log)
		}
		return all
	}
	before := logs() // on a busy machine a task may have failed and gone on
	p.stop()
	require.NoError(t, checkPorts(s.BasePort), "no process listens")
	for name, log := range logs() {
		ending, ok := strings.CutPrefix(log, before[name])
		require.True(t, ok, name)
		assert.NotContains(t, ending, `"level":"ERROR"`, name)
	}
}
