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

// surroundings are what a process of its own shares with the test that starts it.
type surroundings struct {
	File     string // an SQLite file
	Database string // or one of MongoDB
	Key      string
	Hooks    map[string]string
}

func (s surroundings) options() testkit.Options {
	return testkit.Options{File: s.File, Database: s.Database, Key: secret.New(s.Key)}
}

const inProcess = "AUTOMATION_TEST_PROCESS" // has the surroundings as JSON

// process is a copy of the test program that runs one test, which the other can stop and kill.
type process struct {
	*exec.Cmd
	out *bufio.Scanner
}

func startProcess(t *testing.T, test string, with surroundings) *process {
	t.Helper()
	text, err := json.Marshal(with)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+test+"$")
	cmd.Env = append(os.Environ(), inProcess+"="+string(text), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(func() { _ = p.Wait() }) // the test's context has ended by then
	return p
}

// await waits until the process says the line.
func (p *process) await(t *testing.T, line string) {
	t.Helper()
	var said []string
	for p.out.Scan() {
		if p.out.Text() == line {
			return
		}
		said = append(said, p.out.Text())
	}
	require.FailNow(t, "the process has ended", "%q", said)
}

// kill kills the process with SIGKILL, and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill())
	require.Error(t, p.Wait())
}

// here returns the surroundings of this process. It skips the test where another one has not started it.
func here(t *testing.T) surroundings {
	t.Helper()
	text := os.Getenv(inProcess)
	if text == "" {
		t.Skip("is run in a process of its own by another test")
	}
	var with surroundings
	require.NoError(t, json.Unmarshal([]byte(text), &with))
	return with
}
