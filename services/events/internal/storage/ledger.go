// Package storage keeps each tenant within its share of the storage of NATS: the oldest events of a tenant that has
// used up its share are dropped, and those of its longest queues. See deploy/adr/0046.
package storage

import "slices"

// ledger counts what a stream has of each tenant, in one queue or in several.
type ledger struct {
	step    int64 // bytes of a segment; what is dropped at a time is exact to that
	tenants map[string]*usage
}

func newLedger(share int64) *ledger {
	const segments = 1024 // in a share
	return &ledger{max(share/segments, 1), map[string]*usage{}}
}

// usage is what a tenant has in a stream.
type usage struct {
	bytes  int64
	queues map[string]*queue
}

// queue is what is kept in order: its first segment is the oldest.
type queue struct {
	bytes    int64
	segments []segment
}

// segment is messages that follow each other.
type segment struct {
	last     uint64 // place
	bytes    int64
	messages int64
}

// add counts a message, which is the newest of the stream, and returns the tenant's usage.
func (l *ledger) add(tenant, name string, place uint64, bytes int64) *usage {
	u := l.tenants[tenant]
	if u == nil {
		u = &usage{queues: map[string]*queue{}}
		l.tenants[tenant] = u
	}
	q := u.queues[name]
	if q == nil {
		q = &queue{}
		u.queues[name] = q
	}
	if n := len(q.segments); n == 0 || q.segments[n-1].bytes >= l.step {
		q.segments = append(q.segments, segment{})
	}
	newest := &q.segments[len(q.segments)-1]
	newest.last = place
	newest.bytes += bytes
	newest.messages++
	q.bytes += bytes
	u.bytes += bytes
	return u
}

// forget takes out what is before the stream's first place.
func (l *ledger) forget(first uint64) {
	for tenant, u := range l.tenants {
		for name := range u.queues {
			u.forget(name, first)
		}
		if len(u.queues) == 0 {
			delete(l.tenants, tenant)
		}
	}
}

// forget takes the segments of a queue that are before a place out, and returns how many messages they have.
func (u *usage) forget(name string, before uint64) (messages int64) {
	q := u.queues[name]
	n := 0
	for ; n < len(q.segments) && q.segments[n].last < before; n++ {
		q.bytes -= q.segments[n].bytes
		u.bytes -= q.segments[n].bytes
		messages += q.segments[n].messages
	}
	if q.segments = slices.Delete(q.segments, 0, n); len(q.segments) == 0 {
		delete(u.queues, name)
	}
	return messages
}

// shorten takes the oldest segments of a queue out until it has at most so many messages.
func (u *usage) shorten(name string, atMost uint64) {
	var messages uint64
	segments := u.queues[name].segments
	for i, s := range slices.Backward(segments) {
		if messages += uint64(s.messages); messages > atMost { //nolint:gosec // not negative
			u.forget(name, segments[i].last+1)
			return
		}
	}
}

// excess returns up to which place each queue must be dropped so that at most so many bytes are left. The longest queue
// comes first, and the oldest messages of each. u does not change.
func (u *usage) excess(atMost int64) map[string]uint64 {
	upTo := map[string]uint64{}
	left, bytes, taken := u.bytes, map[string]int64{}, map[string]int{}
	for name, q := range u.queues {
		bytes[name] = q.bytes
	}
	for left > atMost {
		longest := ""
		for name, n := range bytes {
			if longest == "" || n > bytes[longest] {
				longest = name
			}
		}
		oldest := u.queues[longest].segments[taken[longest]]
		taken[longest]++
		upTo[longest] = oldest.last
		bytes[longest] -= oldest.bytes
		left -= oldest.bytes
	}
	return upTo
}
