package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// The figures are shares of a yardstick that the same client loads in the same run, because machines differ and their
// load varies.
const (
	oneRun  = 1500 * time.Millisecond
	repeats = 3
	workers = 16
)

// share loads the platform and the yardstick in turn, and reports the median of the ratios.
func share(b *testing.B, yard, platform *child, next func(worker, n int) []byte) {
	b.Helper()
	hello := get("/", "")
	var ratios, rates, cpus []float64
	var p50s, p99s []time.Duration
	for range repeats {
		base, err := generate(yard.Addr, workers, oneRun, func(int, int) []byte { return hello })
		require.NoError(b, err)
		before := platform.cpu()
		ours, err := generate(platform.Addr, workers, oneRun, next)
		require.NoError(b, err)
		cpus = append(cpus, float64((platform.cpu()-before).Microseconds())/float64(ours.requests))
		ratios, rates = append(ratios, ours.perSecond/base.perSecond), append(rates, ours.perSecond)
		p50s, p99s = append(p50s, ours.p50), append(p99s, ours.p99)
	}
	b.ReportMetric(median(ratios), "of-yardstick")
	b.ReportMetric(median(rates), "req/s")
	b.ReportMetric(median(cpus), "cpu-µs/req")
	b.ReportMetric(float64(median(p50s).Microseconds()), "p50-µs")
	b.ReportMetric(float64(median(p99s).Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

func median[T float64 | time.Duration](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// people makes the lines of an import of n users. Every second display name is Chinese; each line has about 200
// bytes.
func people(from, n int) []byte {
	given := strings.Fields("anna ben carl dora emil fritz gina hugo ines jan karl lena max nina otto paul rosa " +
		"sven tina udo vera willi xenia yara zoe")
	family := strings.Fields("schmidt mueller weber wagner becker hoffmann koch richter klein wolf neumann schwarz " +
		"braun zimmermann krueger hartmann lange krause lehmann")
	surnames := []rune("李王张刘陈杨赵黄周吴徐孙朱马胡郭何高林罗")
	names := []rune("伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞平刚桂文辉玲")
	var b bytes.Buffer
	for i := from; i < from+n; i++ {
		r := rand.New(rand.NewPCG(uint64(i), 1)) // the same people in every run
		g, f := given[r.IntN(len(given))], family[r.IntN(len(family))]
		display := g + " " + f
		if i%2 == 1 {
			display = string(surnames[r.IntN(len(surnames))]) +
				string(names[r.IntN(len(names))]) + string(names[r.IntN(len(names))])
		}
		fmt.Fprintf(&b, `{"username":"%s.%s%d","display_name":"%s","email":"%s.%s%d@corp.test","mobile":"+861%010d",`+
			`"employee_number":"E-%06d"}`+"\n", g, f, i, display, g, f, i, i, i)
	}
	return b.Bytes()
}

// importUsers sends lines to the import and returns the time it took.
func importUsers(b testing.TB, c *child, token string, lines []byte) time.Duration {
	b.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+"/v1/users/import", bytes.NewReader(lines))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/x-ndjson")
	start := time.Now()
	response, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	took := time.Since(start)
	require.Equal(b, http.StatusOK, response.StatusCode, "%s", body)
	require.Equal(b, bytes.Count(lines, []byte("\n")), bytes.Count(body, []byte(`"status":"created"`)))
	return took
}

// fetch decodes the response to a GET, which must be 200.
func fetch(b testing.TB, c *child, token, path string, into any) {
	b.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://"+c.Addr+path, nil)
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer response.Body.Close()
	require.Equal(b, http.StatusOK, response.StatusCode, path)
	require.NoError(b, json.NewDecoder(response.Body).Decode(into))
}

type page struct {
	Items []struct {
		ID string `json:"id"`
	} `json:"items"`
	Total int    `json:"total"`
	Next  string `json:"next_page_token"`
}

func BenchmarkPlatform(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	token := c.token()
	b.Run("idle", func(b *testing.B) { b.ReportMetric(c.rss(), "MiB"); b.ReportMetric(0, "ns/op") })
	importUsers(b, c, token, people(0, 20_000))
	becomeCalm(c)

	var first page
	fetch(b, c, token, "/v1/users?page_size=200", &first)
	gets := make([][]byte, len(first.Items))
	for i, item := range first.Items {
		gets[i] = get("/v1/users/"+item.ID, token)
	}
	b.Run("get", func(b *testing.B) {
		share(b, yard, c, func(w, n int) []byte { return gets[(w*31+n)%len(gets)] })
	})
	list := get("/v1/users?page_size=50", token)
	b.Run("page of 50", func(b *testing.B) { share(b, yard, c, func(int, int) []byte { return list }) })
	for _, list := range []struct{ name, query string }{
		{"page number 500 of 20", "page_num=500"},
		{"page number 500 of 20, by username", "page_num=500&page_sort=username"},
		{"page of 50, status=1", "status=1&page_size=50"},
	} {
		request := get("/v1/users?"+list.query, token)
		b.Run(list.name, func(b *testing.B) { share(b, yard, c, func(int, int) []byte { return request }) })
	}
	deep := first
	for range 95 {
		fetch(b, c, token, "/v1/users?page_size=200&page_token="+deep.Next, &deep)
	}
	deepList := get("/v1/users?page_size=50&page_token="+deep.Next, token)
	b.Run("page of 50, 19,000 deep",
		func(b *testing.B) { share(b, yard, c, func(int, int) []byte { return deepList }) })

	benchmarkCreates(b, c, token)
	memory := func(b *testing.B) { b.ReportMetric(c.rss(), "MiB"); b.ReportMetric(0, "ns/op") }
	b.Run("after the load", memory)
	<-time.After(25 * time.Second) // the garbage collector gives memory back
	b.Run("25 s later", memory)
}

// benchmarkCreates creates users with new names in every run.
func benchmarkCreates(b *testing.B, c *child, token string) {
	serial := 0
	creates := func() func(worker, n int) []byte {
		serial++
		run := serial
		return func(w, n int) []byte {
			name := fmt.Sprintf("new%d.w%d.%d", run, w, n)
			return post("/v1/users", token, fmt.Sprintf(
				`{"username":%q,"display_name":"李 %s","email":"%s@corp.test","employee_number":"N-%d"}`,
				name, name, name, n))
		}
	}
	for _, workers := range []int{1, 32} {
		b.Run(fmt.Sprintf("create, %d workers", workers), func(b *testing.B) {
			var rates []float64
			var p50s, p99s []time.Duration
			for range repeats {
				l, err := generate(c.Addr, workers, oneRun, creates())
				require.NoError(b, err)
				rates, p50s, p99s = append(rates, l.perSecond), append(p50s, l.p50), append(p99s, l.p99)
			}
			b.ReportMetric(median(rates), "req/s")
			b.ReportMetric(float64(median(p50s).Microseconds()), "p50-µs")
			b.ReportMetric(float64(median(p99s).Microseconds()), "p99-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// becomeCalm waits until the platform has dealt with the events of what it was asked: it uses less than a tenth of a
// processor.
func becomeCalm(c *child) {
	for used := time.Second; used > 100*time.Millisecond; {
		before := c.cpu()
		<-time.After(time.Second)
		used = c.cpu() - before
	}
}

func BenchmarkAt100k(b *testing.B) {
	yard := startYardstick(b)
	dir := b.TempDir()
	c := startPlatform(b, dir)
	token := c.token()
	lines := people(0, 100_000)
	idle := c.rss()
	before := c.cpu()
	took := importUsers(b, c, token, lines)
	spent := c.cpu() - before
	b.Run("import of 100,000", func(b *testing.B) {
		b.ReportMetric(float64(spent.Microseconds())/100_000, "cpu-µs/user")
		b.ReportMetric(100_000/took.Seconds(), "users/s")
		b.ReportMetric(c.peak()-idle, "MiB-more-at-peak")
		becomeCalm(c)
		b.ReportMetric(float64((c.cpu()-before).Microseconds())/100_000, "cpu-µs/user-with-events")
		b.ReportMetric(0, "ns/op")
	})
	for _, search := range []struct{ name, query string }{
		{"prefix, one hit", "keyword=E-054321"},
		{"prefix", "keyword=anna.schmidt1"},
		{"generic, a word", "search_type=generic&keyword=schmidt99"},
		{"generic, Chinese", "search_type=generic&keyword=%E6%9D%8E%E4%BC%9F"},
		{"generic, two words", "search_type=generic&keyword=anna+schmidt9"},
		{"generic, two common words", "search_type=generic&keyword=anna+schmidt"},
		{"generic, two words of all", "search_type=generic&keyword=corp+test"},
		{"prefix of many", "keyword=anna"},
		{"prefix of all", "keyword=E-"},
	} {
		var found page
		fetch(b, c, token, "/v1/users?"+search.query, &found)
		request := get("/v1/users?page_size=20&"+search.query, token)
		b.Run(fmt.Sprintf("%s (%d)", search.name, found.Total), func(b *testing.B) {
			share(b, yard, c, func(int, int) []byte { return request })
		})
	}
	c.stop()
	b.Run("start with 100,000", func(b *testing.B) {
		start := time.Now()
		c := startPlatform(b, dir)
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms")
		wait.Until(b, c.ready) // permissions has read all users
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms-ready")
		b.ReportMetric(float64(c.cpu().Milliseconds()), "cpu-ms-ready")
		b.ReportMetric(0, "ns/op")
		c.stop()
	})
	b.Run("start empty", func(b *testing.B) {
		start := time.Now()
		c := startPlatform(b, b.TempDir())
		b.ReportMetric(time.Since(start).Seconds()*1000, "ms")
		b.ReportMetric(0, "ns/op")
		c.stop()
	})
}
