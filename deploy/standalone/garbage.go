package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// All services and NATS share this process and its heap, most of which is short-lived. Collecting garbage more often
// than Go's default takes a fifth less memory. But requests wait while garbage is collected, up to some milliseconds
// each time. So while a busy program collects often and has little memory in use, more garbage may gather, until memory
// in use and garbage together have roomyHeap bytes. A program that has become calm gives this memory back.
const (
	garbagePercent = 60 // of the memory in use
	mostPercent    = 400
	roomyHeap      = 192 << 20
	often          = 10 * time.Second // between two collections
	calm           = 20 * time.Second // without a collection
)

// startCollector sets how often garbage is collected during the start. GOGC in the environment overrides it.
func startCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// adaptCollector adapts how often garbage is collected to the program's load from now on.
func adaptCollector() {
	if os.Getenv("GOGC") == "" {
		afterNext(collection{time.Now(), garbagePercent})
	}
}

// collection is one garbage collection: its time, and how much garbage may gather after it.
type collection struct {
	at      time.Time
	percent int // of the memory in use
}

// afterNext sets the percentage after the collection that follows, and again after each one after that.
func afterNext(last collection) {
	var release *time.Timer
	if last.percent > garbagePercent {
		release = time.AfterFunc(calm, debug.FreeOSMemory)
	}
	// Nothing refers to the array, so its cleanup runs after the next collection.
	runtime.AddCleanup(new([16]byte), func(last collection) {
		if release != nil {
			release.Stop()
		}
		inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(inUse)
		now := time.Now()
		percent := percentFor(inUse[0].Value.Uint64(), now.Sub(last.at))
		if percent != last.percent { // setting it stops the program for a moment
			debug.SetGCPercent(percent)
		}
		afterNext(collection{now, percent})
	}, last)
}

// percentFor returns how much garbage may gather, in per cent of the memory in use and in steps of ten. pause is the
// time between the last two collections.
func percentFor(inUse uint64, pause time.Duration) int {
	if inUse >= roomyHeap || pause >= often {
		return garbagePercent
	}
	percent := int((roomyHeap - inUse) * 10 / (inUse + 1) * 10) // less than roomyHeap * 10
	return min(max(percent, garbagePercent), mostPercent)
}
