package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// raw sends bytes over a connection and returns the response.
func raw(t *testing.T, server *httptest.Server, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestProxyPassesTheRequestAsItIs(t *testing.T) {
	t.Parallel()
	var uri string
	var header http.Header
	var host string
	g := newGateway(t, map[string]Upstream{Automation: remote(t, func(w http.ResponseWriter, r *http.Request) {
		uri, header, host = r.RequestURI, r.Header, r.Host
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("ETag", `"7"`)
		w.WriteHeader(http.StatusTeapot)
	})}, nil)
	server := listen(t, g)
	for _, target := range []string{
		// The service decides about semicolons and bad escapes.
		"/v1/kv/buckets/b/objects/a%2Fb%20c?x=1;y=2&z=%zz&ids=1,2",
		"/v1/kv/buckets/b/objects/a//b?",
		"/v1/kv/buckets/b/objects/%E6%9D%8E%e4%bc%9f",
		"/v1/kv/buckets/b/objects/(a)!*'$&+,:@;=~",
		"/v1/kv/buckets/b/objects/%252e%252e",
		"/v1/k%76/buckets",
	} {
		resp := raw(t, server, "PUT "+target+" HTTP/1.1\r\nHost: api.example\r\n"+
			"Connection: X-Private, Upgrade\r\nUpgrade: websocket\r\nX-Private: 1\r\n"+
			"X-Forwarded-For: 1.2.3.4\r\nX-Tenant-Id: acme\r\n"+
			"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n")
		require.Equal(t, http.StatusTeapot, resp.StatusCode)
		require.Equal(t, `"7"`, resp.Header.Get("ETag"))
		require.NotContains(t, resp.Header, "X-Hop")
		require.Equal(t, target, uri)
		require.Equal(t, "127.0.0.1", header.Get("X-Forwarded-For"))
		require.Equal(t, "http", header.Get("X-Forwarded-Proto"))
		require.Equal(t, "api.example", header.Get("X-Forwarded-Host"))
		require.NotEqual(t, "api.example", host)
		require.Equal(t, "acme", header.Get("X-Tenant-Id"))
		require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", header.Get("Traceparent"))
		require.Equal(t, resp.Header.Get("X-Request-Id"), header.Get("X-Request-Id"))
		require.NotContains(t, header, "X-Private")
		require.NotContains(t, header, "Upgrade")
		require.NotContains(t, header, "Accept-Encoding", "otherwise the transport would decompress the response")
	}
}

// A client can neither make the gateway drop a header that services rely on, nor get one of the gateway's own past
// it.
func TestConnectionNamesNoneOfOurHeaders(t *testing.T) {
	t.Parallel()
	var header http.Header
	service := func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Clone() }
	ours := append([]string{"Accept", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"}, requestHeaders...)
	for name, upstream := range map[string]Upstream{"in process": local(service), "remote": remote(t, service)} {
		server := listen(t, newGateway(t, map[string]Upstream{Users: upstream}, nil))
		request := "GET /v1/users HTTP/1.1\r\nHost: x\r\nX-Hop: 1\r\nKeep-Alive: 1\r\nConnection: x-hop, keep-alive\r\n"
		for _, h := range ours {
			request += h + ": mine\r\nConnection: " + strings.ToLower(h) + " ,\r\n"
		}
		require.Equal(t, 200, raw(t, server, request+"\r\n").StatusCode)
		for _, h := range requestHeaders {
			require.Equal(t, []string{"mine"}, header[h], "%s %s", name, h)
		}
		require.Equal(t, []string{"127.0.0.1"}, header["X-Forwarded-For"])
		for _, h := range []string{"X-Hop", "Keep-Alive", "Connection"} {
			require.NotContains(t, header, h, name)
		}
	}
}

func TestInProcessPassesTheRequestAsItIs(t *testing.T) {
	t.Parallel()
	var got string
	g := newGateway(t, map[string]Upstream{Automation: local(func(_ http.ResponseWriter, r *http.Request) {
		got = r.URL.EscapedPath() + "?" + r.URL.RawQuery
	})}, nil)
	get(g, "/v1/kv/buckets/b/objects/a%2Fb//c?x=1;y=%zz")
	require.Equal(t, "/v1/kv/buckets/b/objects/a%2Fb//c?x=1;y=%zz", got)
}

// TestServiceFailures: 503 says that nothing was changed, so only a request that never reached the service gets it.
func TestServiceFailures(t *testing.T) {
	t.Parallel()
	away, err := Remote("http://127.0.0.1:1") // a port that was closed could be another test's by now
	require.NoError(t, err)

	hijack := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}
	}
	for name, c := range map[string]struct {
		upstream Upstream
		arrives  bool
	}{
		"away":           {away, false},
		"resets":         {remote(t, hijack("")), true},
		"other protocol": {remote(t, hijack("SSH-2.0-OpenSSH\r\n\r\n")), true},
		"too slow": {remote(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // net/http notices a lost connection only after the body is read
			<-r.Context().Done()
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, map[string]Upstream{Users: c.upstream},
				func(c *Config) { c.RequestTimeout = time.Second })
			url := listen(t, g).URL + "/v1/users"
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`{"username":"x"}`))
				require.NoError(t, err)
				r.Header.Set("Idempotency-Key", "key") // net/http sends such a request again where it can
				resp, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				defer resp.Body.Close()
				if c.arrives && method != http.MethodGet {
					doc := requireProblem(t, 502, "outcome_unknown", resp.StatusCode, resp.Header, resp.Body)
					require.Equal(t, "it is not known whether the change was made", doc.Detail)
					require.Contains(t, g.logs.String(), doc.RequestID)
					continue
				}
				doc := requireProblem(t, 503, "unavailable", resp.StatusCode, resp.Header, resp.Body)
				require.Equal(t, "the users service does not answer", doc.Detail)
				require.Equal(t, "2", resp.Header.Get("Retry-After"))
				require.Contains(t, g.logs.String(), doc.RequestID)
			}
		})
	}
}

