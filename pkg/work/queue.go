package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

const (
	listEvery = 500 * time.Millisecond
	listAgain = 2 * time.Second // after a failure
	listed    = 200             // due items at a time
	others    = 16              // tenants that are looked at beside those whose items have been due for longest

	settleTime = 8 * time.Second            // to store an outcome
	spare      = settleTime + 2*time.Second // how much longer a lease lasts than an attempt

	// An item that cannot be claimed waits before the next try, so that it delays no others.
	firstPause, lastPause = time.Second, time.Minute
	maxPaused             = 1000 // items
)

// Config is how the items of a collection are carried out. All is required, unless it says otherwise.
type Config[T any] struct {
	Name    string // of the work, such as "send logout tokens"
	Items   *docstore.Collection[T]
	Store   *docstore.Store
	Log     *slog.Logger
	Metrics prometheus.Registerer

	Places fair.Limits // attempts of this replica at the same time
	// Turn names what takes turns within a tenant, given the id of an item. Optional: otherwise the items do.
	Turn func(id string) string

	Time     time.Duration                     // of an attempt: then its context ends
	Grace    time.Duration                     // optional: how long attempts may go on when the process ends
	Attempts int64                             // after so many that have failed the item is given up
	Pause    func(attempt int64) time.Duration // after an attempt that has failed

	// Do makes an attempt, at the item's tenant. A panic is a failure like any other.
	Do func(ctx context.Context, item *T) Outcome
	// Lost takes the place of Do for an item that has no attempt left, and whose last one has not ended: its replica
	// died, or could not store the outcome. Optional: otherwise the item is given up.
	Lost func(ctx context.Context, item *T) Outcome
	// Ended is called after each attempt, once its outcome is stored. Optional.
	Ended func()
}

// check panics if something is missing.
func (c *Config[T]) check() {
	if c.Items == nil || c.Store == nil || c.Log == nil || c.Metrics == nil || c.Do == nil || c.Pause == nil ||
		c.Places.Most < 1 || c.Places.OfTenant < 1 || c.Time <= 0 || c.Attempts < 1 {
		panic("work: the configuration of " + c.Name + " is not complete")
	}
}

// Queue carries out items, for one replica.
type Queue[T any, I stored[T]] struct {
	Config[T]
	due      fair.RoundRobin[T]
	attempts *fair.InFlight
	outcomes *prometheus.CounterVec
	wake     chan struct{}
	rounds   map[turn]int // when each turn last came
	round    int
	working  sync.WaitGroup

	mu     sync.Mutex
	paused map[docstore.Ref]pause // items that could not be claimed
	told   clock.Time             // when the log was last told of one
}

// turn is what takes turns within a tenant.
type turn struct{ tenant, name string }

type pause struct {
	until clock.Time
	took  time.Duration
}

// NewQueue makes a queue. Run works. It panics if the configuration is not complete.
func NewQueue[T any, I stored[T]](c Config[T]) *Queue[T, I] {
	c.check()
	q := &Queue[T, I]{
		Config: c, attempts: fair.NewInFlight(c.Places, c.Places), wake: make(chan struct{}, 1),
		rounds: map[turn]int{}, paused: map[docstore.Ref]pause{},
		outcomes: telemetry.Register(c.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idp_work_attempts_total", Help: "Attempts of work that waits in the store, by what became of them.",
		}, []string{"work", "outcome"})),
	}
	q.due = fair.RoundRobin[T]{Of: c.Items, By: byNext, Group: 1, Others: others, InFlight: q.attempts}
	return q
}

// Wake has Run look for due items now, such as after some were stored; otherwise it does every half a second.
func (q *Queue[T, I]) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run carries out due items until ctx and all attempts have ended.
func (q *Queue[T, I]) Run(ctx context.Context) error {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	for failing := false; ctx.Err() == nil; {
		next := listEvery
		_, err := q.begin(ctx, working)
		if err != nil {
			next = listAgain
		}
		if err != nil && ctx.Err() == nil && !failing {
			q.Log.ErrorContext(ctx, "items that are due cannot be listed", "work", q.Name, "error", err)
		}
		failing = err != nil
		list := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-list.C:
		case <-q.wake:
		case <-q.attempts.Ended:
		}
		list.Stop()
	}
	late := time.AfterFunc(q.Grace, cancel)
	q.working.Wait()
	late.Stop()
	return nil
}

