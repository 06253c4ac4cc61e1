package token

import (
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// Limits hold for one replica.
type Limits struct {
	TokensPerSecond   float64 // of one client
	FailuresPerMinute float64 // failed authentications of one client, and from one address; also the burst
}

const (
	// revocationsPerSecond limits one client. Every replica of every service keeps a revoked token until it expires.
	revocationsPerSecond = 10
	maxBuckets           = 20_000 // of each limit; the least used are dropped first
	maxClientID          = 128    // bytes of a client id that name its bucket: unknown ids have one, too
)

type limits struct {
	tokens, revocations, failures, addresses *buckets
	guesses                                  guesses
}

func newLimits(l Limits) limits {
	failures := rate.Limit(l.FailuresPerMinute / 60)
	return limits{
		tokens:      newBuckets(rate.Limit(l.TokensPerSecond), int(2*l.TokensPerSecond)),
		revocations: newBuckets(revocationsPerSecond, 100*revocationsPerSecond),
		failures:    newBuckets(failures, int(l.FailuresPerMinute)),
		addresses:   newBuckets(failures, int(l.FailuresPerMinute)),
		guesses: guesses{
			ofAddress: newBuckets(failures, int(l.FailuresPerMinute)),
			ofClient:  newBuckets(failures*fromEverywhere, int(l.FailuresPerMinute)*fromEverywhere),
			known:     otter.Must(&otter.Options[string, struct{}]{MaximumSize: maxBuckets}),
		},
	}
}

// buckets are token buckets by name.
type buckets struct {
	limit rate.Limit
	burst int
	cache *otter.Cache[string, *rate.Limiter]
}

func newBuckets(limit rate.Limit, burst int) *buckets {
	return &buckets{limit, max(burst, 1), otter.Must(&otter.Options[string, *rate.Limiter]{MaximumSize: maxBuckets})}
}

// take takes one token from a bucket. If the bucket is empty, it returns how long to wait.
func (b *buckets) take(name string) time.Duration {
	bucket, _ := b.cache.ComputeIfAbsent(name, func() (*rate.Limiter, bool) {
		return rate.NewLimiter(b.limit, b.burst), false
	})
	reservation := bucket.Reserve()
	wait := reservation.Delay()
	if wait > 0 {
		reservation.Cancel()
	}
	return wait
}

// empty returns how long to wait for the next token of a bucket, and takes none.
func (b *buckets) empty(name string) time.Duration {
	bucket, ok := b.cache.GetIfPresent(name)
	if !ok {
		return 0
	}
	missing := 1 - bucket.Tokens()
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(b.limit) * float64(time.Second))
}

// network is the key for limits by address: the address, or the /64 prefix of an IPv6 address.
func network(address netip.Addr) string {
	if address = address.Unmap(); address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
