package transfer

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	rewriteEvery = 200 * time.Millisecond // of the line on a terminal
	writeEvery   = 5 * time.Second        // of the lines elsewhere
)

// meter shows how far a transfer has come.
type meter struct {
	out      io.Writer
	terminal bool
	total    int64 // 0: nobody knows
	things   string

	done, begin atomic.Int64 // begin: where it went on
	began       time.Time
	stop        chan struct{}
	ended       sync.WaitGroup
	mu          sync.Mutex
	width       int // of the line that is shown
}

func newMeter(out io.Writer, terminal bool, things string, total, begin int64) *meter {
	m := &meter{out: out, terminal: terminal, things: things, total: total, began: time.Now()}
	m.stop = make(chan struct{})
	m.done.Store(begin)
	m.begin.Store(begin)
	every := writeEvery
	if terminal {
		every = rewriteEvery
	}
	m.ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.show(m.line(time.Now()))
			case <-m.stop:
				return
			}
		}
	})
	return m
}

// line says how far it has come, how fast, and how long the rest will take.
func (m *meter) line(now time.Time) string {
	done := m.done.Load()
	rate := float64(done-m.begin.Load()) / max(now.Sub(m.began).Seconds(), 0.001)
	text := fmt.Sprintf("%d %s, %.0f a second", done, m.things, rate)
	if m.total <= 0 {
		return text
	}
	text = fmt.Sprintf("%d of %d %s (%d %%), %.0f a second", done, m.total, m.things, done*100/m.total, rate)
	if rate > 0 && done < m.total {
		left := time.Duration(float64(m.total-done) / rate * float64(time.Second)).Round(time.Second)
		text += fmt.Sprintf(", %v left", left)
	}
	return text
}

func (m *meter) show(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.terminal {
		fmt.Fprintln(m.out, line)
		return
	}
	fmt.Fprintf(m.out, "\r%-*s", m.width, line)
	m.width = max(m.width, len(line))
}

// note writes a line for people, between the lines of the meter.
func (m *meter) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	fmt.Fprintf(m.out, format+"\n", args...)
}

func (m *meter) clear() {
	if m.terminal && m.width > 0 {
		fmt.Fprintf(m.out, "\r%*s\r", m.width, "")
		m.width = 0
	}
}

func (m *meter) close() {
	close(m.stop)
	m.ended.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
}
