package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(dir)
		return
	}
	leaks.Main(m)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, c Config) *Server {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	c.Log = quiet()
	s, err := Start(c)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func connect(t *testing.T, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url, options...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return nc, js
}

var events = jetstream.StreamConfig{Name: "IDP_EVENTS", Subjects: []string{"idp.events.>"}}

func TestKeepsMessagesOverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, Config{StoreDir: dir})
	require.Empty(t, s.ClientURL())
	_, js := connect(t, "", nats.InProcessServer(s.Conn()))
	_, err := js.CreateStream(t.Context(), events)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "idp.events.acme.user.created", []byte("kept"))
	require.NoError(t, err)

	_, err = Start(Config{StoreDir: dir, Log: quiet()})
	require.ErrorIs(t, err, ErrStoreBusy)
	s.Stop()

	s = start(t, Config{StoreDir: dir})
	_, js = connect(t, "", nats.InProcessServer(s.Conn()))
	stream, err := js.Stream(t.Context(), events.Name)
	require.NoError(t, err)
	message, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "kept", string(message.Data))
}

// A stream that is still being made when the server stops would stay open beside the next server on its files. Its
// goroutines would fail the run.
func TestStopsAmidTheMakingOfStreams(t *testing.T) {
	t.Parallel()
	for range 10 {
		s := start(t, Config{})
		nc, _ := connect(t, "", nats.InProcessServer(s.Conn()))
		for i := range 20 {
			name := "S" + strconv.Itoa(i)
			config := fmt.Sprintf(`{"name": %q, "subjects": [%[1]q], "storage": "file", "num_replicas": 1}`, name)
			require.NoError(t, nc.Publish("$JS.API.STREAM.CREATE."+name, []byte(config)))
		}
		require.NoError(t, nc.Flush())
		s.Stop()
	}
}

func TestTellsABusyPort(t *testing.T) {
	t.Parallel()
	first := start(t, Config{Listen: "127.0.0.1:0", User: "follower", Password: "secret"})
	addr := strings.TrimPrefix(first.ClientURL(), "nats://")
	dir := t.TempDir()
	_, err := Start(Config{StoreDir: dir, Listen: addr, User: "follower", Password: "secret", Log: quiet()})
	busy, ok := errors.AsType[*PortBusyError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, addr, busy.Addr)
	// the folder is free for another attempt
	start(t, Config{StoreDir: dir, Listen: "127.0.0.1:0", User: "follower", Password: "secret"})
}

// If the port is taken, the program reports it once; nats-server would log an error of its own, too.
func TestABusyPortIsNoErrorInTheLog(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	var log strings.Builder
	_, err = Start(Config{StoreDir: t.TempDir(), Listen: listener.Addr().String(), User: "follower", Password: "secret",
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.Error(t, err)
	require.Empty(t, log.String())
}

func TestRefusesABadConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]Config{
		"no folder":         {},
		"no user":           {StoreDir: dir, Listen: "127.0.0.1:0", Password: "secret"},
		"no password":       {StoreDir: dir, Listen: "127.0.0.1:0", User: "follower"},
		"wildcard user":     {StoreDir: dir, Listen: "127.0.0.1:0", User: "*", Password: "secret"},
		"user of two words": {StoreDir: dir, Listen: "127.0.0.1:0", User: "a.b", Password: "secret"},
		"no port":           {StoreDir: dir, Listen: "127.0.0.1", User: "follower", Password: "secret"},
		"bad port":          {StoreDir: dir, Listen: "127.0.0.1:70000", User: "follower", Password: "secret"},
		"named port":        {StoreDir: dir, Listen: "127.0.0.1:nats", User: "follower", Password: "secret"},
		"foreign address":   {StoreDir: dir, Listen: "192.0.2.1:0", User: "follower", Password: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Log = quiet()
			_, err := Start(c)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

const victimDir = "IDP_TEST_VICTIM_DIR"

// victim publishes until it is killed, and prints each acknowledged number.
func victim(dir string) {
	s, err := Start(Config{StoreDir: dir, Log: quiet()})
	if err != nil {
		panic(err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.Conn()))
	if err != nil {
		panic(err)
	}
	js, _ := jetstream.New(nc)
	if _, err := js.CreateStream(context.Background(), events); err != nil {
		panic(err)
	}
	for n := 1; ; n++ {
		if _, err := js.Publish(context.Background(), "idp.events.acme.user.created",
			[]byte(strconv.Itoa(n))); err != nil {
			panic(err)
		}
		fmt.Println(n)
	}
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), victimDir+"="+dir)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	acknowledged := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			break // the last line may be cut
		}
		acknowledged = max(acknowledged, n)
		if n == 1000 {
			require.NoError(t, process.Process.Kill())
		}
	}
	require.Error(t, process.Wait())
	require.GreaterOrEqual(t, acknowledged, 1000)

	s := start(t, Config{StoreDir: dir})
	_, js := connect(t, "", nats.InProcessServer(s.Conn()))
	stream, err := js.Stream(t.Context(), events.Name)
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.State.Msgs, uint64(acknowledged))
	last, err := stream.GetMsg(t.Context(), uint64(acknowledged))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(acknowledged), string(last.Data))
}
