package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestStartServesUntilStopped(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"t","expires_in":60,"scope":"users:read"}`)
	}))
	defer gateway.Close()
	ctx, stop := context.WithCancel(t.Context())
	lines, logs := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--admin-listen", "off", "--gateway", gateway.URL}
		ended <- start(ctx, args, nil, io.Discard, logs)
		logs.Close()
	}()
	var serving struct{ Msg, Listen string }
	for scan := bufio.NewScanner(lines); serving.Msg != "serving" && scan.Scan(); {
		require.NoError(t, json.Unmarshal(scan.Bytes(), &serving))
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	base := "http://" + serving.Listen
	for path, want := range map[string]int{
		"/readyz": 200, "/healthz": 200, "/console": 200, "/openapi.json": 200, "/v1/users": 404,
		"/console/api/v1/users": 401,
	} {
		resp, err := client.Get(base + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, path)
	}
	resp, err := client.Post(base+"/console/~/session", "application/json",
		strings.NewReader(`{"client_id":"a","client_secret":"b"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
	client.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestStartRefusesBadSettings(t *testing.T) {
	t.Parallel()
	err := start(t.Context(), []string{"--gateway", "nowhere"},
		[]string{"IDP_CONSOLE_KEYS=short", "IDP_CONSOLE=maybe"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "gateway must be")
	require.ErrorContains(t, err, "console must be on or off")
}

func TestStartHelps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, start(t.Context(), []string{"--help"}, nil, &out, io.Discard))
	require.Contains(t, out.String(), "--console-banner, IDP_CONSOLE_BANNER")
	require.Contains(t, out.String(), "IDP_CONSOLE_KEYS")
}
