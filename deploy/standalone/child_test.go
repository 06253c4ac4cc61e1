package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/automation"
)

// TestMain runs this test program as one of the programs that it tests, the platform or the yardstick, in a process
// of its own that can be measured and killed.
func TestMain(m *testing.M) {
	automation.RunIfWorker()
	switch os.Getenv("IDP_TEST_CHILD") {
	case "platform":
		leaveOut(os.Getenv("IDP_TEST_WITHOUT"))
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer cancel()
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	case "yardstick":
		yardstick()
	}
	os.Exit(m.Run())
}

// yardstick is a bare Gin handler. The platform's speed is reported as a share of its speed.
func yardstick() {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"message": "hello"}) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	panic(http.Serve(listener, engine)) // time-outs are not needed here
}

// child is a running program.
type child struct {
	t    testing.TB
	cmd  *exec.Cmd
	Addr string // host:port
	Dir  string // the data folder
	logs string // the file with its standard error
}

// startPlatform starts the platform on a folder and waits until it is ready.
func startPlatform(t testing.TB, dir string, env ...string) *child {
	t.Helper()
	c := &child{t: t, Dir: dir, logs: filepath.Join(t.TempDir(), "log")}
	c.start(append([]string{
		"IDP_TEST_CHILD=platform", "IDP_DATA_DIR=" + dir, "IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=off",
		"IDP_NATS_LISTEN=127.0.0.1:0",
	}, env...), "serve")
	return c
}

func startYardstick(t testing.TB) *child {
	t.Helper()
	c := &child{t: t, logs: filepath.Join(t.TempDir(), "log")}
	c.start([]string{"IDP_TEST_CHILD=yardstick"})
	return c
}

func (c *child) start(env []string, args ...string) {
	c.t.Helper()
	logs, err := os.Create(c.logs)
	require.NoError(c.t, err)
	defer logs.Close()
	c.cmd = exec.Command(os.Args[0], args...)
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), env...), logs
	out, err := c.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, c.cmd.Start())
	c.t.Cleanup(c.kill)
	lines := bufio.NewScanner(out)
	for c.Addr == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			c.Addr, _, _ = strings.Cut(rest, "/")
		}
	}
	require.NoError(c.t, lines.Err())
	if c.Addr == "" {
		_ = c.cmd.Wait()
		text, _ := os.ReadFile(c.logs)
		require.FailNow(c.t, "the program did not start", "%s", text)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// kill sends SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// stop sends SIGTERM; the program must end without an error.
func (c *child) stop() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(syscall.SIGTERM))
	if err := c.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(c.logs)
		require.NoError(c.t, err, "%s", text)
	}
}

// output runs a sub-command on the child's data folder.
func (c *child) output(args ...string) string {
	c.t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "IDP_TEST_CHILD=platform", "IDP_DATA_DIR="+c.Dir)
	text, err := cmd.Output()
	require.NoError(c.t, err)
	return strings.TrimSpace(string(text))
}

func (c *child) token(args ...string) string {
	c.t.Helper()
	lines := strings.Split(c.output(append([]string{"token"}, args...)...), "\n")
	return lines[len(lines)-1]
}

// ready reports whether the program answers that it is ready.
func (c *child) ready() bool {
	c.t.Helper()
	answer, err := http.Get("http://" + c.Addr + "/readyz")
	require.NoError(c.t, err)
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// rss is the program's resident memory in MiB, and peak the highest it has been.
func (c *child) rss() float64  { return c.memory("VmRSS:") }
func (c *child) peak() float64 { return c.memory("VmHWM:") }

func (c *child) memory(what string) float64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	_, after, _ := strings.Cut(string(text), what)
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	require.NoError(c.t, err)
	return kib / 1024
}

// cpu is the processor time that the program has used.
func (c *child) cpu() time.Duration {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	require.NoError(c.t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}
