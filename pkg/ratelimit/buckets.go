// Package ratelimit limits how often something may happen, for each of many callers, in the memory of one replica.
package ratelimit

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/cache"
)

// Buckets are token buckets by key, of about 200 bytes each. A nil Buckets limits nothing.
type Buckets[K comparable] struct {
	limit rate.Limit
	burst int
	cache *cache.Cache[K, *rate.Limiter]
}

// New makes buckets that hold up to burst tokens, at least one, and get perSecond new ones; nil if that is not above 0.
// There are at most so many: the key that is seen least loses its bucket, and later starts with a full one.
func New[K comparable](perSecond float64, burst, most int) *Buckets[K] {
	if perSecond <= 0 {
		return nil
	}
	return &Buckets[K]{rate.Limit(perSecond), max(burst, 1), cache.New[K, *rate.Limiter](most)}
}

// Take takes one token from a bucket. If there is none, it returns the time until there is one.
func (b *Buckets[K]) Take(key K) (wait time.Duration) {
	if b == nil {
		return 0
	}
	bucket := b.cache.GetOrMake(key, func() *rate.Limiter { return rate.NewLimiter(b.limit, b.burst) })
	reservation := bucket.Reserve()
	if wait = reservation.Delay(); wait > 0 {
		reservation.Cancel()
	}
	return wait
}

// Empty is like Take, but takes no token.
func (b *Buckets[K]) Empty(key K) (wait time.Duration) {
	if b == nil {
		return 0
	}
	bucket, ok := b.cache.Get(key)
	if !ok {
		return 0
	}
	missing := 1 - bucket.Tokens()
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(b.limit) * float64(time.Second))
}

// Network is what counts as one client: the address, or its network of 64 bits for IPv6, because clients get whole
// networks of that size. It is the zero Prefix for an address that is not valid.
func Network(client netip.Addr) netip.Prefix {
	bits := 32
	if client = client.Unmap(); client.Is6() {
		bits = 64
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
