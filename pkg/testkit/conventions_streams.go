package testkit

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// eventStreams: every event stream begins at once, ends cleanly when the service drains, and ends when its client
// disconnects.
func eventStreams(t *testing.T, s *Service) {
	for _, o := range s.operations() {
		if !o.documents("200", request.EventStreamType) {
			continue
		}
		assert.Equal(t, "GET", o.Method, o.OperationID)
		c := s.As("acme", o.scopes()...)
		stream := c.Events(o.url())
		assert.Equal(t, "no-store", stream.Header.Get("Cache-Control"), o.OperationID)
		assert.NotEmpty(t, stream.Header.Get("X-Request-Id"), o.OperationID)
		stream.Drain()
		c.Events(o.url()).Leave()
	}
}

// endedTokens: every stream ends soon after its token, also where nothing happens, the client sends nothing more, or it
// reads nothing more.
func endedTokens(t *testing.T, start func(testing.TB) *Service, r Resource) {
	for _, o := range start(t).operations() {
		var end func(*testing.T, *Service, operation, Resource)
		switch {
		case o.documents("200", request.EventStreamType):
			end = quietStreamEnds
		case o.sendsLines() && o.Method == http.MethodGet:
			end = unreadExportEnds
		case o.sendsLines():
			end = pausedImportEnds
		default:
			continue
		}
		t.Run(o.OperationID, func(t *testing.T) { t.Parallel(); end(t, start(t), o, r) })
	}
}

// sendsLines reports whether the operation answers with a stream of lines of JSON.
func (o operation) sendsLines() bool {
	for _, contentType := range []string{"application/x-ndjson", "application/x-ndjson; charset=utf-8"} {
		if o.documents("200", contentType) {
			return true
		}
	}
	return false
}

// endToken moves the clock past the end of every token.
func (s *Service) endToken() { s.Clock.Advance(time.Hour + time.Second) }

func quietStreamEnds(_ *testing.T, s *Service, o operation, _ Resource) {
	stream := s.As("acme", o.scopes()...).Events(o.url())
	s.endToken()
	stream.End()
}

func pausedImportEnds(t *testing.T, s *Service, o operation, _ Resource) {
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	server.Client().Transport.(*http.Transport).ExpectContinueTimeout = wait.Long
	body, client := io.Pipe() // which the client does not end
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Long)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, o.Method, server.URL+o.url(), body)
	require.NoError(t, err)
	maps.Copy(r.Header, s.As("acme", o.scopes()...).header)
	for contentType := range o.RequestBody.Content {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Expect", "100-continue") // the body is sent once the service reads it, so after it took the token
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if response, err := server.Client().Do(r); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	_, err = client.Write([]byte("\n"))
	require.NoError(t, err)
	s.endToken()
	wait.Receive(t, ended)
	require.NoError(t, ctx.Err(), "the service ends it, not the client")
}

func unreadExportEnds(t *testing.T, s *Service, o operation, r Resource) {
	c := s.As("acme", slices.Concat(o.scopes(), r.Also, []auth.Scope{r.Read, r.Write})...)
	c.Post(r.Collection, r.Body(1)).OK(nil)
	wait.Until(t, func() bool { return len(c.Get(o.url()).Body) > 0 }, "there is nothing to export")
	request := httptest.NewRequest(o.Method, o.url(), nil)
	maps.Copy(request.Header, c.header)
	reader, begun := newUnread(t)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer func() { _ = recover() }() // that is how the server breaks the connection
		s.Handler.ServeHTTP(reader, request)
	}()
	wait.Receive(t, begun)
	s.endToken()
	wait.Receive(t, answered)
}

// unread is the connection to a client that reads nothing: every write waits until its deadline.
type unread struct {
	*httptest.ResponseRecorder
	conn  net.Conn
	begun func()
}

// newUnread returns such a connection, and a channel that is closed by the first write.
func newUnread(t *testing.T) (w unread, begun <-chan struct{}) {
	conn, client := net.Pipe() // which has no buffer
	t.Cleanup(func() { _, _ = conn.Close(), client.Close() })
	ctx, begin := context.WithCancel(context.Background())
	return unread{httptest.NewRecorder(), conn, begin}, ctx.Done()
}

func (w unread) Write(b []byte) (int, error) {
	w.begun()
	return w.conn.Write(b)
}

// SetWriteDeadline is for http.ResponseController.
func (w unread) SetWriteDeadline(at time.Time) error { return w.conn.SetWriteDeadline(at) }
