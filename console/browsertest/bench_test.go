package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// machines are one at a desk, and a slow one on a slow line: paint is when the first screen is there, interaction how
// long a key takes.
var machines = []struct {
	name               string
	slow               bool
	paint, interaction time.Duration
}{
	{"fast", false, 500 * time.Millisecond, 200 * time.Millisecond},
	{"slow", true, 2 * time.Second, 800 * time.Millisecond},
}

// slowDown makes the processor four times slower, and the line 1.6 Mbit/s with 150 ms of delay.
func (b *browser) slowDown() {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
	require.NoError(b.t, err)
	const bytes = 1_600_000 / 8
	_, err = chromedp.Call(b.ctx, slowLine, slowLineParams{
		MatchedNetworkConditions: []*network.Conditions{
			{Latency: 150, DownloadThroughput: bytes, UploadThroughput: bytes},
		},
	})
	require.NoError(b.t, err)
}

// slowLine is network.EmulateNetworkConditionsByRule with a parameter that Chromium demands up to version 148, and
// ignores since.
var slowLine = cdp.Command[slowLineParams, cdp.Empty]{Method: network.CommandEmulateNetworkConditionsByRule}

type slowLineParams struct {
	Offline                  bool                  `json:"offline"`
	MatchedNetworkConditions []*network.Conditions `json:"matchedNetworkConditions"`
}

// BenchmarkFirstPaint opens the first screen with an empty cache: lcp-ms is when its largest part is there.
func BenchmarkFirstPaint(bench *testing.B) {
	for _, m := range machines {
		bench.Run(m.name, func(bench *testing.B) {
			sample(bench)
			var sum float64
			for range bench.N {
				b := signedIn(bench, sharedTenant)
				if m.slow {
					b.slowDown()
				}
				b.load("/console/default/start")
				b.see("200 users")
				sum += float64(b.largestPaint().Milliseconds())
			}
			bench.ReportMetric(sum/float64(bench.N), "lcp-ms")
		})
	}
}

// BenchmarkInteraction opens and closes records: event-ms is from the key to the next paint, the worst of ten.
func BenchmarkInteraction(bench *testing.B) {
	for _, m := range machines {
		bench.Run(m.name, func(bench *testing.B) {
			b := sample(bench)
			b.open("users")
			b.rest()
			if m.slow {
				b.slowDown()
			}
			b.watchKeys()
			for range bench.N {
				b.workWithList()
			}
			bench.ReportMetric(float64(b.longestKey().Milliseconds()), "event-ms")
		})
	}
}

// BenchmarkScreens opens every look with a warm cache: ready-ms is when nothing is loaded any more.
func BenchmarkScreens(bench *testing.B) {
	for _, look := range looks {
		if look.js != "" {
			continue
		}
		bench.Run(look.name, func(bench *testing.B) {
			b := sample(bench)
			var sum float64
			for range bench.N {
				b.load(look.path)
				b.waitFor("document.querySelector('main :is(h1, h2)') && " +
					"!document.querySelector('[aria-busy=true], .skeleton')")
				sum += eval[float64](b, "performance.now()")
			}
			bench.ReportMetric(sum/float64(bench.N), "ready-ms")
		})
	}
}