// TestDelivery: bytes that were written for other requests on the same connection do not count; bytes that were written
// for this request on an earlier connection do.
func TestDelivery(t *testing.T) {
	t.Parallel()
	conn := func() *countedConn {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = near.Close() })
		go func() { _, _ = io.Copy(io.Discard, far) }()
		return &countedConn{Conn: near}
	}
	write := func(c *countedConn) {
		_, err := c.Write([]byte("GET"))
		require.NoError(t, err)
	}
	d := &delivery{}
	require.False(t, d.mayHaveArrived(true), "no connection was made")
	used := conn()
	write(used)
	d.gotConn(httptrace.GotConnInfo{Conn: used})
	require.False(t, d.mayHaveArrived(false))
	require.True(t, d.mayHaveArrived(true), "it may be being written")
	d.gotConn(httptrace.GotConnInfo{Conn: conn()})
	require.False(t, d.mayHaveArrived(false))
	d.gotConn(httptrace.GotConnInfo{Conn: tls.Client(used, &tls.Config{})}) // no handshake
	write(used)
	require.True(t, d.mayHaveArrived(false))
	d.gotConn(httptrace.GotConnInfo{Conn: conn()})
	require.True(t, d.mayHaveArrived(false), "the first one had a part of it")
}

func TestAnAnswerThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: remote(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})}, nil)
	resp, err := http.Get(listen(t, g).URL + "/v1/users")
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAClientThatLeavesEndsTheServicesWork(t *testing.T) {
	t.Parallel()
	for name, upstream := range map[string]func(testing.TB, http.HandlerFunc) Upstream{
		"in process": func(_ testing.TB, h http.HandlerFunc) Upstream { return local(h) }, "remote": remote,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, ended := make(chan struct{}), make(chan struct{})
			g := newGateway(t, map[string]Upstream{Users: upstream(t, func(_ http.ResponseWriter, r *http.Request) {
				close(entered)
				<-r.Context().Done()
				close(ended)
			})}, nil)
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, listen(t, g).URL+"/v1/users", nil)
			require.NoError(t, err)
			go func() { <-entered; leave() }()
			_, err = http.DefaultClient.Do(req)
			require.ErrorIs(t, err, context.Canceled)
			<-ended
			// The end of the gateway's handler cannot be signalled.
			wait.Until(t, func() bool { return g.inFlight.Load() == 0 })
			require.Empty(t, g.logs.String(), "a client that leaves is not a failure")
		})
	}
}

func TestABodyThatBreaksOffIsTheClientsFault(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: remote(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})}, nil)
	resp := raw(t, listen(t, g),
		"POST /v1/users HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n")
	requireProblem(t, 400, "invalid_parameters", resp.StatusCode, resp.Header, resp.Body)
	require.Empty(t, g.logs.String())
}

