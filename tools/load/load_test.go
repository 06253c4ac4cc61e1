package main

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h histogram
	for n := range 1000 {
		h.add(time.Duration(n+1)*time.Millisecond, n < 3)
	}
	for part, want := range map[float64]float64{0.5: 500, 0.99: 990, 1: 1000} {
		require.InEpsilon(t, want, h.at(part).Seconds()*1000, 0.04, part)
	}
	h.add(time.Hour, false)
	require.Equal(t, time.Hour, h.at(1))
	taken := h.take(true)
	require.EqualValues(t, 1001, taken.n)
	require.EqualValues(t, 3, taken.errors)
	require.Zero(t, h.take(false).n)
	require.Zero(t, h.at(0.5))
}

func TestMetricsAreSummed(t *testing.T) {
	t.Parallel()
	var s sample
	s.read(strings.NewReader("# HELP x\nprocess_resident_memory_bytes 2e+06\n" +
		"idp_outbox_backlog{service=\"users\"} 2\nidp_outbox_backlog{service=\"events\"} 3\n" +
		"idp_audit_log_behind_events{service=\"events\"} 7\nnonsense\n"))
	require.Equal(t, sample{memory: 2e6, backlog: 5, audit: 7}, s)
	require.Contains(t, s.inside(), "to tell 5, to log 7")
}

func TestPicturesAreXML(t *testing.T) {
	t.Parallel()
	text := picture("latency, ms", time.Minute, line{"p99", []float64{1, 5, 2}}, line{})
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); err != nil {
			require.ErrorIs(t, err, io.EOF)
			return
		}
	}
}

func TestOnlyLoopback(t *testing.T) {
	t.Parallel()
	fits := settings{duration: time.Second, every: time.Second, clients: 1, tenants: 1, users: 10, reads: 1}
	for address, ok := range map[string]bool{
		"": true, "http://127.0.0.1:8080": true, "http://localhost": true, "http://[::1]:1": true,
		"https://127.0.0.1": false,
		"http://10.0.0.1":   false, "http://id.acme.test": false, "http://127.0.0.1.acme.test": false,
	} {
		s := fits
		s.address = address
		require.Equal(t, ok, s.check() == nil, address)
		s.address, s.admin = "", address
		require.Equal(t, ok, s.check() == nil, address)
	}
	fits.duration = 2 * longest
	require.Error(t, fits.check())
}

// The mix has the asked shares, what fails is counted, and no more is sent than permitted.
func TestARun(t *testing.T) {
	t.Parallel()
	var writes, all atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if all.Add(1); r.Header.Get("X-Tenant-Id") != "load-0" {
			w.WriteHeader(http.StatusForbidden)
		}
		if r.Method == http.MethodPatch || r.Method == http.MethodPut ||
			r.URL.Path == "/v1/users" && r.Method == http.MethodPost {
			writes.Add(1)
		}
		_, _ = w.Write([]byte(`{"id":"7"}`))
	}))
	t.Cleanup(server.Close)
	l := newLoad(settings{address: server.URL, duration: time.Minute, every: time.Hour, clients: 4, tenants: 1,
		users: 10, reads: 50, writes: 50, requests: 2000, svg: t.TempDir()})
	require.NoError(t, l.prepare(t.Context()))
	writes.Store(0)
	all.Store(0)
	l.run(t.Context())
	require.EqualValues(t, 2000, all.Load())
	require.InDelta(t, 1000, writes.Load(), 200)
	require.Zero(t, l.failed())
	require.Len(t, l.samples, 1)
	var table strings.Builder
	l.table(&table)
	require.Contains(t, table.String(), "write: change a user")
	require.NoError(t, l.draw(l.svg))

	l.tenants[0].name = "another"
	l.run(t.Context())
	require.Zero(t, l.failed(), "the most requests are sent already")
	l.requests += 100
	l.run(t.Context())
	require.EqualValues(t, 100, l.failed())
	require.Contains(t, l.firstError, "403")
}
