package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// smallDisk mounts a file system for the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "--lazy", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return dir
}

// fill takes all space of the file system, until free is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	file, err := os.Create(name)
	require.NoError(t, err)
	for _, size := range []int{1 << 20, 4096, 1} {
		for block := make([]byte, size); err == nil || !errors.Is(err, syscall.ENOSPC); {
			_, err = file.Write(block)
		}
		err = nil
	}
	require.NoError(t, file.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

// logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *logText) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *logText) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func TestHealsAfterAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "24m")
	var log logText
	s, err := Start(Config{StoreDir: filepath.Join(disk, "nats"), Listen: "127.0.0.1:0", User: "follower",
		Password: "secret",
		Log:      slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	url := s.ClientURL()
	_, js := connect(t, "", nats.InProcessServer(s.Conn()), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond))
	_, err = js.CreateStream(t.Context(), events)
	require.NoError(t, err)
	reader, _ := connect(t, url, nats.UserInfo("follower", "secret"), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond))
	follows, err := reader.SubscribeSync("idp.events.>")
	require.NoError(t, err)
	require.NoError(t, reader.Flush())

	body := bytes.Repeat([]byte("x"), 10_000)
	publish := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := js.PublishMsg(ctx, &nats.Msg{Subject: "idp.events.acme.user.created", Data: body},
			jetstream.WithRetryAttempts(0))
		return err
	}
	acknowledged := uint64(0)
	for round := range 2 { // the second time shows that it can happen again
		require.NoError(t, publish())
		acknowledged++
		free := fill(t, disk)
		for publish() == nil {
			acknowledged++
		}
		wait.Until(t, func() bool {
			return s.health() != nil && strings.Count(log.String(), "cannot be restarted yet") > round
		}, "%s", &log)
		require.ErrorIs(t, s.space(), syscall.ENOSPC)

		free()
		freed := time.Now()
		wait.Until(t, func() bool { return publish() == nil }, "%s", &log)
		t.Logf("events flow %v after there is space", time.Since(freed))
		acknowledged++
		wait.Until(t, func() bool {
			return strings.Count(log.String(), "accepts events again") > round
		}, "%s", &log)
	}

	stream, err := js.Stream(t.Context(), events.Name)
	require.NoError(t, err)
	require.GreaterOrEqual(t, stream.CachedInfo().State.Msgs, acknowledged, "what was acknowledged is there")
	last, err := stream.GetMsg(t.Context(), stream.CachedInfo().State.LastSeq)
	require.NoError(t, err)
	require.Equal(t, body, last.Data)
	require.Equal(t, url, s.ClientURL())
	wait.Until(t, func() bool { // the reader has reconnected by itself
		require.NoError(t, publish())
		_, err := follows.NextMsg(100 * time.Millisecond)
		return err == nil
	})
}

// A stream that cannot be read does not recover by restarts, which disturb the other streams.
func TestADamagedStreamDoesNotCauseRestartAfterRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, Config{StoreDir: dir})
	_, js := connect(t, "", nats.InProcessServer(s.Conn()))
	_, err := js.CreateStream(t.Context(), events)
	require.NoError(t, err)
	s.Stop()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jetstream", "$G", "streams", events.Name, "meta.inf"),
		[]byte("{"), 0o600))

	var log logText
	s, err = Start(Config{StoreDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	wait.Until(t, func() bool {
		return strings.Contains(log.String(), "has not helped")
	}, "%s", &log)
	nc, _ := connect(t, "", nats.InProcessServer(s.Conn()))
	require.Never(t, func() bool {
		return nc.Stats().Reconnects > 0 || !nc.IsConnected()
	}, 2*lookEvery+lookEvery/2, 50*time.Millisecond)
}
