package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// claims is a service that knows the caller of "Bearer <caller>.<any>" and refuses every other credential. A request
// to /v1/users/wait waits for leave.
func claims(entered, leave chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller, _, known := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
		if known {
			w.Header()[request.CallerHeader] = []string{caller}
		}
		if r.URL.Path == "/v1/users/wait" {
			entered <- struct{}{}
			<-leave
		}
		if !known {
			problem.Write(w, apperr.New(apperr.Unauthenticated, "no"))
		}
	}
}

// One caller cannot take all places, neither with many tokens nor with made-up ones.
func TestEveryCallerHasAShare(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	for name, upstream := range map[string]Upstream{
		"in process": local(claims(entered, leave)), "remote": remote(t, claims(entered, leave)),
	} {
		g := newGateway(t, map[string]Upstream{Users: upstream}, func(c *Config) { c.MaxConcurrent = 8 })
		ask := func(path, address, credential string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = address + ":1"
			r.Header.Set("Authorization", "Bearer "+credential)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			require.Empty(t, w.Header().Values(request.CallerHeader), "the header is only for the gateway")
			return w
		}
		var waiting sync.WaitGroup
		wait := func(address, credential string) {
			waiting.Go(func() { ask("/v1/users/wait", address, credential) })
			<-entered
		}
		for _, token := range []string{"ann.1", "ann.2", "ann.3", "bob.1"} {
			require.Equal(t, 200, ask("/v1/users", "192.0.2.1", token).Code, name)
		}
		wait("192.0.2.1", "ann.1")
		wait("192.0.2.2", "ann.2")
		w := ask("/v1/users", "192.0.2.3", "ann.3")
		requireProblem(t, 429, "rate_limited", w.Code, w.Header(), w.Body)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Equal(t, 200, ask("/v1/users", "192.0.2.1", "bob.1").Code, "another caller at that address")

		wait("192.0.2.9", "made-up-1")
		wait("192.0.2.9", "made-up-2")
		require.Equal(t, 429, ask("/v1/users", "192.0.2.9", "made-up-3").Code)
		require.Equal(t, 200, ask("/v1/users", "192.0.2.9", "bob.1").Code, "a known caller at that address")
		require.Equal(t, 200, ask("/v1/users", "192.0.2.4", "carl.1").Code, "an unknown caller at another address")
		for range 4 {
			leave <- struct{}{}
		}
		waiting.Wait()
		require.Empty(t, g.shares.running)
		require.Equal(t, 200, ask("/v1/users", "192.0.2.3", "ann.3").Code)
	}
}

// The part of a stream's body that a service leaves unread is not mistaken for the next request.
func TestAnUnreadStreamEndsItsConnection(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"GET /v1/users/smuggled HTTP/1.1\r\nHost: x\r\n\r\n", ""} {
		var smuggled atomic.Bool
		g := newGateway(t, map[string]Upstream{Users: local(func(w http.ResponseWriter, r *http.Request) {
			smuggled.Store(smuggled.Load() || r.Method == http.MethodGet)
			_, _ = io.WriteString(w, strings.Repeat("done", 2000))
		})}, nil)
		conn, err := net.Dial("tcp", listen(t, g).Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(wait.Long)))
		_, err = io.WriteString(conn, "POST /v1/users/import HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"+rest)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, conn)
		if err != nil {
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		require.False(t, smuggled.Load())
	}
}

// A request that is answered before a slow client has sent its body holds no place, and its response is sent.
func TestAnAnswerDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lateBody)) // as the platform's services do
		problem.Write(w, apperr.New(apperr.Unauthenticated, "no"))
	}
	for name, upstream := range map[string]Upstream{"in process": local(refuse), "remote": remote(t, refuse)} {
		g := newGateway(t, map[string]Upstream{Users: upstream}, nil)
		server := listen(t, g)
		for path, status := range map[string]int{"/v1/users": 401, "/v1/users/import": 401, "/v1/nothing": 404} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				require.NoError(t, err)
				defer conn.Close()
				require.NoError(t, conn.SetDeadline(time.Now().Add(wait.Long)))
				_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", path)
				require.NoError(t, err)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err, name)
				require.Equal(t, status, response.StatusCode)
				_, _ = io.Copy(io.Discard, response.Body)
				_, err = conn.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF, "the connection must end: the start of its next request is not known")
			})
		}
	}
}