// Once carries out those of the items that are due now for which there are places, and returns their number.
func (q *Queue[T, I]) Once(ctx context.Context) (n int, err error) {
	defer q.working.Wait()
	return q.begin(ctx, ctx)
}

// begin starts as many due items as there are places, and returns their number.
func (q *Queue[T, I]) begin(ctx, working context.Context) (n int, err error) {
	if q.attempts.Full() { // one that ends makes room, and wakes Run
		return 0, nil
	}
	groups, err := q.due.List(ctx, q.Store, listed+q.pausedItems())
	if err != nil {
		return 0, err
	}
	for _, ref := range q.inTurn(slices.Concat(groups...)) {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if q.isPaused(ref) {
			continue
		}
		of, cancel := context.WithCancel(request.System(working, ref.Tenant))
		if !q.attempts.Add(ref, cancel) {
			cancel()
			continue
		}
		if q.Turn != nil {
			q.round++
			q.rounds[turn{ref.Tenant, q.Turn(ref.ID)}] = q.round
		}
		n++
		q.working.Go(func() {
			defer q.attempts.End(ref)
			q.carryOut(of, ref)
		})
	}
	return n, nil
}

func (q *Queue[T, I]) pausedItems() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.paused)
}

func (q *Queue[T, I]) isPaused(ref docstore.Ref) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.paused[ref].until.After(q.Store.Now())
}

// inTurn lets what Turn names take turns within a tenant: one that has waited longer for its turn comes first. The
// turns of tenants stay.
func (q *Queue[T, I]) inTurn(refs []docstore.Ref) []docstore.Ref {
	if q.Turn == nil {
		return refs
	}
	waiting := map[string]map[turn][]docstore.Ref{} // by tenant
	rounds := map[turn]int{}
	for _, ref := range refs {
		of := turn{ref.Tenant, q.Turn(ref.ID)}
		if waiting[ref.Tenant] == nil {
			waiting[ref.Tenant] = map[turn][]docstore.Ref{}
		}
		waiting[ref.Tenant][of] = append(waiting[ref.Tenant][of], ref)
		rounds[of] = q.rounds[of]
	}
	q.rounds = rounds
	last := map[turn]int{}
	all := make([]docstore.Ref, len(refs))
	for i, ref := range refs {
		var next turn
		found := false
		lastOf := func(of turn) int { return max(last[of], rounds[of]) }
		for of, left := range waiting[ref.Tenant] {
			if len(left) > 0 && (!found || lastOf(of) < lastOf(next) ||
				lastOf(of) == lastOf(next) && of.name < next.name) {
				next, found = of, true
			}
		}
		left := waiting[ref.Tenant][next]
		all[i], waiting[ref.Tenant][next] = left[0], left[1:]
		last[next] = q.round + 1 + i
	}
	return all
}

// carryOut makes the next attempt of an item, if it is still due, and stores what becomes of it.
func (q *Queue[T, I]) carryOut(ctx context.Context, ref docstore.Ref) {
	item, err := q.claim(ctx, ref.ID)
	if kind := apperr.KindOf(err); err != nil && kind != apperr.NotFound && kind != apperr.VersionMismatch &&
		ctx.Err() == nil {
		q.postpone(ctx, ref, err)
		return
	}
	q.mu.Lock()
	delete(q.paused, ref)
	q.mu.Unlock()
	if err != nil || item == nil {
		return
	}
	outcome := q.attempt(ctx, item)
	if ctx.Err() != nil && (outcome.kind == retry || outcome.kind == notStarted) {
		outcome = Outcome{kind: notStarted, turn: outcome.turn, store: outcome.store} // it was cut short
	}
	if outcome.err != nil {
		q.Log.WarnContext(ctx, "an attempt has failed", "work", q.Name, "id", ref.ID, "attempt", item.queued().Attempt,
			"error", outcome.err)
	}
	if outcome.kind == retry && item.queued().Attempt >= q.Attempts {
		outcome.kind = giveUp
	}
	if err := q.settle(context.WithoutCancel(ctx), item, outcome); err != nil {
		q.Log.WarnContext(ctx, "the outcome of an item cannot be stored, so there may be another attempt", "work",
			q.Name, "id", ref.ID, "error", err)
		return
	}
	q.outcomes.WithLabelValues(q.Name, outcome.kind.String()).Inc()
	if q.Ended != nil {
		q.Ended()
	}
}

