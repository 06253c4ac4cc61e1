package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// meter is a body that yields one byte at a time and notes the size of the buffers it is read into.
type meter struct {
	sent   int
	text   string
	onRead func(sent, room int)
}

func (m *meter) Read(p []byte) (int, error) {
	m.onRead(m.sent, len(p))
	if m.sent == len(m.text) {
		return 0, io.EOF
	}
	n := copy(p[:1], m.text[m.sent:])
	m.sent += n
	return n, nil
}

// A declared length costs nothing: room for a body grows with the bytes that have arrived, beyond what a buffer of an
// earlier request may have.
func TestBuffersGrowWithWhatArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := 0
	body := &meter{text: `{"name":"` + strings.Repeat("x", 200_000) + `"}`, onRead: func(sent, room int) {
		reads++
		require.LessOrEqual(t, sent+room, max(64<<10, 2*sent), "after %d bytes", sent)
	}}
	r := httptest.NewRequest(http.MethodPost, "/v1/things", body)
	r.Header = http.Header{"Authorization": {"Bearer " + w.Token("acme", auth.UsersWrite)},
		"Content-Type": {"application/json"}}
	r.ContentLength = 1 << 20
	answer := httptest.NewRecorder()
	w.Handler.ServeHTTP(answer, r)
	require.Equal(t, http.StatusBadRequest, answer.Code)
	require.Greater(t, reads, 200_000)
}

// pipe serves a handler on one connection that a synctest bubble can observe.
func pipe(t *testing.T, h http.Handler) (client net.Conn) {
	t.Helper()
	client, serverSide := net.Pipe()
	listener := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
	listener.connection <- serverSide
	server := &http.Server{Handler: h} // lives as long as the test
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
		time.Sleep(time.Second) // time in the bubble: net/http waits half a second before it closes the connection
	})
	return client
}

type onePipe struct {
	connection chan net.Conn
	closed     chan struct{}
}

func (p *onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.connection:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *onePipe) Close() error   { close(p.closed); return nil }
func (p *onePipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// takes makes a world with an operation that only reads a body, and the head of a request to it.
func takes(t *testing.T) (w *world, head string) {
	w = newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "take", Method: http.MethodPost, Path: "/v1/take", Scope: auth.UsersWrite,
			Summary: "Take"},
			func(context.Context, *struct{ Body rest.JSON[any] }) (rest.Empty, error) { return rest.Empty{}, nil })
		get(s, "/v1/much", func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil })
	})
	return w, "Host: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
		w.Token("acme", auth.UsersRead, auth.UsersWrite) + "\r\n"
}

// A body may arrive slowly, but must not stall or come close to that.
func TestBodiesHaveALeastRate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size, piece int
		every, took time.Duration
		status      int
	}{
		"stands still": {1 << 20, 1, time.Hour, 5 * time.Second, 400},
		"trickles":     {1 << 20, 1, time.Second, 5 * time.Second, 400},
		"slow":         {100_000, 5_000, time.Second, 19 * time.Second, 200},
		"too long":     {1 << 20, 5_000, time.Second, 30 * time.Second, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, head := takes(t)
			synctest.Test(t, func(t *testing.T) {
				client := pipe(t, w.Handler)
				began := time.Now()
				stop := make(chan struct{})
				sender := make(chan struct{})
				go func() {
					defer close(sender)
					_, _ = fmt.Fprintf(client, "POST /v1/take HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n", head,
						test.size)
					rest := []byte(`"` + strings.Repeat("x", test.size-2) + `"`)
					for len(rest) > 0 {
						piece := rest[:min(len(rest), test.piece)]
						if _, err := client.Write(piece); err != nil {
							return
						}
						if rest = rest[len(piece):]; len(rest) == 0 {
							return
						}
						select {
						case <-time.After(test.every):
						case <-stop:
							return
						}
					}
				}()
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				require.NoError(t, err)
				require.Equal(t, test.status, response.StatusCode)
				require.Equal(t, test.took, time.Since(began).Truncate(time.Second))
				_ = client.Close()
				close(stop)
				<-sender
			})
		})
	}
}

// A client may read an answer slowly; one that stops reading is disconnected.
func TestAnswersAreNotHeldUp(t *testing.T) {
	t.Parallel()
	w, head := takes(t)
	synctest.Test(t, func(t *testing.T) {
		client := pipe(t, w.Handler)
		_, err := io.WriteString(client, "GET /v1/much HTTP/1.1\r\n"+head+"\r\n")
		require.NoError(t, err)
		began := time.Now()
		reader := bufio.NewReaderSize(client, 32<<10)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		for range 10 {
			_, err := io.CopyN(io.Discard, response.Body, 70<<10)
			require.NoError(t, err)
			time.Sleep(9 * time.Second)
		}
		require.Greater(t, time.Since(began), 80*time.Second)
		time.Sleep(time.Minute)
		_, err = io.Copy(io.Discard, response.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// An answer that does not need the body does not wait for it. net/http would wait as long as the connection may last.
func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	w, head := takes(t)
	for path, status := range map[string]int{"/v1/take?q=%zz": 400, "/v1/nothing": 404} {
		synctest.Test(t, func(t *testing.T) {
			client := pipe(t, w.Handler)
			_, err := io.WriteString(client, "POST "+path+" HTTP/1.1\r\n"+head+"Content-Length: 1000\r\n\r\n{")
			require.NoError(t, err)
			began := time.Now()
			response, err := http.ReadResponse(bufio.NewReader(client), nil)
			require.NoError(t, err)
			require.Equal(t, status, response.StatusCode)
			require.Equal(t, time.Second, time.Since(began))
		})
	}
}
