package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkJobs measures how long 10,000 jobs that are due at the same time take to start, and reads of users
// meanwhile. Reads come at a steady pace, so that times of waiting for the processor show.
func BenchmarkJobs(b *testing.B) {
	const jobs = 10_000
	var calls atomic.Int64
	all := make(chan time.Time, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == jobs {
			all <- time.Now()
		}
	}))
	b.Cleanup(hook.Close)
	c := startPlatform(b, b.TempDir(), "IDP_OUTBOUND_ALLOW_PRIVATE=true")
	token := c.token()
	importUsers(b, c, token, people(0, 2000))
	var users page
	fetch(b, c, token, "/v1/users?page_size=200", &users)
	reads := make([][]byte, len(users.Items))
	for i, item := range users.Items {
		reads[i] = get("/v1/users/"+item.ID, token)
	}
	paced := func(w, n int) []byte { time.Sleep(2 * time.Millisecond); return reads[(w*31+n)%len(reads)] }
	during := func(d time.Duration) measured {
		m, err := generate(c.Addr, 4, d, paced)
		require.NoError(b, err)
		return m
	}

	due := time.Now().Add(time.Minute).Truncate(time.Second)
	var next atomic.Int64
	made, err := generate(c.Addr, workers, time.Until(due), func(int, int) []byte {
		n := next.Add(1)
		if n > jobs {
			return nil
		}
		return post("/v1/jobs", token,
			fmt.Sprintf(`{"code":"job-%d","name":"Job %d","schedule":{"type":"once","at":%q},`+
				`"target":{"type":"webhook","url":%q}}`, n, n, due.UTC().Format(time.RFC3339), hook.URL))
	})
	require.NoError(b, err)
	require.Equal(b, jobs, made.requests, "the jobs must be there before they are due")
	quiet := during(min(6*time.Second, time.Until(due)-time.Second))
	<-time.After(time.Until(due))
	var reading sync.WaitGroup
	var busy measured
	reading.Go(func() { busy = during(30 * time.Second) })
	var took time.Duration
	select {
	case last := <-all:
		took = last.Sub(due)
	case <-time.After(time.Minute):
		require.Fail(b, "not all jobs have started in a minute", "%d have", calls.Load())
	}
	reading.Wait()
	require.EqualValues(b, jobs, calls.Load())
	reportReads(b, "nothing else", quiet, quiet.p99)
	reportReads(b, "10,000 jobs due", busy, quiet.p99)
	b.Run("all started", func(b *testing.B) { b.ReportMetric(took.Seconds(), "s"); b.ReportMetric(0, "ns/op") })
}