// postpone lets an item that could not be claimed wait.
func (q *Queue[T, I]) postpone(ctx context.Context, ref docstore.Ref, err error) {
	q.outcomes.WithLabelValues(q.Name, "not_claimed").Inc()
	now := q.Store.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	p, again := q.paused[ref]
	if !again && len(q.paused) >= maxPaused {
		for of, p := range q.paused { // they are no longer due, or claimed by another replica
			if !p.until.After(now) {
				delete(q.paused, of)
			}
		}
	}
	if !again && len(q.paused) >= maxPaused {
		return // it is tried again at once
	}
	p.took = min(max(2*p.took, firstPause), lastPause)
	p.until = now.Add(p.took)
	q.paused[ref] = p
	if !again && !q.told.Add(firstPause).After(now) {
		q.told = now
		q.Log.ErrorContext(ctx, "an item that is due cannot be claimed", "work", q.Name, "id", ref.ID, "tenant",
			ref.Tenant, "error", err)
	}
}

// claim begins an attempt of an item, and holds the lease on it. The item is nil if it is not due any more.
func (q *Queue[T, I]) claim(ctx context.Context, id string) (I, error) {
	return docstore.Write(ctx, q.Store, func(tx *docstore.Tx) (I, error) {
		item, err := q.Items.Load(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		at := I(item).queued()
		if at.Next.After(tx.Now) {
			return nil, nil
		}
		at.Attempt++
		at.Next = tx.Now.Add(q.Time + spare)
		_, err = q.Items.Replace(ctx, tx, item)
		return item, err
	})
}

var (
	errPanic = errors.New("an internal fault")
	errLost  = errors.New("the last attempt has not ended, and none is left")
)

func (q *Queue[T, I]) attempt(ctx context.Context, item I) (outcome Outcome) {
	ctx, cancel := context.WithTimeout(ctx, q.Time)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			q.Log.ErrorContext(ctx, "an attempt panicked", "work", q.Name, "id", item.queued().ID, "fault",
				fmt.Sprint(p), "stack", string(debug.Stack()))
			outcome = Retry(errPanic)
		}
	}()
	switch {
	case item.queued().Attempt <= q.Attempts:
		return q.Do(ctx, item)
	case q.Lost != nil:
		return q.Lost(ctx, item)
	default:
		return GiveUp(errLost)
	}
}

// settle stores what becomes of an attempt.
func (q *Queue[T, I]) settle(ctx context.Context, item I, o Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if o.turn != "" {
		ctx = docstore.InTurn(ctx, o.turn)
	}
	claimed := item.queued()
	return docstore.Do(ctx, q.Store, func(tx *docstore.Tx) error {
		held, err := q.Items.Load(ctx, tx, claimed.ID)
		if err != nil {
			return apperr.Ignore(err, apperr.NotFound)
		}
		if o.store != nil {
			if err := o.store(ctx, tx); err != nil {
				return err
			}
		}
		at := I(held).queued()
		if at.Version != claimed.Version { // the lease has ended, and another replica has it
			return nil
		}
		switch o.kind {
		case retry:
			at.Next = tx.Now.Add(q.Pause(at.Attempt))
		case notStarted:
			at.Attempt, at.Next = at.Attempt-1, tx.Now.Add(o.after)
		default:
			_, err = q.Items.Delete(ctx, tx, held)
			return err
		}
		_, err = q.Items.Replace(ctx, tx, held)
		return err
	})
}
