package outbound

import (
	"net"
	"sync/atomic"
)

// BoundedConn is a connection from which so many bytes can be read. Libraries that read replies into memory use as much
// of it as the server sends.
type BoundedConn struct {
	net.Conn
	left atomic.Int64
}

// Bounded bounds what can be read from a connection, in bytes.
func Bounded(conn net.Conn, most int64) *BoundedConn {
	c := &BoundedConn{Conn: conn}
	c.left.Store(most)
	return c
}

// Read implements net.Conn. The error is ErrTooLarge once nothing is left.
func (c *BoundedConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(int64(-n))
	return n, err
}

// Exceeded reports whether all that could be read has been.
func (c *BoundedConn) Exceeded() bool { return c.left.Load() <= 0 }
