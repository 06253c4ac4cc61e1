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
// meanwhile: first at a steady pace, which leaves processors idle, so that each wait for one shows; then as many as
// there can be.
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
	unpaced := func(w, n int) []byte { return reads[(w*31+n)%len(reads)] }
	during := func(d time.Duration) (few, many measured) {
		few, err := generate(c.Addr, 4, d, paced)
		require.NoError(b, err)
		many, err = generate(c.Addr, workers, d, unpaced)
		require.NoError(b, err)
		return few, many
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
	const calm = 10 * time.Second
	<-time.After(time.Until(due) - 2*calm - time.Second) // the events of the jobs have been dealt with
	quietFew, quietMany := during(calm)
	<-time.After(time.Until(due))
	var reading sync.WaitGroup
	var busyFew, busyMany measured
	reading.Go(func() { busyFew, busyMany = during(22 * time.Second) })
	var took time.Duration
	select {
	case last := <-all:
		took = last.Sub(due)
	case <-time.After(time.Minute):
		require.Fail(b, "not all jobs have started in a minute", "%d have", calls.Load())
	}
	reading.Wait()
	require.EqualValues(b, jobs, calls.Load())
	reportReads(b, "nothing else", quietFew, quietFew.p99)
	reportReads(b, "10,000 jobs due", busyFew, quietFew.p99)
	reportReads(b, "nothing else, full load", quietMany, quietMany.p99)
	reportReads(b, "10,000 jobs due, full load", busyMany, quietMany.p99)
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
