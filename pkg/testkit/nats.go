package testkit

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus/embedded"
)

// NATS is a server that can be stopped and started again.
type NATS struct {
	t      testing.TB
	dir    string
	log    *slog.Logger
	mu     sync.Mutex
	server *embedded.Server
}

func newNATS(t testing.TB, log *slog.Logger) *NATS {
	n := &NATS{t: t, dir: t.TempDir(), log: log}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Start starts the server again, with the content of its streams.
func (n *NATS) Start() {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	server, err := embedded.Start(embedded.Config{StoreDir: n.dir, Log: n.log})
	require.NoError(n.t, err)
	n.server = server
}

// Stop stops the server.
func (n *NATS) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server != nil {
		n.server.Stop()
		n.server = nil
	}
}

// Copy stops the server, copies its files and starts it again. Restore brings the copy back, as if all later writes had
// been lost in a power cut.
func (n *NATS) Copy() (dir string) {
	n.t.Helper()
	n.Stop()
	dir = n.t.TempDir()
	require.NoError(n.t, os.CopyFS(dir, os.DirFS(n.dir)))
	n.Start()
	return dir
}

// Restore replaces the server by one on a copy of its files.
func (n *NATS) Restore(dir string) {
	n.t.Helper()
	n.Stop()
	n.mu.Lock()
	n.dir = dir
	n.mu.Unlock()
	n.Start()
}

// InProcessConn implements nats.InProcessConnProvider.
func (n *NATS) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return nil, errors.New("NATS is away")
	}
	return n.server.Conn().InProcessConn()
}
