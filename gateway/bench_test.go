package gateway

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

var benchBody = []byte(`{"id":"1048577","username":"li.wei","x":"` + strings.Repeat("x", 600) + `"}`)

func benchService(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(benchBody)
}

// discard is a ResponseWriter that costs almost nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkInProcess measures what the gateway adds to a function call.
func BenchmarkInProcess(b *testing.B) {
	for name, change := range map[string]func(*Config){
		"default": nil,
		"limited": func(c *Config) {
			c.RateLimit.PerSecond, c.RateLimit.Burst, c.RateLimit.UnauthorizedPerMinute = 1e9, 1e9, 1e9
		},
	} {
		b.Run(name, func(b *testing.B) {
			g := newGateway(b, map[string]Upstream{Users: local(func(http.ResponseWriter, *http.Request) {})}, change)
			header := http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 500)}}
			r := httptest.NewRequest(http.MethodGet, "/v1/users/1048577", nil)
			w := discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				clear(r.Header)
				r.Header["Authorization"] = header["Authorization"]
				g.ServeHTTP(w, r)
			}
		})
	}
}

// The proxy benchmark runs service and gateway in processes of their own: this program, started again with a role.
const roleVariable = "IDP_BENCH_ROLE"

func runBenchmarkRole() bool {
	role, upstream, _ := strings.Cut(os.Getenv(roleVariable), " ")
	var handler http.Handler = http.HandlerFunc(benchService)
	switch role {
	case "":
		return false
	case "gateway":
		u, err := Remote(upstream)
		if err != nil {
			panic(err)
		}
		deps := Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
		g, err := New(DefaultConfig(), map[string]Upstream{Users: u}, deps)
		if err != nil {
			panic(err)
		}
		handler = g
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + ln.Addr().String())
	go func() { _ = http.Serve(ln, handler) }()
	// Each line asks for the CPU time used so far; the end of input ends the process.
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			panic(err)
		}
		fmt.Println(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return true
}

type process struct {
	url string
	in  io.Writer
	out *bufio.Reader
}

func startRole(b *testing.B, role string) *process {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	p := &process{in: in, out: bufio.NewReader(out)}
	p.url, err = p.out.ReadString('\n')
	require.NoError(b, err)
	p.url = strings.TrimSpace(p.url)
	return p
}

func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	_, err := io.WriteString(p.in, "\n")
	require.NoError(b, err)
	var ns int64
	_, err = fmt.Fscanln(p.out, &ns)
	require.NoError(b, err)
	return time.Duration(ns)
}

// BenchmarkProxyHop sends requests directly to the service and through the gateway in turns, so that both run under
// the same load. It reports the median latency that the gateway adds, and the CPU time of the gateway's process for
// each request.
func BenchmarkProxyHop(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			service := startRole(b, "service")
			gateway := startRole(b, "gateway "+service.url)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
			defer client.CloseIdleConnections()
			round := func(url string, n int) []time.Duration {
				all := make([]time.Duration, n)
				var wg sync.WaitGroup
				for c := range clients {
					wg.Go(func() {
						for i := c; i < n; i += clients {
							started := time.Now()
							resp, err := client.Get(url + "/v1/users/1048577")
							if err != nil {
								b.Error(err)
								return
							}
							_, _ = io.Copy(io.Discard, resp.Body)
							_ = resp.Body.Close()
							all[i] = time.Since(started)
						}
					})
				}
				wg.Wait()
				return all
			}
			round(service.url, 500)
			round(gateway.url, 500)
			var direct, through []time.Duration
			before := gateway.cpu(b)
			for left := b.N; left > 0; {
				n := min(left, 500)
				direct = append(direct, round(service.url, n)...)
				through = append(through, round(gateway.url, n)...)
				left -= n
			}
			used := gateway.cpu(b) - before
			median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
			b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-µs/request")
			b.ReportMetric(float64((median(through)-median(direct)).Nanoseconds())/1e3, "added-p50-µs")
			b.ReportMetric(float64(median(direct).Nanoseconds())/1e3, "direct-p50-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
