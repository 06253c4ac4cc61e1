package drive

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stream is an open event stream.
type Stream struct {
	body  io.Closer
	lines *bufio.Reader
}

// Open opens an event stream and reads that it has begun. after is the Last-Event-ID, if there is one.
func (c *Client) Open(t testing.TB, path, after string) *Stream {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, c.URL+path, nil)
	require.NoError(t, err)
	c.identify(r)
	r.Header.Set("Accept", "text/event-stream")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := c.HTTP.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	s := &Stream{resp.Body, bufio.NewReaderSize(resp.Body, 1<<10)}
	t.Cleanup(s.Close)
	s.line(t, ": stream")
	return s
}

// Next reads the next event.
func (s *Stream) Next(t testing.TB) (id, data string) {
	t.Helper()
	return s.line(t, "id: "), s.line(t, "data: ")
}

// RequireEnd reads that the stream ends as one that is complete.
func (s *Stream) RequireEnd(t testing.TB) {
	t.Helper()
	_, err := io.Copy(io.Discard, s.lines)
	require.NoError(t, err)
}

// Close leaves the stream.
func (s *Stream) Close() { _ = s.body.Close() }

// line reads up to the next line with a prefix, and returns the rest of it.
func (s *Stream) line(t testing.TB, prefix string) string {
	t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		require.NoError(t, err)
		if rest, found := strings.CutPrefix(line, prefix); found {
			return strings.TrimSuffix(rest, "\n")
		}
	}
}

// StreamPaths are the operations with event streams, with queries for what comes from now on.
var StreamPaths = []string{"/v1/events?after=now", "/v1/audit-logs"}

// OpenMany opens event streams, each on a connection of its own.
func (c *Client) OpenMany(t testing.TB, path string, n int) []*Stream {
	t.Helper()
	streams := make([]*Stream, n)
	for i := range streams {
		streams[i] = c.Open(t, path, "")
	}
	return streams
}
