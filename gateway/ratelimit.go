package gateway

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of one limiter, at about 200 bytes for each bucket. With more callers than that, those
// that are seen least lose their bucket and start with a full one.
const maxBuckets = 100_000

// bucketKey names the owner of a bucket: the SHA-256 of the Authorization header, or the address.
type bucketKey [sha256.Size]byte

// limiter has a token bucket for each caller.
type limiter struct {
	limit   rate.Limit
	burst   int
	buckets *otter.Cache[bucketKey, *rate.Limiter]
}

// newLimiter returns nil, which limits nothing, if the limit is 0.
func newLimiter(limit rate.Limit, burst int) *limiter {
	if limit <= 0 {
		return nil
	}
	// A bucket can be removed once enough time has passed to fill it again.
	full := time.Duration(float64(burst)/float64(limit)*float64(time.Second)) + time.Second
	return &limiter{limit: limit, burst: burst, buckets: otter.Must(&otter.Options[bucketKey, *rate.Limiter]{
		MaximumSize:      maxBuckets,
		ExpiryCalculator: otter.ExpiryAccessing[bucketKey, *rate.Limiter](full),
	})}
}

func (l *limiter) close() {
	if l != nil {
		l.buckets.StopAllGoroutines()
	}
}

// take uses one token. If there is none, it returns the time until there is one.
func (l *limiter) take(key bucketKey) (wait time.Duration) {
	if l == nil {
		return 0
	}
	bucket, _ := l.buckets.ComputeIfAbsent(key, func() (*rate.Limiter, bool) {
		return rate.NewLimiter(l.limit, l.burst), false
	})
	reservation := bucket.Reserve()
	if wait = reservation.Delay(); wait > 0 {
		reservation.Cancel()
	}
	return wait
}

// empty is like take, but uses no token.
func (l *limiter) empty(key bucketKey) (wait time.Duration) {
	if l == nil {
		return 0
	}
	bucket, ok := l.buckets.GetIfPresent(key)
	if !ok {
		return 0
	}
	missing := 1 - bucket.Tokens()
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / float64(l.limit) * float64(time.Second))
}

// usualCredential is the size of most credentials in bytes; a longer one is copied to the heap.
const usualCredential = 1 << 10

// credentialKey is the key of the request's credential, or of the client's address if there is no credential.
func credentialKey(r *http.Request, client netip.Addr) bucketKey {
	if credential := r.Header.Get("Authorization"); credential != "" {
		var text [usualCredential]byte // on the stack
		return sha256.Sum256(append(text[:0], credential...))
	}
	return addressKey(client)
}

// addressKey is the key of an address. An IPv6 network of 64 bits counts as one client, because clients get whole
// networks of that size.
func addressKey(client netip.Addr) bucketKey {
	var key bucketKey
	if client.Is6() {
		if network, err := client.Prefix(64); err == nil {
			client = network.Addr()
		}
	}
	if client.IsValid() {
		ip := client.As16()
		copy(key[:], ip[:])
	}
	return key
}
