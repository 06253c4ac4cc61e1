package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkBackup backs up a platform with 100,000 users while four clients write, and restores the backup. It reports
// the longest time that one of their writes took while nothing else ran, and while the backup was made.
func BenchmarkBackup(b *testing.B) {
	c := startPlatform(b, b.TempDir())
	token := c.token()
	importUsers(b, c, token, people(0, 100_000))
	var users page
	fetch(b, c, token, "/v1/users?page_size=200", &users)
	var mu sync.Mutex
	var sent [4]time.Time
	var longest time.Duration
	next := func(w, n int) []byte { // it is called when the answer to the client's last write has come
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); n > 0 {
			longest = max(longest, now.Sub(sent[w]))
		}
		sent[w] = time.Now()
		path := "/v1/users/" + users.Items[(w*31+n)%len(users.Items)].ID
		return patch(path, token, fmt.Sprintf(`{"display_name":"%d"}`, n))
	}
	during := func(do func()) (rate float64, worst time.Duration) {
		longest = 0
		var all sync.WaitGroup
		stop := make(chan struct{})
		all.Go(func() {
			defer close(stop)
			do()
		})
		var done int
		began := time.Now()
		for running := true; running; {
			m, err := generate(c.Addr, len(sent), 200*time.Millisecond, next)
			require.NoError(b, err)
			done += m.requests
			select {
			case <-stop:
				running = false
			default:
			}
		}
		all.Wait()
		return float64(done) / time.Since(began).Seconds(), longest
	}
	quiet, quietWorst := during(func() { time.Sleep(5 * time.Second) })
	dir, restored := filepath.Join(b.TempDir(), "backup"), b.TempDir()
	var took time.Duration
	busy, busyWorst := during(func() {
		began := time.Now()
		c.output("backup", dir)
		took = time.Since(began)
	})
	c.stop()
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	require.NoError(b, err)
	var m manifest
	require.NoError(b, json.Unmarshal(text, &m))
	began := time.Now()
	c.Dir = restored
	c.output("restore", dir)
	back := time.Since(began)
	megabytes := float64(m.size()) / 1e6
	for name, value := range map[string]float64{
		"MB": megabytes, "backup-MB/s": megabytes / took.Seconds(), "restore-MB/s": megabytes / back.Seconds(),
		"events": float64(m.events()), "held-ms": m.Waited, "writes/s": quiet, "writes/s-meanwhile": busy,
		"longest-write-ms":           float64(quietWorst.Microseconds()) / 1000,
		"longest-write-meanwhile-ms": float64(busyWorst.Microseconds()) / 1000,
	} {
		b.ReportMetric(value, name)
	}
	b.ReportMetric(0, "ns/op")
}
