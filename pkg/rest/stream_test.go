package rest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

type upload struct{ rest.Upload }

// registerStream adds an operation whose answer is what write writes.
func registerStream(write func(in *upload, w http.ResponseWriter) error) func(*rest.Server, service.Deps) {
	return func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{
			ID: "stream", Method: http.MethodPost, Path: "/v1/stream", Scope: auth.UsersWrite, Summary: "Stream",
			Streams:  true,
			Consumes: []string{"application/x-ndjson"}, ContentTypes: []string{"application/x-ndjson"},
		}, func(_ context.Context, in *upload) (rest.Stream, error) {
			return rest.Stream{ContentType: "application/x-ndjson", Write: func(w http.ResponseWriter) error {
				return write(in, w)
			}}, nil
		})
	}
}

// post sends body to the stream operation of a real server.
func post(t *testing.T, w *world, body io.Reader) *http.Response {
	t.Helper()
	server := httptest.NewServer(w.Handler)
	t.Cleanup(server.Close)
	r, err := http.NewRequest(http.MethodPost, server.URL+"/v1/stream", body)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+w.Token("acme", auth.UsersWrite))
	r.Header.Set("Content-Type", "application/x-ndjson")
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// Lines of the answer are sent while lines of the body still arrive.
func TestStreamsFlowBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerStream(func(in *upload, w http.ResponseWriter) error {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			return err
		}
		lines := bufio.NewScanner(in.Patient(time.Minute))
		out := rest.PatientWriter(w, time.Minute)
		for lines.Scan() {
			if _, err := fmt.Fprintf(out, "got %s\n", lines.Text()); err != nil {
				return err
			}
			if err := control.Flush(); err != nil {
				return err
			}
		}
		return lines.Err()
	}))
	reader, writer := io.Pipe()
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(writer, "first\n"); sent <- err }()
	response := post(t, w, reader)
	require.NoError(t, <-sent)
	require.Equal(t, "application/x-ndjson", response.Header.Get("Content-Type"))
	answers := bufio.NewReader(response.Body)
	for _, line := range []string{"first", "second", "third"} {
		if line != "first" {
			_, err := io.WriteString(writer, line+"\n")
			require.NoError(t, err)
		}
		got, err := answers.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "got "+line+"\n", got)
	}
	require.NoError(t, writer.Close())
	_, err := answers.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// A client must not take a part for the whole.
func TestAStreamThatFailsAfterItsFirstByteBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerStream(func(_ *upload, w http.ResponseWriter) error {
		_, _ = io.WriteString(w, "part\n")
		_ = http.NewResponseController(w).Flush()
		return errors.New("hunter2")
	}))
	response := post(t, w, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	body, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "part\n", string(body))
	require.Len(t, w.logs.with("the answer was broken off"), 1)
	require.EqualValues(t, 1, w.requests(t, "stream", "200"))
}

func TestAStreamThatFailsBeforeItsFirstByteIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerStream(func(*upload, http.ResponseWriter) error { return errors.New("hunter2") }))
	answer := w.client().Post("/v1/stream", strings.NewReader(""))
	answer.Problem(http.StatusInternalServerError, "internal")
	require.EqualValues(t, 1, w.requests(t, "stream", "500"))
}

func TestAStreamThatPanicsBreaks(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"before its first byte": "", "after": "part"} {
		w := newWorld(t, registerStream(func(_ *upload, w http.ResponseWriter) error {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
			panic("hunter2")
		}))
		response := post(t, w, nil)
		body, err := io.ReadAll(response.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
		require.Equal(t, text, string(body), name)
	}
}

// A stream may go on forever, but must not stall.
func TestAStreamThatStandsStillEnds(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	w := newWorld(t, registerStream(func(in *upload, w http.ResponseWriter) error {
		_, err := io.Copy(io.Discard, in.Patient(50*time.Millisecond))
		failed <- err
		return err
	}))
	server := httptest.NewServer(w.Handler)
	defer server.Close()
	response, _ := raw(t, server,
		"POST /v1/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer "+
			w.Token("acme", auth.UsersWrite)+"\r\n\r\n5\r\nhello\r\n")
	require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
}