// zeros is a body of left zero bytes. It notes the peak of the heap while it is read.
type zeros struct {
	left int64
	peak uint64
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	if z.left>>23 != (z.left-n)>>23 { // every 8 MiB
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		z.peak = max(z.peak, m.HeapInuse)
	}
	z.left -= n
	return int(n), nil
}

// Not parallel, because it measures the process's memory.
func TestStreamsFlowWithFlatMemory(t *testing.T) {
	const size = 100 << 20
	for name, upstream := range map[string]func(testing.TB, http.HandlerFunc) Upstream{
		"in process": func(_ testing.TB, h http.HandlerFunc) Upstream { return local(h) }, "remote": remote,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, map[string]Upstream{Users: upstream(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					n, _ := io.Copy(io.Discard, r.Body)
					_, _ = fmt.Fprint(w, n)
					return
				}
				_, _ = io.Copy(w, &zeros{left: size})
			})}, nil)
			server := listen(t, g)

			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			body := &zeros{left: size}
			resp, err := http.Post(server.URL+"/v1/users/import", "application/x-ndjson", io.NopCloser(body))
			require.NoError(t, err)
			answer, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, fmt.Sprint(size), string(answer))
			require.Less(t, body.peak, before.HeapInuse+16<<20, "the import")

			resp, err = http.Get(server.URL + "/v1/users/export")
			require.NoError(t, err)
			n, err := io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.EqualValues(t, size, n)
		})
	}
}

// An import answers each line before the next is sent.
func TestImportsFlowBothWaysAtOnce(t *testing.T) {
	t.Parallel()
	for name, upstream := range map[string]func(testing.TB, http.HandlerFunc) Upstream{
		"in process": func(_ testing.TB, h http.HandlerFunc) Upstream { return local(h) }, "remote": remote,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, map[string]Upstream{Users: upstream(t, func(w http.ResponseWriter, r *http.Request) {
				control := http.NewResponseController(w)
				_ = control.EnableFullDuplex()
				lines := bufio.NewScanner(r.Body)
				for lines.Scan() {
					_, _ = fmt.Fprintln(w, "done", lines.Text())
					_ = control.Flush()
				}
				assert.NoError(t, lines.Err())
			})}, nil)
			body, client := io.Pipe()
			target := listen(t, g).URL + "/v1/users/import"
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
			require.NoError(t, err)
			go func() { _, _ = io.WriteString(client, "0\n") }()
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			answers := bufio.NewScanner(resp.Body)
			for i := range 5 {
				require.True(t, answers.Scan())
				require.Equal(t, fmt.Sprint("done ", i), answers.Text())
				_, err := fmt.Fprintln(client, i+1)
				require.NoError(t, err)
			}
			require.NoError(t, client.Close())
			require.True(t, answers.Scan())
			require.False(t, answers.Scan())
			require.NoError(t, answers.Err())
		})
	}
}

func TestAnIdleStreamIsEnded(t *testing.T) {
	t.Parallel()
	for name, upstream := range map[string]func(testing.TB, http.HandlerFunc) Upstream{
		"in process": func(_ testing.TB, h http.HandlerFunc) Upstream { return local(h) }, "remote": remote,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			g := newGateway(t, map[string]Upstream{Users: upstream(t, func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				ended <- err
			})}, func(c *Config) { c.StreamIdleTimeout = time.Second }) // the service must have been reached by then
			body, client := io.Pipe()
			defer client.Close()
			target := listen(t, g).URL + "/v1/users/import"
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
			require.NoError(t, err)
			go func() { _, _ = io.WriteString(client, "one line, and then nothing\n") }()
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
			require.Error(t, <-ended)
		})
	}
}

// A service may work on a stream that it has received for longer than the stream may stand still, but not for ever.
func TestAStreamIsAnsweredLate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		method, path, body string
		works              time.Duration
		ended              bool
	}{
		{http.MethodPost, "/v1/users/import", "{}\n", 10 * time.Minute, false},
		{http.MethodPost, "/v1/users/import", "{}\n", 16 * time.Minute, true},
		{http.MethodGet, "/v1/users/export", "", 2 * time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				require.NoError(t, err)
				timer := time.NewTimer(row.works)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-r.Context().Done():
				}
				require.Equal(t, row.ended, errors.Is(context.Cause(r.Context()), errIdle), row.works)
			})}, func(c *Config) { c.StreamIdleTimeout = time.Minute })
			body := io.Reader(strings.NewReader(row.body))
			if row.body == "" {
				body = http.NoBody
			}
			g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(row.method, row.path, body))
		})
	}
}

