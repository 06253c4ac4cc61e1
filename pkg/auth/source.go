package auth

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
)

// KeySource is the origin of an issuer's public keys: StaticKeys, KeyFile, KeyURL, or the *Signer of the same process.
type KeySource interface {
	open(clock.Clock, *slog.Logger) (keys, error)
}

// keys is an opened KeySource.
type keys interface {
	// current returns the newest known set, nil if there is none. It is called for each request, so it must be cheap.
	current() *keySet
	// find looks a key up, and asks the source again if needed. It returns the set that contains the key. A nil key is
	// unknown. The error is apperr.Unavailable if the source does not answer and might have the key.
	find(ctx context.Context, id, algorithm string) (*publicKey, *keySet, error)
}

// PublicKeys are the keys of one source, for signed texts that are not access tokens, such as a client's assertions.
type PublicKeys struct{ keys keys }

// OpenKeys opens a source.
func OpenKeys(source KeySource, clk clock.Clock, log *slog.Logger) (*PublicKeys, error) {
	opened, err := source.open(clk, log)
	if err != nil {
		return nil, err
	}
	return &PublicKeys{opened}, nil
}

// Find returns the key with the id for the algorithm, one of EdDSA, RS256, ES256. It returns nil if there is none, or
// if there are several and no id. The error is apperr.Unavailable if the source does not answer and might have the key.
func (p *PublicKeys) Find(ctx context.Context, id, algorithm string) (crypto.PublicKey, error) {
	found, _, err := p.keys.find(ctx, id, algorithm)
	if err != nil || found == nil {
		return nil, err
	}
	return found.key, nil
}

// StaticKeys is a JWK set (RFC 7517) that never changes.
type StaticKeys []byte

func (s StaticKeys) open(clock.Clock, *slog.Logger) (keys, error) {
	set, err := parseKeySet(s)
	return fixedKeys{set}, err
}

type fixedKeys struct{ set *keySet }

func (f fixedKeys) current() *keySet { return f.set }

func (f fixedKeys) find(_ context.Context, id, algorithm string) (*publicKey, *keySet, error) {
	key, _ := f.set.find(id, algorithm)
	return key, f.set, nil
}

// KeyFile is the path of a file with a JWK set. A change takes effect within a few seconds. If the file is missing or
// broken, the last valid keys stay in use. It must be readable at the start.
type KeyFile string

func (path KeyFile) open(clk clock.Clock, log *slog.Logger) (keys, error) {
	l := &loadedKeys{
		fetch: func(context.Context) ([]byte, time.Duration, error) { return readKeyFile(string(path)) },
		clock: clk,
		log:   log.With("key_file", string(path)),
		pause: time.Second,
	}
	l.load()
	if l.current() == nil {
		return nil, l.failure
	}
	return l, nil
}

func readKeyFile(path string) ([]byte, time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	raw, err := readKeys(f)
	return raw, 5 * time.Second, err
}

// KeyURL is the address of a JWK set. The set is fetched when it is first needed; again when Cache-Control: max-age has
// passed (at least 1 minute, at most 1 hour, 5 minutes if not given); and when a token names a key that is not in it,
// then at most every 10 seconds. While the address does not answer, the last valid keys stay in use.
type KeyURL struct {
	URL    string
	Client *http.Client
}

func (u KeyURL) open(clk clock.Clock, log *slog.Logger) (keys, error) {
	if u.URL == "" || u.Client == nil {
		return nil, fmt.Errorf("a key URL needs an address and a client")
	}
	return &loadedKeys{fetch: u.fetch, clock: clk, log: log.With("key_url", u.URL), pause: 10 * time.Second}, nil
}

func (u KeyURL) fetch(ctx context.Context) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := u.Client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("the key source answers %d", resp.StatusCode)
	}
	raw, err := readKeys(resp.Body)
	return raw, maxAge(resp.Header), err
}

const maxKeySetSize = 256 << 10

func readKeys(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxKeySetSize+1))
	if err == nil && len(raw) > maxKeySetSize {
		return nil, fmt.Errorf("a JWK set over %d bytes", maxKeySetSize)
	}
	return raw, err
}

func maxAge(h http.Header) time.Duration {
	age := 5 * time.Minute
	for directive := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if seconds, err := strconv.ParseUint(value, 10, 31); err == nil && strings.EqualFold(name, "max-age") {
			age = time.Duration(seconds) * time.Second
		}
	}
	return min(max(age, time.Minute), time.Hour)
}

const (
	fetchTimeout = 5 * time.Second
	retryAfter   = time.Second // after a failed fetch, if no keys are known
)

// loadedKeys holds the keys of a source that can change. However many requests wait, one fetch runs at a time, in its
// own goroutine and for at most fetchTimeout, so that a caller who gives up does not affect the others.
type loadedKeys struct {
	fetch func(context.Context) (raw []byte, fresh time.Duration, err error)
	clock clock.Clock
	log   *slog.Logger
	pause time.Duration // minimum time between fetches, however many unknown keys are requested

	set atomic.Pointer[keySet]

	mu      sync.Mutex
	loading chan struct{} // closed when the running fetch ends; nil if none runs
	stale   clock.Time    // when the set should be fetched again
	next    clock.Time    // when the next fetch may start
	failure error         // error of the last fetch
}

func (l *loadedKeys) current() *keySet { return l.set.Load() }

func (l *loadedKeys) find(ctx context.Context, id, algorithm string) (*publicKey, *keySet, error) {
	if set := l.current(); set != nil {
		if key, ok := set.find(id, algorithm); ok {
			l.refresh() // not waited for: a slow source must not slow down requests whose key is known
			return key, set, nil
		}
	}
	if done := l.reload(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return nil, nil, apperr.Away("the token issuer's key source", context.Cause(ctx))
		}
	}
	if set := l.current(); set != nil {
		if key, ok := set.find(id, algorithm); ok {
			return key, set, nil
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil { // the key may be a new one that the source has
		return nil, nil, apperr.Away("the token issuer's key source", l.failure)
	}
	return nil, nil, nil
}

// refresh starts a fetch if the set is due for one.
func (l *loadedKeys) refresh() {
	l.mu.Lock()
	stale := !l.clock.Now().Before(l.stale)
	l.mu.Unlock()
	if stale {
		l.reload()
	}
}

// reload joins the running fetch or starts one. It returns the channel that is closed when the fetch ends; nil if it is
// too early for one.
func (l *loadedKeys) reload() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loading != nil {
		return l.loading
	}
	if l.clock.Now().Before(l.next) {
		return nil
	}
	done := make(chan struct{})
	l.loading = done
	go func() {
		defer close(done)
		l.load()
	}()
	return done
}

func (l *loadedKeys) load() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	raw, fresh, err := l.fetch(ctx)
	old := l.current()
	set := old
	if err == nil && (old == nil || !bytes.Equal(raw, old.raw)) {
		set, err = parseKeySet(raw)
	}
	now := l.clock.Now()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.loading, l.failure = nil, err
	if err != nil {
		l.next = now.Add(l.pause)
		if old == nil {
			l.next = now.Add(retryAfter)
		}
		l.log.Warn("token keys could not be fetched", "error", err, "kept", old != nil)
		return
	}
	l.next, l.stale = now.Add(l.pause), now.Add(fresh)
	if set != old {
		l.set.Store(set)
		l.log.Info("token keys fetched", "keys", len(set.keys))
	}
}
