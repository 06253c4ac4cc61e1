package browsertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What a screen may cost. Bytes, calls and movement are the same on every machine. Times are not: they are told, and
// must be within `busy` times as much.
const (
	maxFirstScript = 60_000 // bytes on the wire; console/web/bundle limits all scripts together
	maxFirstCalls  = 3
	maxShift       = 0.02 // of the layout, CLS
	busy           = 10
)

// TestSpeed opens the first screen with an empty cache, then works with a list. No other test runs meanwhile.
func TestSpeed(t *testing.T) {
	sample(t)
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			b := signedIn(t, sharedTenant)
			if m.slow {
				b.slowDown()
			}
			b.proxy.forget()
			b.load("/console/default/start")
			b.see("200 users")
			paint := b.largestPaint()
			b.rest()
			script := eval[int64](b, `performance.getEntriesByType('resource').filter((e) => /\.js$/.test(e.name))
				.reduce((sum, e) => sum + e.encodedBodySize, 0)`)
			calls := b.proxy.sent("GET /*")
			t.Logf("first screen: %d bytes of script (at most %d), %d calls (%d), layout moves by %.3f (%.2f)",
				script, maxFirstScript, len(calls), maxFirstCalls, b.shift(), maxShift)
			t.Logf("%s machine: largest paint %d ms (%d)", m.name, paint.Milliseconds(), m.paint.Milliseconds())
			assert.Positive(t, script)
			assert.LessOrEqual(t, script, int64(maxFirstScript))
			assert.LessOrEqual(t, len(calls), maxFirstCalls, "%v", calls)
			assert.LessOrEqual(t, b.shift(), maxShift)
			assert.Less(t, paint, busy*m.paint)

			for _, screen := range []string{"users", "tree/sample-company", "grants", "audit"} {
				b.open(screen)
				b.rest()
				t.Logf("%s: layout moves by %.3f (%.2f)", screen, b.shift(), maxShift)
				assert.LessOrEqual(t, b.shift(), maxShift, screen)
			}
			b.open("users")
			b.rest()
			b.watchKeys()
			b.workWithList()
			longest := b.longestKey()
			t.Logf("%s machine: longest interaction %d ms (%d)", m.name, longest.Milliseconds(),
				m.interaction.Milliseconds())
			assert.Less(t, longest, busy*m.interaction)
			b.clean()
		})
	}
}

// shift is how far things moved by themselves since the page was loaded.
func (b *browser) shift() float64 {
	b.t.Helper()
	return eval[float64](b, "shifts.reduce((sum, s) => sum + s.value, 0)")
}

// largestPaint is when the largest part of the page was there.
func (b *browser) largestPaint() time.Duration {
	b.t.Helper()
	return milliseconds(eval[float64](b, `new Promise((done) => new PerformanceObserver((list) =>
		done(list.getEntries().at(-1).startTime)).observe({type: 'largest-contentful-paint', buffered: true}))`))
}

// watchKeys notes from now on how long it takes from a key to the next paint.
func (b *browser) watchKeys() {
	b.t.Helper()
	eval[bool](b, `(window.longest = 0, new PerformanceObserver((list) => { for (const e of list.getEntries())
		longest = Math.max(longest, e.duration); }).observe({type: 'event', durationThreshold: 16}), true)`)
}

func (b *browser) longestKey() time.Duration {
	b.t.Helper()
	return milliseconds(eval[float64](b, "longest"))
}

// workWithList goes through the rows of a list, opens and closes one, and searches.
func (b *browser) workWithList() {
	b.t.Helper()
	for _, key := range []string{"j", "j", "\r", "j", "k", "\x1b", "/"} {
		b.press(key)
	}
	b.press("li")
	b.press("\x1b")
	b.press("\x1b")
	b.rest()
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
