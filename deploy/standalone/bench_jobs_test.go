package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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
	hook := startHook(b, func() {
		if calls.Add(1) == jobs {
			all <- time.Now()
		}
	})
	c := startPlatform(b, b.TempDir(), "IDP_OUTBOUND_ALLOW_PRIVATE=true")
	token := c.token()
	importUsers(b, c, token, people(0, 2000))
	var users page
	fetch(b, c, token, "/v1/users?page_size=200", &users)
	reads := make([][]byte, len(users.Items))
	for i, item := range users.Items {
		reads[i] = get("/v1/users/"+item.ID, token)
	}
	paced := func(w, n int) []byte {
		time.Sleep(time.Millisecond + rand.N(2*time.Millisecond))
		return reads[(w*31+n)%len(reads)]
	}
	during := func(d time.Duration) measured {
		m, err := generate(c.Addr, 4, d, paced)
		require.NoError(b, err)
		return m
	}

	due := time.Now().UTC().Add(time.Minute).Truncate(time.Second)
	var next atomic.Int64
	made, err := generate(c.Addr, workers, time.Until(due), func(int, int) []byte {
		n := next.Add(1)
		if n > jobs {
			return nil
		}
		return post("/v1/jobs", token,
			fmt.Sprintf(`{"code":"job-%d","name":"Job %d","schedule":{"type":"cron","cron":%q},`+
				`"target":{"type":"webhook","url":%q}}`, n, n, due.Format("5 4 15 2 1 *"), hook))
	})
	require.NoError(b, err)
	require.Equal(b, jobs, made.requests, "the jobs must be there before they are due")
	const calm = 15 * time.Second
	<-time.After(time.Until(due) - calm - time.Second) // the events of the jobs have been dealt with
	quiet := during(calm)
	<-time.After(time.Until(due))
	var reading sync.WaitGroup
	var busy measured
	reading.Go(func() { busy = during(45 * time.Second) })
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

// startHook returns the URL of a webhook that does as little as possible, because it shares the processors with the
// platform.
func startHook(b *testing.B, called func()) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { _ = listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		for readMessage(in) == nil {
			called()
			if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + listener.Addr().String()
}
