package problem_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// A request that net/http refuses before any handler runs gets a problem document. If this fails with a new version
// of Go, the texts of net/http may have changed.
func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "fine")
	}))
	server.Config.MaxHeaderBytes = 4 << 10
	server.Listener = problem.Listener(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	for name, text := range map[string]string{
		"no request":         "hello\r\n\r\n",
		"bytes":              "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
		"version":            "GET / HTTP/3.7\r\nHost: x\r\n\r\n",
		"no version":         "GET /\r\nHost: x\r\n\r\n",
		"method":             "GE(T / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no host":            "GET / HTTP/1.1\r\n\r\n",
		"two hosts":          "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"bad host":           "GET / HTTP/1.1\r\nHost: <x>\r\n\r\n",
		"percent":            "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"control in path":    "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
		"header name":        "GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n",
		"header value":       "GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
		"header colon":       "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
		"header too large":   "GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 20<<10) + "\r\n\r\n",
		"length":             "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
		"lengths":            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"transfer encoding":  "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: brotli\r\n\r\n",
		"expectation":        "POST / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\na",
		"a good one follows": "GET / HTTP/9\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(wait.Long)))
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, name)
		var doc problem.Document
		require.NoError(t, json.NewDecoder(response.Body).Decode(&doc), name)
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.Equal(t, problem.ContentType, response.Header.Get("Content-Type"))
		require.Equal(t, "invalid_parameters", doc.Code)
		require.NotEmpty(t, doc.RequestID)
		require.Equal(t, response.Header.Get("X-Request-Id"), doc.RequestID)
		require.True(t, response.Close)
		require.NoError(t, conn.Close())
	}
	good, err := http.Get(server.URL)
	require.NoError(t, err)
	body, err := io.ReadAll(good.Body)
	require.NoError(t, err)
	require.NoError(t, good.Body.Close())
	require.Equal(t, "fine", string(body), "the response of a handler is not changed")
}
