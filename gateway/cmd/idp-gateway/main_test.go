package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestStartServesUntilStopped(t *testing.T) {
	t.Parallel()
	users := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer users.Close()
	ctx, stop := context.WithCancel(t.Context())
	lines, logs := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0s"}
		ended <- start(ctx, args, []string{"IDP_UPSTREAMS=users=" + users.URL}, io.Discard, logs)
		logs.Close()
	}()
	first := bufio.NewScanner(lines)
	require.True(t, first.Scan())
	var serving struct{ Msg, Listen, Admin string }
	require.NoError(t, json.Unmarshal(first.Bytes(), &serving))
	require.Equal(t, "serving", serving.Msg)
	go func() { _, _ = io.Copy(io.Discard, lines) }()

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(url string) string {
		resp, err := client.Get(url)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		return string(body)
	}
	require.Equal(t, "/v1/users/7", ask("http://"+serving.Listen+"/v1/users/7"))
	require.Contains(t, ask("http://"+serving.Admin+"/metrics"),
		`idp_gateway_request_duration_seconds_count{class="2xx",service="users"} 1`)
	client.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
}

func TestStartRefusesBadSettings(t *testing.T) {
	t.Parallel()
	err := start(t.Context(), []string{"--max-concurrent", "0"},
		[]string{"IDP_UPSTREAMS=users=here,nobody=http://x"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "upstreams: users")
	require.ErrorContains(t, err, "max_concurrent")
	require.ErrorContains(t, start(t.Context(), nil, nil, io.Discard, io.Discard), "at least one service")
	err = start(t.Context(), []string{"--admin-listen", "off"},
		[]string{"IDP_UPSTREAMS=nobody=http://x"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, `no service "nobody"`)
}

func TestStartHelps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, start(t.Context(), []string{"--help"}, nil, &out, io.Discard))
	for _, setting := range []string{
		"--upstreams, IDP_UPSTREAMS", "--tls-cert-file", "--rate-limit-per-second", "--cors-origins",
	} {
		require.Contains(t, out.String(), setting)
	}
}
