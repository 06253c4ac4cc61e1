package probe

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// maxTalk is how many bytes a server that does not speak HTTP may send in one test. A few KiB are normal.
const maxTalk = 256 << 10

// dial connects to a server. At most maxTalk bytes can be read from the connection, until the test ends.
func (r *run) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := r.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if deadline, ok := r.ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // if the connection is closed, its next use fails
	}
	r.conn = &boundedConn{Conn: conn}
	r.conn.left.Store(maxTalk)
	return r.conn, nil
}

// boundedConn fails after a number of bytes. The libraries that read from it use as much memory as the server sends.
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
