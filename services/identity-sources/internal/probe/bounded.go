package probe

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// maxTalk is how much a server that does not speak HTTP may say in one test, in bytes. What it should say is a few KiB.
const maxTalk = 256 << 10

// dial connects to a server that is read until the test ends, and at most maxTalk.
func (r *run) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := r.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := r.ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a connection that is closed fails at its next use
	}
	r.conn = &boundedConn{Conn: conn}
	r.conn.left.Store(maxTalk)
	return r.conn, nil
}

// boundedConn fails once it has read so much. The libraries that read from it take as much memory as they are sent.
type boundedConn struct {
	net.Conn
	left atomic.Int64
}

func (c *boundedConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, outbound.ErrTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(int64(-n))
	return n, err
}
