package testkit

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// EventStream is an open event stream (Server-Sent Events) on a connection of its own.
type EventStream struct {
	t      testing.TB
	Header http.Header
	body   *bufio.Reader
	server *httptest.Server
	drain  context.CancelFunc
	leave  func()
}

// Events opens an event stream.
func (c *Client) Events(path string) *EventStream {
	c.t.Helper()
	draining, drain := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(c.handler)
	server.Config.BaseContext = func(net.Listener) context.Context {
		return request.WithDrain(context.Background(), draining)
	}
	server.Start()
	c.t.Cleanup(server.Close)
	c.t.Cleanup(drain)

	ctx, leave := context.WithTimeout(context.Background(), wait.Long)
	c.t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	require.NoError(c.t, err)
	maps.Copy(r.Header, c.header)
	r.Header.Set("Accept", request.EventStreamType)
	resp, err := server.Client().Do(r)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { resp.Body.Close() })
	s := &EventStream{
		t: c.t, Header: resp.Header, body: bufio.NewReader(resp.Body), server: server, drain: drain, leave: leave,
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		require.Equal(c.t, http.StatusOK, resp.StatusCode, "%s", body)
	}
	require.Equal(c.t, request.EventStreamType, resp.Header.Get("Content-Type"))
	return s
}

// Next waits for the next event; it skips comments.
func (s *EventStream) Next() rest.ServerEvent {
	s.t.Helper()
	event, err := s.next()
	require.NoError(s.t, err)
	return event
}

func (s *EventStream) next() (event rest.ServerEvent, err error) {
	var data []string
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return event, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			event.ID = value
		case "event":
			event.Name = value
		case "data":
			data = append(data, value)
		case "":
			if data != nil {
				event.Data = []byte(strings.Join(data, "\n"))
				return event, nil
			}
		}
	}
}

// Drain makes the service stop and returns the remaining events. The test fails unless the stream ends cleanly.
func (s *EventStream) Drain() (last []rest.ServerEvent) {
	s.t.Helper()
	s.drain()
	return s.End()
}

// End waits until the service ends the stream, and returns the remaining events. The test fails unless it ends cleanly.
func (s *EventStream) End() (last []rest.ServerEvent) {
	s.t.Helper()
	for {
		event, err := s.next()
		if err != nil {
			require.ErrorIs(s.t, err, io.EOF, "a clean end")
			return last
		}
		last = append(last, event)
	}
}

// Leave closes the connection and waits for the service to notice.
func (s *EventStream) Leave() {
	s.leave()
	s.server.Close()
}
