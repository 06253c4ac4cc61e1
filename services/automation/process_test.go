package automation_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// environment is what another process shares with the test that starts it.
type environment struct {
	File     string // an SQLite file
	Database string // or a MongoDB database
	Key      string
	Hooks    map[string]string
}

func (s environment) options() testkit.Options {
	return testkit.Options{File: s.File, Database: s.Database, Key: secret.New(s.Key)}
}

const inProcess = "AUTOMATION_TEST_PROCESS" // the variable that has the environment as JSON

// process is the test program started again to run one test, so that another test can stop and kill it.
type process struct {
	*exec.Cmd
	out *bufio.Scanner
}

func startProcess(t *testing.T, test string, with environment) *process {
	t.Helper()
	text, err := json.Marshal(with)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+test+"$")
	cmd.Env = append(os.Environ(), inProcess+"="+string(text), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(func() { _ = p.Wait() }) // the end of the test's context has killed it
	return p
}

// await waits until the process prints the line.
func (p *process) await(t *testing.T, line string) {
	t.Helper()
	var printed []string
	for p.out.Scan() {
		if p.out.Text() == line {
			return
		}
		printed = append(printed, p.out.Text())
	}
	require.FailNow(t, "the process has ended", "%q", printed)
}

// kill kills the process (SIGKILL) and waits until it has ended.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill())
	require.Error(t, p.Wait())
}

// here returns the environment of this process. It skips the test unless another test has started the process.
func here(t *testing.T) environment {
	t.Helper()
	text := os.Getenv(inProcess)
	if text == "" {
		t.Skip("another test runs this one in its own process")
	}
	var with environment
	require.NoError(t, json.Unmarshal([]byte(text), &with))
	return with
}
