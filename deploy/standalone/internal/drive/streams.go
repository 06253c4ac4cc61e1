package drive

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stream is an open event stream.
type Stream struct{ *bufio.Reader }

// OpenStreams opens event streams, each on a connection of its own, and reads that they have begun.
func OpenStreams(t testing.TB, c *Client, path string, n int) []Stream {
	t.Helper()
	var all []Stream
	for range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.URL, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"+
			"X-Tenant-Id: %s\r\nAccept: text/event-stream\r\n\r\n", path, c.Token, c.Tenant)
		require.NoError(t, err)
		stream := Stream{bufio.NewReaderSize(conn, 1<<10)}
		status, err := stream.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, status, "200 OK")
		stream.line(t, ": stream")
		all = append(all, stream)
	}
	return all
}

// Data reads the data of the next event.
func (s Stream) Data(t testing.TB) string {
	t.Helper()
	return s.line(t, "data: ")
}

// line reads up to the next line with a prefix.
func (s Stream) line(t testing.TB, prefix string) string {
	t.Helper()
	for {
		line, err := s.ReadString('\n')
		require.NoError(t, err)
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
}
