package rest

import (
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Budget bounds the bytes that answers hold in memory while their clients read them. Slow readers of large answers get
// three quarters of it and those of one tenant a quarter, so that neither keeps small answers or other tenants from
// being served.
type Budget struct {
	limit int64

	mu      sync.Mutex
	held    int64
	most    int64            // the most that was ever held
	refused int64            // how many answers did not fit
	of      map[string]int64 // by tenant
}

const (
	maxHeld    = 128 << 20 // of a process
	smallHold  = answerPiece
	notCounted = 4 << 10 // net/http has a buffer of this size for each connection anyway
	fullWait   = 5 * time.Second
)

// held is the budget of the process: of all its services together.
var held = NewBudget(maxHeld)

// NewBudget makes a budget of a number of bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit, of: map[string]int64{}} }

// hold is what one answer holds.
type hold struct {
	budget *Budget
	tenant string
	n      int64
}

func (h hold) release() {
	if h.n == 0 {
		return
	}
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= h.n
	if b.of[h.tenant] -= h.n; b.of[h.tenant] == 0 {
		delete(b.of, h.tenant)
	}
}

// share is the part of a budget that is for one tenant.
type share struct {
	budget *Budget
	tenant string
}

func (s share) take(n int, must bool) (hold, error) { return s.budget.take(s.tenant, n, must) }

// take holds n bytes for an answer to a tenant. The error is apperr.Unavailable. must is for the answer to a change
// that was made: it is never refused.
func (b *Budget) take(tenant string, n int, must bool) (hold, error) {
	if n <= notCounted {
		return hold{}, nil
	}
	size := int64(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !must && !b.fits(tenant, size) {
		b.refused++
		return hold{}, full()
	}
	b.held += size
	b.most = max(b.most, b.held)
	b.of[tenant] += size
	return hold{b, tenant, size}, nil
}

func (b *Budget) fits(tenant string, n int64) bool {
	total, share := b.limit-b.limit/4, b.limit/4
	if n <= smallHold {
		total, share = b.limit, b.limit/2
	}
	// A share that is smaller than one answer must not keep a tenant from it forever.
	return b.held+n <= total && (b.of[tenant] == 0 || b.of[tenant]+n <= share)
}

// room returns an error if not even a small answer fits. It is for changes, which must not be made then.
func (b *Budget) room(tenant string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fits(tenant, smallHold) {
		return nil
	}
	b.refused++
	return full()
}

// Refused returns how many answers did not fit.
func (b *Budget) Refused() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused
}

// Most returns the most bytes that were ever held at once.
func (b *Budget) Most() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// Held returns the bytes that are held now.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

func full() error {
	err := apperr.New(apperr.Unavailable, "too many answers wait for slow clients")
	err.RetryAfter = fullWait
	return err
}
