package gateway

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/idplatform/idplatform/pkg/request"
)

// shares bounds how many requests, and how many event streams, each caller has running, so that no caller takes all
// places. A caller is who a
// service says that a credential belongs to, however many tokens that one has; a credential that no service has
// accepted yet counts for its client's address, or everybody could make up as many callers as there are places.
type shares struct {
	requests, streams int // how many of each a caller may have

	mu      sync.Mutex
	running map[share]int // only those above 0, so never more than there are requests and streams

	seed  maphash.Seed
	known *otter.Cache[uint64, bucketKey] // hash of the Authorization header → caller
}

// share is what one caller has of the places for requests, or of those for event streams.
type share struct {
	caller bucketKey
	stream bool
}

// callerAge is how long an unused credential's caller is remembered.
const callerAge = 10 * time.Minute

func newShares(requests, streams int) *shares {
	return &shares{
		requests: requests, streams: streams, running: map[share]int{}, seed: maphash.MakeSeed(),
		known: otter.Must(&otter.Options[uint64, bucketKey]{
			MaximumSize: maxBuckets, ExpiryCalculator: otter.ExpiryAccessing[uint64, bucketKey](callerAge),
		}),
	}
}

func (s *shares) close() { s.known.StopAllGoroutines() }

// take finds whose request it is, and reports whether that caller may have one more. If so, leave must be called with
// the share.
func (s *shares) take(w *response, r *http.Request, client netip.Addr, stream bool) (of share, ok bool) {
	of = share{addressKey(client), stream}
	if credential := r.Header.Get("Authorization"); credential != "" {
		w.credential = maphash.String(s.seed, credential)
		w.learn = s
		if caller, known := s.known.GetIfPresent(w.credential); known {
			of.caller, w.learn = caller, nil
		}
	}
	most := s.requests
	if stream {
		most = s.streams
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[of] >= most {
		return of, false
	}
	s.running[of]++
	return of, true
}

func (s *shares) leave(of share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[of]--; s.running[of] == 0 {
		delete(s.running, of)
	}
}

// learned takes what a service says of the caller out of an answer.
func (w *response) learned(h http.Header) {
	caller, ok := h[request.CallerHeader]
	if !ok {
		return
	}
	delete(h, request.CallerHeader)
	if w.learn != nil && len(caller) == 1 && caller[0] != "" {
		key := bucketKey{len(bucketKey{}) - 1: 1} // no address has that
		copy(key[:len(key)-1], caller[0])
		w.learn.known.Set(w.credential, key)
	}
}
