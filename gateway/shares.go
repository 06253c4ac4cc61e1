package gateway

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"

	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/request"
)

// shares bounds the requests and the event streams that each caller has running, so that no caller takes all places.
// A caller is the owner of a credential, as told by a service, however many tokens the owner has. A credential that
// no service has accepted yet counts for the client's address; otherwise a client could make up as many callers as
// there are places.
type shares struct {
	requests, streams int // limits for one caller

	mu      sync.Mutex
	running map[share]int // only those above 0, so there are never more entries than requests and streams

	seed  maphash.Seed
	known *cache.Cache[uint64, bucketKey] // hash of the Authorization header → caller
}

// share is a caller's part of the places for requests, or of those for event streams.
type share struct {
	caller bucketKey
	stream bool
}

func newShares(requests, streams int) *shares {
	return &shares{
		requests: requests, streams: streams, running: map[share]int{}, seed: maphash.MakeSeed(),
		known: cache.New[uint64, bucketKey](maxBuckets),
	}
}

// take finds the caller of a request and reports whether the caller may have one more. If so, leave must be called
// with the returned share.
func (s *shares) take(w *response, r *http.Request, client netip.Addr, stream bool) (of share, ok bool) {
	of = share{addressKey(client), stream}
	if credential := r.Header.Get("Authorization"); credential != "" {
		w.credential = maphash.String(s.seed, credential)
		w.learn = s
		if caller, known := s.known.Get(w.credential); known {
			of.caller, w.learn = caller, nil
		}
	}
	limit := s.requests
	if stream {
		limit = s.streams
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[of] >= limit {
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

// learned takes the caller that a service names out of the response headers.
func (w *response) learned(h http.Header) {
	caller, ok := h[request.CallerHeader]
	if !ok {
		return
	}
	delete(h, request.CallerHeader)
	if w.learn != nil && len(caller) == 1 && caller[0] != "" {
		key := bucketKey{len(bucketKey{}) - 1: 1} // see isCaller
		copy(key[:len(key)-1], caller[0])
		w.learn.known.Set(w.credential, key)
	}
}
