package gateway

import (
	"crypto/sha256"
	"net/http"
	"net/netip"

	"github.com/idplatform/idplatform/pkg/ratelimit"
)

// maxBuckets bounds how many callers have a bucket.
const maxBuckets = 100_000

// bucketKey names the owner of a bucket: the SHA-256 of the Authorization header, or the address.
type bucketKey [sha256.Size]byte

type buckets = *ratelimit.Buckets[bucketKey]

func newBuckets(perSecond float64, burst int) buckets {
	return ratelimit.New[bucketKey](perSecond, burst, maxBuckets)
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

// addressKey is the key of an address.
func addressKey(client netip.Addr) bucketKey {
	var key bucketKey
	if network := ratelimit.Network(client); network.IsValid() {
		ip := network.Addr().As16()
		copy(key[:], ip[:])
	}
	return key
}
