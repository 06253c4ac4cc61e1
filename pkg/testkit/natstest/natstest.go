// Package natstest has a NATS server for tests.
package natstest

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

// Server is an embedded server that can be stopped and started again while clients are connected.
type Server struct {
	t      testing.TB
	dir    string
	log    *slog.Logger
	mu     sync.Mutex
	server *embedded.Server
}

// New starts a server on an empty folder; dir is another one, if it is not "".
func New(t testing.TB, dir string, log *slog.Logger) *Server {
	if dir == "" {
		dir = t.TempDir()
	}
	n := &Server{t: t, dir: dir, log: log}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Dir is the server's folder.
func (n *Server) Dir() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dir
}

// Start starts the server again, with the content of its streams.
func (n *Server) Start() {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	server, err := embedded.Start(embedded.Config{StoreDir: n.dir, Log: n.log})
	require.NoError(n.t, err)
	n.server = server
}

// Stop stops the server.
func (n *Server) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server != nil {
		n.server.Stop()
		n.server = nil
	}
}

// Copy stops the server, copies its files and starts it again. Restore brings the copy back, as if all later writes had
// been lost in a power cut.
func (n *Server) Copy() (dir string) {
	n.t.Helper()
	n.Stop()
	dir = n.t.TempDir()
	require.NoError(n.t, os.CopyFS(dir, os.DirFS(n.dir)))
	n.Start()
	return dir
}

// Restore replaces the server by one on a copy of its files.
func (n *Server) Restore(dir string) {
	n.t.Helper()
	n.Stop()
	n.mu.Lock()
	n.dir = dir
	n.mu.Unlock()
	n.Start()
}

// InProcessConn implements nats.InProcessConnProvider.
func (n *Server) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server == nil {
		return nil, errors.New("NATS is away")
	}
	return n.server.Conn().InProcessConn()
}
