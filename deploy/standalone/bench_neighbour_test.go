package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// costly is a condition that costs nearly the maximum, with a list of 20 numbers.
const costly = `user.free_ext_props.list.all(a, user.free_ext_props.list.all(b, a + b - a - b + a + b >= 0))`

// BenchmarkNeighbour measures the reads of one tenant while another tenant changes its users: first without
// conditions, then with as many costly conditions as a tenant may have. Reads come at a steady pace, so that times of
// waiting for the processor show.
func BenchmarkNeighbour(b *testing.B) {
	c := startPlatform(b, b.TempDir())
	calm, busy := c.token("--tenant", "calm"), c.token("--tenant", "busy")
	type object = map[string]any
	add := func(token, username string) string {
		var made struct {
			ID string `json:"id"`
		}
		send(b, c, token, "/v1/users", object{"username": username}, &made)
		return made.ID
	}
	read := get("/v1/users/"+add(calm, "anna"), calm)
	props := `{"free_ext_props":{"list":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20],"turn":%d}}`
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = add(busy, fmt.Sprint("u", i))
	}
	turn := 0
	changes := func(_, n int) []byte {
		turn++
		time.Sleep(5 * time.Millisecond)
		return patch("/v1/users/"+ids[n%len(ids)], busy, fmt.Sprintf(props, turn))
	}
	paced := func(int, int) []byte { time.Sleep(2 * time.Millisecond); return read }
	during := func(changing bool) measured {
		var all sync.WaitGroup
		if changing {
			all.Go(func() {
				_, err := generate(c.Addr, 1, 5*time.Second, changes)
				require.NoError(b, err)
			})
		}
		m, err := generate(c.Addr, 4, 5*time.Second, paced)
		require.NoError(b, err)
		all.Wait()
		return m
	}
	quiet, changed := during(false), during(true)
	reportReads(b, "nothing else", quiet, changed.p99)
	reportReads(b, "changes without conditions", changed, changed.p99)

	send(b, c, busy, "/v1/core-objects", object{"code": "company", "name": "Company"}, &struct{}{})
	nodes := 0
	for status := http.StatusOK; status == http.StatusOK; nodes++ {
		status, _ = exchange(b, c, busy, "/v1/tree-nodes", object{
			"object_code": "company", "parent_id": "", "name": fmt.Sprint("n", nodes),
			"is_dynamic": "1", "condition": costly,
		})
	}
	require.Greater(b, nodes, 2)
	for range 3 {
		reportReads(b, fmt.Sprintf("changes with %d costly conditions", nodes-1), during(true), changed.p99)
	}
}

// reportReads reports the latencies of reads. base is their p99 while another tenant makes changes without conditions.
func reportReads(b *testing.B, name string, m measured, base time.Duration) {
	b.Run(name, func(b *testing.B) {
		b.ReportMetric(float64(m.p50.Microseconds()), "p50-µs")
		b.ReportMetric(float64(m.p99.Microseconds()), "p99-µs")
		b.ReportMetric(float64(m.p99)/float64(base), "p99-of-calm-changes")
		b.ReportMetric(0, "ns/op")
	})
}
