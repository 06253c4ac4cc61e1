package probe

import (
	"context"
	"net"

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
	r.conn = outbound.Bounded(conn, maxTalk)
	return r.conn, nil
}
