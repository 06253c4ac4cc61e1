package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Config configures a Pool.
type Config struct {
	Workers int           // processes at most; each runs one call at a time
	Idle    time.Duration // how long a worker stays without calls
	Hosts   []string      // unless it is empty, fetch reaches only these of the hosts that functions allow
	Client  *http.Client  // sends the requests of fetch; it must not follow redirects and must limit responses
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// maxCalls is how many calls run and wait at a time.
const maxCalls = 512

// Pool runs calls in worker processes, which it starts when there are calls. A worker runs the calls of one tenant; if
// another needs its place, it is replaced. The calls of one tenant use at most half of the workers. A Pool is safe for
// concurrent use.
type Pool struct {
	Config
	gate  *fair.Semaphore
	calls *prometheus.CounterVec
	count prometheus.Gauge

	mu     sync.Mutex
	all    map[*process]bool
	idle   []*process // in the order of their last use
	taken  int        // workers that run a call or are being started
	closed bool
	told   sync.Once // what the kernel lacks to confine workers
}

// NewPool makes a pool without workers.
func NewPool(c Config) *Pool {
	gate := fair.NewSemaphore("functions are running", int64(c.Workers), maxCalls)
	gate.Share(max(1, int64(c.Workers)/2))
	return &Pool{
		Config: c, gate: gate, all: map[*process]bool{},
		calls: telemetry.Counters(c.Metrics, prometheus.CounterOpts{
			Name: "idp_function_calls_total", Help: "Calls of functions by their outcome.",
		}, []string{"outcome"}, telemetry.Combinations([]string{
			string(Succeeded), string(Failed), string(TimedOut), string(OutOfMemory), string(Crashed),
		})...),
		count: telemetry.Register(c.Metrics, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "idp_function_workers", Help: "Processes that run functions.",
		})),
	}
}

// Run runs a call for the context's tenant. The result says how the code ended. The error is apperr.Unavailable if the
// code did not begin, apperr.OutcomeUnknown if its worker was killed or ctx ended while it ran, or the error of
// Code.Load.
func (p *Pool) Run(ctx context.Context, c *Call) (Result, error) {
	r, err := p.do(ctx, c, &workerRequest{
		Runtime: c.Runtime, Entry: c.Entry, Hash: c.Hash, Memory: c.Memory, Env: c.Env, Input: c.Input,
	})
	if err == nil {
		p.calls.WithLabelValues(string(r.Outcome)).Inc()
	}
	return r, err
}

// Check compiles code, in memory bytes if it is a module, and returns what is wrong with it; nil if nothing is. The
// error is as in Run.
func (p *Pool) Check(ctx context.Context, code Code, memory int64) (*Fault, error) {
	r, err := p.do(ctx, &Call{Code: code}, &workerRequest{
		Runtime: code.Runtime, Entry: code.Entry, Hash: code.Hash, Memory: memory, Check: true,
	})
	return r.Fault, err
}

// do sends a request to a worker, and to another one if the first was killed before the code began.
func (p *Pool) do(ctx context.Context, c *Call, r *workerRequest) (Result, error) {
	message, err := json.Marshal(r)
	if err != nil {
		return Result{}, err
	}
	leave, err := p.gate.Enter(ctx, request.Tenant(ctx), 1)
	if err != nil {
		return Result{}, apperr.Away("the function runtime", err)
	}
	defer leave()
	result, err := p.attempt(ctx, c, message)
	if errors.Is(err, errNotBegun) { // such as when an idle worker was killed
		result, err = p.attempt(ctx, c, message)
	}
	if errors.Is(err, errNotBegun) {
		err = apperr.Away("the function runtime", err)
	}
	return result, err
}

func (p *Pool) attempt(ctx context.Context, c *Call, message []byte) (Result, error) {
	w, err := p.take(request.Tenant(ctx), c.Hash)
	if err != nil {
		return Result{}, apperr.Away("the function runtime", err)
	}
	result, err := w.call(ctx, p, c, message)
	p.release(w)
	return result, err
}

var errClosed = errors.New("sandbox: the pool is closed")

// take returns an idle worker of the tenant, preferably one that keeps the code, or starts one. If there are as many
// workers as there may be, the one that has been idle for longest makes room.
func (p *Pool) take(tenant, hash string) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.taken++
	if i := p.idleOf(tenant, hash); i >= 0 {
		w := p.unidle(i)
		p.mu.Unlock()
		return w, nil
	}
	for len(p.idle) > 0 && len(p.idle)+p.taken > p.Workers {
		p.unidle(0).end()
	}
	p.mu.Unlock()
	w, err := startProcess(tenant, p.forget)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		w.end()
		<-w.exited // Close does not know it
		err = errClosed
	}
	if err != nil {
		p.taken--
		return nil, err
	}
	if len(w.lacks) > 0 {
		p.told.Do(func() {
			p.Log.Warn("the processes that run functions are confined less than they could be: this system lacks "+
				"means for it", "lacks", w.lacks)
		})
	}
	select {
	case <-w.exited: // forget has been called or waits for the lock; the call finds out
	default:
		p.all[w] = true
		p.count.Set(float64(len(p.all)))
	}
	return w, nil
}

// idleOf finds the tenant's idle worker that was used last, but one that keeps the code if there is one; -1 if there is
// none.
func (p *Pool) idleOf(tenant, hash string) int {
	found := -1
	for i, w := range p.idle {
		if w.tenant == tenant && (found < 0 || w.known[hash] || !p.idle[found].known[hash]) {
			found = i
		}
	}
	return found
}

// unidle removes an idle worker from those.
func (p *Pool) unidle(i int) *process {
	w := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	w.expiry.Stop()
	return w
}

// release keeps a worker for the next call, unless it must not be used again.
func (p *Pool) release(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if w.spent || p.closed || !p.all[w] {
		w.end()
		return
	}
	p.idle = append(p.idle, w)
	w.expiry = time.AfterFunc(p.Idle, func() { p.expire(w) })
}

// expire ends a worker that had no call for Idle.
func (p *Pool) expire(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 { // otherwise a call has just taken it
		p.unidle(i).end()
	}
}

// forget is called when a worker has ended.
func (p *Pool) forget(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.unidle(i).closePipes()
	}
	delete(p.all, w)
	p.count.Set(float64(len(p.all)))
}

// Close ends all workers and the calls that run in them. It returns when the processes have ended.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	all := make([]*process, 0, len(p.all))
	for w := range p.all {
		w.kill()
		all = append(all, w)
	}
	for _, w := range p.idle {
		w.expiry.Stop()
		w.closePipes()
	}
	p.idle = nil
	p.mu.Unlock()
	for _, w := range all {
		<-w.exited
	}
}
