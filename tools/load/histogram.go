package main

import (
	"math"
	"sync"
	"time"
)

// histogram counts latencies in steps of 3 %, from a microsecond to over a minute, in memory that does not grow.
type histogram struct {
	mu     sync.Mutex
	counts [buckets]int64
	n      int64
	errors int64
	max    time.Duration
}

const (
	step    = 1.03
	buckets = 640
)

func (h *histogram) add(took time.Duration, failed bool) {
	i := 0
	if us := float64(took) / float64(time.Microsecond); us > 1 {
		i = min(buckets-1, int(math.Log(us)/math.Log(step)))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[i]++
	h.n++
	h.max = max(h.max, took)
	if failed {
		h.errors++
	}
}

// take returns what was counted, and begins anew if reset is set.
func (h *histogram) take(reset bool) *histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := &histogram{counts: h.counts, n: h.n, errors: h.errors, max: h.max}
	if reset {
		h.counts, h.n, h.errors, h.max = [buckets]int64{}, 0, 0, 0
	}
	return out
}

// at is the latency that a part of the requests does not exceed.
func (h *histogram) at(part float64) time.Duration {
	rest := int64(math.Ceil(part * float64(h.n)))
	for i, n := range h.counts {
		if rest -= n; rest <= 0 && n > 0 && i < buckets-1 { // the last one has all that took longer
			return min(h.max, time.Duration(math.Pow(step, float64(i+1))*float64(time.Microsecond)))
		}
	}
	return h.max
}