// A stream can last longer than the idle limit, as long as bytes move.
func TestAStreamThatMovesIsNotEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const idle, steps = time.Minute, 10
		g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, _ *http.Request) {
			for range steps {
				<-time.After(idle - time.Second)
				_, _ = w.Write([]byte("."))
				_ = http.NewResponseController(w).Flush()
			}
		})}, func(c *Config) { c.StreamIdleTimeout = idle })
		client, _ := piped(t, g)
		resp, err := client.Get("http://gateway/v1/users/export")
		require.NoError(t, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Len(t, all, steps)
	})
}

// A stream can last longer than an ordinary request of a service behind a connection.
func TestAStreamOutlastsARequest(t *testing.T) {
	t.Parallel()
	const request = 20 * time.Millisecond
	g := newGateway(t, map[string]Upstream{Users: remote(t, func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(3 * request)
		_, _ = w.Write([]byte("."))
	})}, func(c *Config) { c.StreamIdleTimeout, c.RequestTimeout = 10*time.Minute, request })
	server := listen(t, g)
	for path, status := range map[string]int{"/v1/users/export": 200, "/v1/users": 503} {
		resp, err := http.Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode, path)
	}
}

func TestIdleLimitDoesNotReachTheConnectionsNextRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Second
		g := newGateway(t, map[string]Upstream{Users: local(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/users/slow" {
				<-time.After(idle + 2*answerGrace) // the limit would have closed the connection
			}
		})}, func(c *Config) { c.StreamIdleTimeout = idle })
		client, opened := piped(t, g)
		for _, path := range []string{"/v1/users/export", "/v1/users/slow", "/v1/users/export", "/v1/users/slow"} {
			resp, err := client.Get("http://gateway" + path)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode)
		}
		require.EqualValues(t, 1, opened.Load())
	})
}

// Many requests at the same time, with clients that leave at any moment. The race detector watches, and nothing may
// be left over at the end.
func TestProxyUnderDisconnects(t *testing.T) {
	t.Parallel()
	g := newGateway(t, map[string]Upstream{Users: remote(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}, nil)
	server := listen(t, g)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			defer cancel()
			target := "/v1/users"
			if i%2 == 0 {
				target = "/v1/users/import"
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+target, &zeros{left: 1 << 20})
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := server.Client().Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wait.Until(t, func() bool { return g.inFlight.Load() == 0 })
	require.Empty(t, g.logs.String())
}

// A connection that the transport itself has closed, because the client left, is nobody's failure.
func TestClosedConnectionsAreNotLogged(t *testing.T) {
	t.Parallel()
	logged := map[error]bool{net.ErrClosed: false, io.ErrUnexpectedEOF: true}
	for failure, want := range logged {
		var log bytes.Buffer
		transport := transportFunc(func(r *http.Request) (*http.Response, error) {
			body := io.NopCloser(iotest.ErrReader(&net.OpError{Op: "read", Err: failure}))
			return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
		})
		users := &url.URL{Scheme: "http", Host: "users"}
		p := newProxy(Users, users, transport, slog.New(slog.NewTextHandler(&log, nil)))
		r := httptest.NewRequest(http.MethodPost, "/v1/users", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{}))
		require.Panics(t, func() { p.ServeHTTP(httptest.NewRecorder(), r) }, "the connection to the client breaks")
		require.Equal(t, want, log.Len() > 0, "%v: %s", failure, &log)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRemoteTakesBareHostsOnly(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"http://users:8080", "https://users.example", "http://[::1]:8080/"} {
		_, err := Remote(good)
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "users:8080", "ftp://users", "http://", "http://users/base", "http://u:p@users", "http://users?x",
		"http://users#f", "http://a b", "://",
	} {
		_, err := Remote(bad)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "u:p")
	}
	_, err := Remotes(map[string]string{Users: "http://users", Events: "x", Automation: "y"})
	require.ErrorContains(t, err, "upstreams: events")
	require.ErrorContains(t, err, "upstreams: automation")
}

// Nobody reads the body of a GET, and the answer is whole nevertheless.
func TestStreamsOfAGetWithABody(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, _ *http.Request) {
		for range lines {
			_, _ = fmt.Fprintln(w, "a line")
		}
	})}, nil)
	target := listen(t, g).URL + "/v1/users/export"
	for range 3 { // the connection is used again
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, strings.NewReader(`{"a":1}`))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, lines, bytes.Count(answer, []byte("\n")))
	}
}
