package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// feed is a service with an event stream. It sends the events that it is given until the client leaves or the server
// drains, and then a goodbye event. The credential of a caller is "Bearer <caller>.<any>".
type feed struct {
	events chan string
	ended  chan struct{} // gets a value for every stream that has ended
}

func newFeed() *feed { return &feed{make(chan string), make(chan struct{}, 16)} }

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	w.Header()[request.CallerHeader] = []string{caller}
	if !request.WantsEvents(r.Header.Get("Accept")) {
		return
	}
	ctx, cancel := request.UntilDrain(r.Context())
	defer cancel()
	w.Header().Set("Content-Type", request.EventStreamType)
	send := func(text string) {
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
	send(": stream\n\n")
	defer func() { f.ended <- struct{}{} }()
	for {
		select {
		case text := <-f.events:
			send(text)
		case <-ctx.Done():
			send("event: goodbye\n\n")
			return
		}
	}
}

// platform is a feed behind a gateway.
type platform struct {
	fixture
	feed         *feed
	drainGateway context.CancelFunc
	drainService context.CancelFunc // in process: the same as drainGateway
	ended        <-chan error
	client       *http.Client
	url          string
}

// onBothHops runs a test with the feed in the gateway's process, and with the feed behind a connection.
func onBothHops(t *testing.T, change func(*Config), test func(t *testing.T, p *platform)) {
	t.Parallel()
	for _, hop := range []string{"in process", "remote"} {
		t.Run(hop, func(t *testing.T) {
			t.Parallel()
			p := &platform{feed: newFeed(), client: &http.Client{Transport: &http.Transport{}}}
			upstream := local(p.feed.ServeHTTP)
			if hop == "remote" {
				var draining context.Context
				draining, p.drainService = context.WithCancel(t.Context())
				server := httptest.NewUnstartedServer(p.feed)
				server.Config.BaseContext = func(net.Listener) context.Context {
					return request.WithDrain(context.Background(), draining)
				}
				server.Start()
				t.Cleanup(server.Close)
				var err error
				upstream, err = Remote(server.URL)
				require.NoError(t, err)
			}
			p.fixture = newGateway(t, map[string]Upstream{Events: upstream}, func(c *Config) {
				c.DrainDelay = 0
				if change != nil {
					change(c)
				}
			})
			p.url, p.drainGateway, p.ended = serve(t, p.Gateway)
			if p.drainService == nil {
				p.drainService = p.drainGateway
			}
			t.Cleanup(func() {
				p.client.CloseIdleConnections()
				p.drainGateway()
				<-p.ended
			})
			test(t, p)
		})
	}
}

// ask sends a request to the feed, for an event stream if accept says so. The test closes the body at its end.
func (p *platform) ask(t *testing.T, credential, accept string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Long)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	r.Header.Set("Authorization", "Bearer "+credential)
	resp, err := p.client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// open opens an event stream and reads its first line.
func (p *platform) open(t *testing.T, credential string) (*bufio.Reader, io.Closer) {
	t.Helper()
	resp := p.ask(t, credential, request.EventStreamType)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, request.EventStreamType, resp.Header.Get("Content-Type"))
	body := bufio.NewReader(resp.Body)
	requireLines(t, body, ": stream", "")
	return body, resp.Body
}

func requireLines(t *testing.T, body *bufio.Reader, lines ...string) {
	t.Helper()
	for _, want := range lines {
		line, err := body.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want+"\n", line)
	}
}

func TestEventsAndHeartbeatsPassAtOnce(t *testing.T) {
	onBothHops(t, nil, func(t *testing.T, p *platform) {
		body, _ := p.open(t, "ann.1")
		for _, text := range []string{
			"id: 1\ndata: {}\n\n", ":\n\n", "data: " + strings.Repeat("x", 100_000) + "\n\n",
		} {
			p.feed.events <- text
			requireLines(t, body, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
		}
	})
}

func TestAClientThatLeavesEndsTheServicesStream(t *testing.T) {
	onBothHops(t, nil, func(t *testing.T, p *platform) {
		_, closer := p.open(t, "ann.1")
		require.EqualValues(t, 1, p.streams.Load())
		require.NoError(t, closer.Close())
		<-p.feed.ended
		wait.Until(t, func() bool { return p.streams.Load() == 0 })
	})
}

// Event streams do not take the places of requests, and are not refused when those are taken.
func TestEventStreamsHavePlacesOfTheirOwn(t *testing.T) {
	limit := func(c *Config) { c.MaxConcurrent, c.MaxStreams, c.MaxPerCaller = 1, 3, 2 }
	onBothHops(t, limit, func(t *testing.T, p *platform) {
		refused := func(credential string, status int, code string) {
			t.Helper()
			resp := p.ask(t, credential, request.EventStreamType)
			requireProblem(t, status, code, resp.StatusCode, resp.Header, resp.Body)
			require.Equal(t, "1", resp.Header.Get("Retry-After"))
		}
		for _, credential := range []string{"ann.1", "ann.2", "bob.1"} {
			require.Equal(t, 200, p.ask(t, credential, "").StatusCode) // the gateway learns the credential's caller
		}
		_, first := p.open(t, "ann.1")
		p.open(t, "ann.2")
		refused("ann.1", 429, "rate_limited")
		p.open(t, "bob.1")
		refused("carl.1", 503, "unavailable")
		require.Equal(t, 200, p.ask(t, "ann.1", "").StatusCode, "a request has its own place")
		require.EqualValues(t, 3, p.streams.Load())

		require.NoError(t, first.Close())
		wait.Until(t, func() bool { return p.streams.Load() == 2 })
		p.open(t, "bob.1")
	})
}

// When the gateway drains, it ends event streams at once and cleanly. A service that learns about the drain says
// goodbye.
func TestEventStreamsEndWithTheGatewaysDrain(t *testing.T) {
	onBothHops(t, nil, func(t *testing.T, p *platform) {
		body, _ := p.open(t, "ann.1")
		p.drainGateway()
		rest, err := io.ReadAll(body)
		require.NoError(t, err, "the stream must end without an error")
		if strings.HasSuffix(t.Name(), "in_process") {
			require.Equal(t, "event: goodbye\n\n", string(rest))
		} else {
			require.Empty(t, rest)
		}
		<-p.feed.ended
	})
}

func TestEventStreamsEndWithTheServicesDrain(t *testing.T) {
	onBothHops(t, nil, func(t *testing.T, p *platform) {
		body, _ := p.open(t, "ann.1")
		p.drainService()
		rest, err := io.ReadAll(body)
		require.NoError(t, err, "the stream must end without an error")
		require.Equal(t, "event: goodbye\n\n", string(rest))
	})
}

// A client can tell a stream that a service breaks off from one that the service ends.
func TestABrokenEventStreamBreaksTheConnection(t *testing.T) {
	t.Parallel()
	broken := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", request.EventStreamType)
		_, _ = io.WriteString(w, "data: ha")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for hop, upstream := range map[string]Upstream{"in process": local(broken), "remote": remote(t, broken)} {
		server := listen(t, newGateway(t, map[string]Upstream{Events: upstream}, nil))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/events", nil)
		require.NoError(t, err)
		r.Header.Set("Accept", request.EventStreamType)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, hop)
		require.NoError(t, resp.Body.Close())
	}
}
