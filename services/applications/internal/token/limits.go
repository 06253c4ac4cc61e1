package token

import (
	"net/netip"

	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/ratelimit"
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
	tokens, revocations, failures, addresses buckets
	guesses                                  guesses
}

func newLimits(l Limits) limits {
	failures := l.FailuresPerMinute / 60
	return limits{
		tokens:      newBuckets(l.TokensPerSecond, int(2*l.TokensPerSecond)),
		revocations: newBuckets(revocationsPerSecond, 100*revocationsPerSecond),
		failures:    newBuckets(failures, int(l.FailuresPerMinute)),
		addresses:   newBuckets(failures, int(l.FailuresPerMinute)),
		guesses: guesses{
			ofAddress: newBuckets(failures, int(l.FailuresPerMinute)),
			ofClient:  newBuckets(failures*fromEverywhere, int(l.FailuresPerMinute)*fromEverywhere),
			known:     cache.New[string, struct{}](maxBuckets),
		},
	}
}

type buckets = *ratelimit.Buckets[string]

func newBuckets(perSecond float64, burst int) buckets {
	return ratelimit.New[string](perSecond, burst, maxBuckets)
}

// network is the key for limits by address.
func network(address netip.Addr) string { return ratelimit.Network(address).String() }
