package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/service"

	"github.com/idplatform/idplatform/pkg/testkit/drive"
)

// leaveOut makes the platform of this process run without a service.
func leaveOut(name string) {
	all := specs
	specs = func(s settings) []service.Spec {
		return slices.DeleteFunc(all(s), func(spec service.Spec) bool { return spec.Name == name })
	}
}

// seconds is how long one run of BenchmarkCostOfEvents lasts: IDP_BENCH_SECONDS, or a few.
func seconds(b *testing.B) time.Duration {
	text := os.Getenv("IDP_BENCH_SECONDS")
	if text == "" {
		return 3 * time.Second
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return time.Duration(n) * time.Second
}

// settle waits until the program has no work left.
func (c *child) settle() {
	c.t.Helper()
	for idle := false; !idle; {
		before := c.cpu()
		time.Sleep(500 * time.Millisecond)
		idle = c.cpu()-before < 30*time.Millisecond
	}
}

// BenchmarkCostOfEvents measures what the events service adds to the cost of creating users while nobody subscribes. It
// loads the platform with the service and without it in turn, each in a process of its own; each run ends when all work
// that it caused is done.
func BenchmarkCostOfEvents(b *testing.B) {
	const runs, workers = 6, 32
	during := seconds(b)
	programs := []*child{startPlatform(b, b.TempDir(), "IDP_TEST_WITHOUT=events"), startPlatform(b, b.TempDir())}
	tokens := []string{programs[0].token(), programs[1].token()}
	var rates, costs [2][]float64
	var ratios, costRatios []float64
	for run := range runs {
		for i := range programs {
			n := (i + run) % 2 // each is first in turn, because machines get slower and faster
			rate, cost := programs[n].loadCreates(b, tokens[n], run, workers, during)
			rates[n], costs[n] = append(rates[n], rate), append(costs[n], cost)
		}
		ratios = append(ratios, rates[1][run]/rates[0][run])
		costRatios = append(costRatios, costs[1][run]/costs[0][run])
	}
	b.ReportMetric(median(rates[1]), "req/s")
	b.ReportMetric(median(ratios), "req/s-of-without")
	b.ReportMetric(median(costs[1]), "cpu-µs/req")
	b.ReportMetric(median(costRatios), "cpu-of-without")
	b.ReportMetric(0, "ns/op")
}

// loadCreates creates users for a while, and returns how many a second, and the processor time of each.
func (c *child) loadCreates(b *testing.B, token string, run, workers int, during time.Duration) (rate, cost float64) {
	b.Helper()
	before := c.cpu()
	l, err := generate(c.Addr, workers, during, func(w, n int) []byte {
		name := fmt.Sprintf("new%d.w%d.%d", run, w, n)
		return post("/v1/users", token, fmt.Sprintf(
			`{"username":%q,"display_name":"李 %s","email":"%s@corp.test","employee_number":"N-%d"}`,
			name, name, name, n))
	})
	require.NoError(b, err)
	c.settle()
	return l.perSecond, float64((c.cpu() - before).Microseconds()) / float64(l.requests)
}

// BenchmarkIdleStreams measures the memory of a thousand open event streams on which nothing is sent, of the feed and
// of the audit log.
func BenchmarkIdleStreams(b *testing.B) {
	for _, path := range drive.StreamPaths {
		b.Run(path, func(b *testing.B) {
			c := startPlatform(b, b.TempDir(), "IDP_MAX_PER_CALLER=1024")
			client := c.client("acme")
			c.settle()
			before := c.rss()
			streams := client.OpenMany(b, path, 1000)
			c.settle()
			b.ReportMetric(before, "MiB-before")
			b.ReportMetric(c.rss()-before, "MiB-more")
			b.ReportMetric(0, "ns/op")
			_, err := client.Do(http.MethodPost, "/v1/users", `{"username":"li.wei"}`)
			require.NoError(b, err)
			for _, stream := range streams {
				_, data := stream.Next(b)
				require.Contains(b, data, "li.wei")
			}
			c.stop() // which ends the streams
			for _, stream := range streams {
				stream.RequireEnd(b)
			}
		})
	}
}
