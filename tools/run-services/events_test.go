//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/testkit/drive"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// startForEvents starts a platform whose webhooks may reach the tests, and returns a client of the tenant acme.
func startForEvents(t testing.TB) (*platform, *drive.Client) {
	t.Helper()
	s := settingsForTest(t)
	s.env = map[string][]string{
		gateway.Events: {"IDP_OUTBOUND_ALLOW_PRIVATE=true", "IDP_WEBHOOK_RETRY_DELAYS=" + drive.RetryDelays},
		"gateway":      {"IDP_MAX_PER_CALLER=1024"},
	}
	p, err := start(t.Context(), s, t.Output())
	require.NoError(t, err)
	t.Cleanup(p.stop)
	c := p.client(firstToken(t, p))
	c.Tenant = "acme"
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return p, &c
}

// named returns a process.
func (p *platform) named(name string) *process {
	all := slices.Concat(p.groups...)
	return all[slices.IndexFunc(all, func(one *process) bool { return one.name == name })]
}

// The events service alone is killed again and again while changes flow to 20 subscriptions, 5 of which fail half of
// the time. No change fails, each subscription gets every event, in the order of each record, and the audit log has
// every change once. IDP_TEST_CRASH_CHANGES makes it larger.
func TestKillNineOfTheEventsService(t *testing.T) {
	t.Parallel()
	const kills = 3
	changes := drive.Changes(t)
	p, c := startForEvents(t)
	t.Cleanup(func() {
		if t.Failed() {
			p.named(gateway.Events).logGoroutines(t, "/internal/delivery.")
		}
	})
	hooks := drive.NewWebhooks(t)
	hooks.Subscribe(t, c, 15, 5)
	acknowledged := 0
	for round := range kills + 1 {
		kill := func() { p.named(gateway.Events).signal(t, syscall.SIGKILL) }
		if round == kills {
			kill = func() {}
		}
		acknowledged += c.ChangeUsers(fmt.Sprint("round", round), changes/(kills+1), kill)
		wait.Until(t, func() bool {
			_, err := c.Do(http.MethodGet, "/v1/events?after=now", "")
			return err == nil
		}, "it is started again")
	}
	told := c.Told(t, acknowledged)
	assert.Len(t, told, acknowledged)
	hooks.RequireAll(t, told)
	c.RequireAudited(t, told)
}

func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(int(p.pid.Load()), sig))
}

// logGoroutines logs what the process's goroutines do in a package.
func (p *process) logGoroutines(t testing.TB, in string) {
	host, port, err := net.SplitHostPort(p.address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	admin := net.JoinHostPort(host, strconv.Itoa(number+adminOffset))
	response, err := http.Get("http://" + admin + "/debug/pprof/goroutine?debug=2")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(stack, in) {
			t.Log(stack)
		}
	}
}

// awaitRestart waits until a process that was told to end is there again.
func (p *process) awaitRestart(t testing.TB, ended int64) {
	t.Helper()
	wait.Until(t, func() bool { return p.pid.Load() != ended && p.ready(t.Context()) == nil })
}

// Event streams pass the gateway, go on after the last event that a client has seen, and end when the service or the
// gateway stops.
func TestEventStreamsThroughTheGateway(t *testing.T) {
	t.Parallel()
	p, c := startForEvents(t)
	create := func(name string) {
		_, err := c.Do(http.MethodPost, "/v1/users", fmt.Sprintf(`{"username":%q}`, name))
		require.NoError(t, err)
	}
	last := map[string]string{} // by path, the id of the last event that was seen
	for _, path := range drive.StreamPaths {
		streams := c.OpenMany(t, path, 10)
		create("first-" + path[len("/v1/"):][:5])
		for _, stream := range streams {
			id, data := stream.Next(t)
			assert.Contains(t, data, "first-")
			last[path] = id
		}
		events := p.named(gateway.Events)
		ended := events.pid.Load()
		events.signal(t, syscall.SIGTERM)
		for _, stream := range streams {
			stream.RequireEnd(t)
		}
		create("second-" + path[len("/v1/"):][:5])
		events.awaitRestart(t, ended)
		again := c.Open(t, path, last[path])
		_, data := again.Next(t)
		assert.Contains(t, data, "second-", "what came while the service was away")
		one := p.named("gateway")
		ended = one.pid.Load()
		one.signal(t, syscall.SIGTERM)
		again.RequireEnd(t)
		one.awaitRestart(t, ended)
	}
}

// BenchmarkIdleStreams is the memory that a thousand open event streams take in the gateway and in the service.
func BenchmarkIdleStreams(b *testing.B) {
	for _, path := range drive.StreamPaths {
		b.Run(path, func(b *testing.B) {
			p, c := startForEvents(b)
			names := []string{"gateway", gateway.Events}
			before := map[string]float64{}
			for _, name := range names {
				before[name] = p.named(name).rss(b)
			}
			c.OpenMany(b, path, 1000)
			for _, name := range names {
				b.ReportMetric(p.named(name).rss(b)-before[name], "MiB-more-"+name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rss is the process's resident memory in MiB.
func (p *process) rss(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid.Load()))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	require.NoError(b, err)
	return kib / 1024
}
