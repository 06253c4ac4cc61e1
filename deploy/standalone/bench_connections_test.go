package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkConnections reads a tenant's list of 50 connections.
func BenchmarkConnections(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	token := c.token()
	type object = map[string]any
	for i := range 49 { // and the native database
		send(b, c, token, "/v1/idp/connections", object{
			"provider_code": "oidc", "display_name": fmt.Sprintf("Login %d 登录", i), "config_fields": object{
				"Issuer": fmt.Sprintf("https://login-%d.acme.test", i), "ClientId": "idplatform",
				"ClientSecret": "a-secret-of-the-provider",
			},
		}, &struct{}{})
	}
	var list []object
	fetch(b, c, token, "/v1/idp/connections", &list)
	require.Len(b, list, 50)
	for _, read := range []struct{ name, path string }{
		{"all 50", "/v1/idp/connections"},
		{"one", "/v1/idp/connections/" + list[7]["id"].(string)},
		{"by provider", "/v1/idp/connections?provider_code=idp_native_db"},
	} {
		request := get(read.path, token)
		b.Run(read.name, func(b *testing.B) { share(b, yard, c, func(int, int) []byte { return request }) })
	}
}

// silent is a host that accepts connections and sends nothing.
func silent(b *testing.B) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

// BenchmarkDeadHosts measures the reads of one tenant while 100 callers of another test connections to a host that does
// not answer, and how long these wait. Reads come at a steady pace, so that times of waiting for the processor show.
func BenchmarkDeadHosts(b *testing.B) {
	c := startPlatform(b, b.TempDir(), "IDP_OUTBOUND_ALLOW_PRIVATE=true")
	calm, busy := c.token("--tenant", "calm"), c.token("--tenant", "busy")
	type object = map[string]any
	var made struct {
		ID string `json:"id"`
	}
	send(b, c, busy, "/v1/idp/connections", object{
		"provider_code": "oidc", "config_fields": object{"Issuer": "http://" + silent(b), "ClientId": "x"},
	}, &made)
	read := get("/v1/idp/connections", calm)
	paced := func(int, int) []byte { time.Sleep(2 * time.Millisecond); return read }
	var longest time.Duration
	during := func(testing bool) measured {
		var all sync.WaitGroup
		took := make([]time.Duration, 100)
		for i := range took {
			if testing {
				all.Go(func() { took[i] = testOnce(b, c, busy, made.ID) })
			}
		}
		m, err := generate(c.Addr, 4, 6*time.Second, paced)
		require.NoError(b, err)
		all.Wait()
		longest = max(longest, slices.Max(took))
		return m
	}
	for range repeats {
		quiet := during(false)
		reportReads(b, "nothing else", quiet, quiet.p99)
		reportReads(b, "100 tests of a dead host", during(true), quiet.p99)
	}
	b.Run("the longest test", func(b *testing.B) {
		b.ReportMetric(longest.Seconds(), "s")
		b.ReportMetric(0, "ns/op")
		require.Less(b, longest, 15*time.Second)
	})
}

// testOnce tests a connection: it fails, or too many tests run.
func testOnce(b *testing.B, c *child, token, id string) time.Duration {
	r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+"/v1/idp/connections/"+id+"/test", nil)
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	require.Contains(b, []int{http.StatusOK, http.StatusServiceUnavailable}, response.StatusCode, "%s", text)
	return time.Since(began)
}
