package outbound

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

// A host gets at most perHost requests at a time, perTenant of them from one tenant: what is slow for one tenant delays
// no other's requests to the same host.
const (
	perHost   = 256
	perTenant = 16
)

// hosts has a gate for each host that requests are on their way to.
type hosts struct {
	mu    sync.Mutex
	gates map[string]*host
}

type host struct {
	gate  *fair.Semaphore
	users int
}

func newHosts() *hosts { return &hosts{gates: map[string]*host{}} }

// ErrBusy is in the chain of the error of a request that was not sent, because others of the tenant to the same host
// took all of its time.
var ErrBusy = errors.New("outbound: the host has too many requests in progress")

// enter waits for the turn of the tenant in the request's context. leave may be called more than once.
func (h *hosts) enter(r *http.Request) (leave func(), err error) {
	name := r.URL.Scheme + "://" + r.URL.Host
	h.mu.Lock()
	to := h.gates[name]
	if to == nil {
		to = &host{gate: fair.NewSemaphore("requests to the host", perHost, fair.Any)}
		to.gate.Share(perTenant)
		h.gates[name] = to
	}
	to.users++
	h.mu.Unlock()
	exit, err := to.gate.Enter(r.Context(), request.Tenant(r.Context()), 1)
	if err != nil {
		h.leave(name, to)
		return nil, fmt.Errorf("%w: %w", ErrBusy, context.Cause(r.Context()))
	}
	return sync.OnceFunc(func() { exit(); h.leave(name, to) }), nil
}

func (h *hosts) leave(name string, to *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to.users--; to.users == 0 {
		delete(h.gates, name)
	}
}
