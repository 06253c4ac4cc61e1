package gateway

import (
	"net/netip"

	"github.com/idplatform/idplatform/pkg/ratelimit"
)

// maxBuckets bounds how many callers have a bucket.
const maxBuckets = 100_000

// bucketKey names the owner of a bucket: a caller that a service knows, or an address.
type bucketKey [32]byte

// isCaller tells the key of a caller from that of an address, whose last byte is 0.
func (k *bucketKey) isCaller() bool { return k[len(k)-1] == 1 }

type buckets = *ratelimit.Buckets[bucketKey]

func newBuckets(perSecond float64, burst int) buckets {
	return ratelimit.New[bucketKey](perSecond, burst, maxBuckets)
}

// addressKey is the key of an address.
func addressKey(client netip.Addr) bucketKey {
	var key bucketKey
	if network := ratelimit.Network(client); network.IsValid() {
		ip := network.Addr().As16()
		copy(key[:], ip[:])
	}
	return key
}
