package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

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

	lease      = 30 * time.Second
	settleTime = 8 * time.Second // to store an outcome

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
	// InProgress is how many attempts of this replica there may be with those that have left their place. Optional:
	// otherwise Places, and none can.
	InProgress fair.Limits
	Together   int           // optional: so many items of a tenant are claimed and stored at once; otherwise 1
	Starts     *rate.Limiter // optional: how many attempts may start, and how fast
	// Turn names what takes turns within a tenant, given the id of an item. Optional: otherwise the items do.
	Turn func(id string) string

	Time     time.Duration            // of an attempt: then its context ends
	Deadline func(item *T) clock.Time // optional: takes the place of Time, given an item that is claimed
	Grace    time.Duration            // optional: how long attempts may go on when the process ends

	Attempts int64                             // after so many that have failed the item is given up
	Pause    func(attempt int64) time.Duration // after an attempt that has failed
	States   *States[T]                        // optional: takes the place of Attempts and Pause

	// Do makes an attempt, at the item's tenant. A panic is a failure like any other.
	Do func(ctx context.Context, item *T) Outcome
	// Lost takes the place of Do for an item that has no attempt left, and whose last one has not ended: its replica
	// died, or could not store the outcome. Optional: otherwise the item is given up.
	Lost func(ctx context.Context, item *T) Outcome
	// Ended is called after each attempt, with the error of storing its outcome, such as ErrOver. Optional.
	Ended func(item *T, stored error)
}

// States are for items that have states of their own, such as runs that clients see and can cancel: the service, and
// not the queue, says what becomes of an item. Attempt and Next are still the queue's while an attempt goes on. All is
// required.
type States[T any] struct {
	// Begin is part of the transaction of a claim: it returns those of the due items that get an attempt, and changes
	// what belongs to them. The others must not be due any more. An item whose lease has ended is due like any other.
	Begin func(ctx context.Context, tx *docstore.Tx, due []*T) ([]*T, error)
	// Running says whether an item is still in the state of an attempt that goes on.
	Running func(item *T) bool
	// End is part of the transaction of an outcome: it changes or deletes the item, given it as stored and as Do has
	// left it. The error is ErrOver if nothing is to be stored. It is called for an attempt that was cut short, too.
	End func(ctx context.Context, tx *docstore.Tx, item, attempted *T) error
}

// ErrOver says that an attempt is not the current one, so that its outcome is not stored: the item was deleted, has
// been claimed by another replica since, or is in another of its States.
var ErrOver = errors.New("the attempt is over")

// check panics if something is missing, and sets what is optional.
func (c *Config[T]) check() {
	missing := map[string]bool{
		"Items": c.Items == nil, "Store": c.Store == nil, "Log": c.Log == nil, "Metrics": c.Metrics == nil,
		"Do": c.Do == nil, "Places": c.Places.Most < 1 || c.Places.OfTenant < 1,
		"Time": c.Time <= 0 && c.Deadline == nil,
	}
	if c.States == nil {
		missing["Attempts"], missing["Pause"] = c.Attempts < 1, c.Pause == nil
	} else {
		missing["States"] = c.States.Begin == nil || c.States.Running == nil || c.States.End == nil
	}
	for _, member := range slices.Sorted(maps.Keys(missing)) {
		if missing[member] {
			panic("work: the configuration of " + c.Name + " has no complete " + member)
		}
	}
	c.InProgress = cmp.Or(c.InProgress, c.Places)
	c.Together = cmp.Or(c.Together, 1)
}

// Queue carries out items, for one replica. That of items of the type report is a Queue[report, *report].
type Queue[T any, I stored[T]] struct {
	Config[T]
	due      fair.RoundRobin[T]
	lease    time.Duration // how long a claim lasts that is not renewed, such as that of a replica that has died
	attempts *fair.InFlight
	reports  reports[T]
	outcomes *prometheus.CounterVec
	wake     chan struct{}
	working  sync.WaitGroup

	beginning sync.Mutex
	rounds    map[turn]int // when each turn last came
	round     int

	mu     sync.Mutex
	paused map[docstore.Ref]pause // items that could not be claimed
	told   clock.Time             // when the log was last told of one
	rest   clock.Time             // until then nothing is begun, since too many could not be claimed
}

// turn is what takes turns within a tenant.
type turn struct{ tenant, name string }

type pause struct {
	until clock.Time
	took  time.Duration
}

// NewQueue makes a queue. Run works. It panics if a member of the configuration is missing that is required.
func NewQueue[T any, I stored[T]](c Config[T]) *Queue[T, I] {
	c.check()
	q := &Queue[T, I]{
		Config: c, lease: lease, attempts: fair.NewInFlight(c.Places, c.InProgress), wake: make(chan struct{}, 1),
		rounds: map[turn]int{}, paused: map[docstore.Ref]pause{},
		reports: reports[T]{waiting: map[batchKey]*batch[T]{}},
		outcomes: telemetry.Register(c.Metrics, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idp_work_attempts_total", Help: "Attempts of work that waits in the store, by what became of them.",
		}, []string{"work", "outcome"})),
	}
	q.due = fair.RoundRobin[T]{Of: c.Items, By: byNext, Group: c.Together, Others: others, InFlight: q.attempts}
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

// Once begins attempts of due items, as many as there are places, and waits for them and for those that Run has begun.
// It returns how many it has waited for: 0 if none was due or in progress. The error is why it could not list them. It
// is for tests.
func (q *Queue[T, I]) Once(ctx context.Context) (n int, err error) {
	defer q.working.Wait()
	q.beginning.Lock()
	defer q.beginning.Unlock()
	inProgress := q.attempts.Count() // a list leaves them out, and they may be due again when they end
	n, err = q.beginLocked(ctx, ctx)
	return n + inProgress, err
}

// begin starts as many due items as there are places, and returns their number.
func (q *Queue[T, I]) begin(ctx, working context.Context) (n int, err error) {
	q.beginning.Lock()
	defer q.beginning.Unlock()
	return q.beginLocked(ctx, working)
}

func (q *Queue[T, I]) beginLocked(ctx, working context.Context) (n int, err error) {
	if q.attempts.Full() || q.rests() { // an attempt that ends makes room, and wakes Run
		return 0, nil
	}
	groups, err := q.due.List(ctx, q.Store, listed+q.pausedItems())
	if err != nil {
		return 0, err
	}
	for group := range q.together(q.inTurn(slices.Concat(groups...))) {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		var places []place
		for _, ref := range group {
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
			places = append(places, place{ref, of})
		}
		n += len(places)
		if q.Starts != nil {
			for range places {
				_ = q.Starts.Wait(ctx) // an error: the process ends
			}
		}
		if len(places) > 0 {
			q.working.Go(func() { q.carryOut(request.System(working, places[0].ref.Tenant), places) })
		}
	}
	return n, nil
}

// place is the place of an item, with the context of its attempt.
type place struct {
	ref docstore.Ref
	ctx context.Context
}

// together cuts a list into items of one tenant that are claimed at once.
func (q *Queue[T, I]) together(refs []docstore.Ref) iter.Seq[[]docstore.Ref] {
	return func(yield func([]docstore.Ref) bool) {
		for len(refs) > 0 {
			n := 1
			for n < min(len(refs), q.Together) && refs[n].Tenant == refs[0].Tenant {
				n++
			}
			if !yield(refs[:n]) {
				return
			}
			refs = refs[n:]
		}
	}
}

func (q *Queue[T, I]) pausedItems() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.paused)
}

func (q *Queue[T, I]) rests() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rest.After(q.Store.Now())
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

// carryOut claims items of a tenant, and makes an attempt of each that was still due.
func (q *Queue[T, I]) carryOut(ctx context.Context, places []place) {
	claimed := q.claimEach(ctx, places)
	for _, p := range places {
		i := slices.IndexFunc(claimed, func(item *T) bool { return I(item).queued().ID == p.ref.ID })
		if i < 0 {
			q.attempts.End(p.ref)
			continue
		}
		q.working.Go(func() {
			defer q.attempts.End(p.ref)
			q.run(p.ctx, claimed[i])
		})
	}
}

// claimEach claims items together or, if that fails, each alone, so that one that cannot be claimed delays no others.
func (q *Queue[T, I]) claimEach(ctx context.Context, places []place) (claimed []*T) {
	ids := make([]string, len(places))
	for i, p := range places {
		ids[i] = p.ref.ID
	}
	claimed, err := q.claim(ctx, ids...)
	if err != nil && len(places) > 1 {
		claimed = nil
		for i := range places {
			claimed = append(claimed, q.claimEach(ctx, places[i:i+1])...)
		}
		return claimed
	}
	if err != nil && ctx.Err() == nil && apperr.KindOf(err) != apperr.VersionMismatch {
		q.postpone(ctx, places[0].ref, err)
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range places {
		delete(q.paused, p.ref)
	}
	return claimed
}

// run makes an attempt of an item that is claimed, and stores what becomes of it.
func (q *Queue[T, I]) run(ctx context.Context, item I) {
	at := item.queued()
	r := &report[T]{item: item, attempt: at.Attempt}
	r.err = ErrOver
	if q.Store.Now().Before(at.Next) { // otherwise the process has stood still since the claim
		r.outcome = q.attempt(ctx, item)
		if o := &r.outcome; ctx.Err() != nil && (o.kind == retry || o.kind == notStarted) && q.States == nil {
			*o = Outcome{kind: notStarted, key: o.key, store: o.store} // it was cut short
		}
		if r.outcome.kind == retry && r.attempt >= q.Attempts && q.States == nil {
			r.outcome.kind = giveUp
		}
		q.tell(ctx, r)
		q.store(ctx, r)
	}
	switch {
	case r.err == nil:
		q.outcomes.WithLabelValues(q.Name, r.outcome.kind.String()).Inc()
	case errors.Is(r.err, ErrOver):
		q.outcomes.WithLabelValues(q.Name, "over").Inc()
	default:
		q.Log.WarnContext(ctx, "the outcome of an attempt cannot be stored, so it counts as one that has not ended",
			"work", q.Name, "id", at.ID, "error", r.err)
	}
	if q.Ended != nil {
		q.Ended(item, r.err)
	}
}

// tell has the log tell of an attempt that has failed.
func (q *Queue[T, I]) tell(ctx context.Context, r *report[T]) {
	if r.outcome.err == nil || errors.Is(r.outcome.err, errPanic) { // of which the log has been told
		return
	}
	id := I(r.item).queued().ID
	if r.outcome.kind == giveUp {
		q.Log.WarnContext(ctx, "an item is given up", "work", q.Name, "id", id, "attempt", r.attempt, "error",
			r.outcome.err)
		return
	}
	q.Log.WarnContext(ctx, "an attempt has failed", "work", q.Name, "id", id, "attempt", r.attempt, "error",
		r.outcome.err)
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
		q.rest = now.Add(firstPause)
		return
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

// claim begins an attempt of each of a tenant's items that is due, and holds the lease on it.
func (q *Queue[T, I]) claim(ctx context.Context, ids ...string) ([]*T, error) {
	return docstore.Write(ctx, q.Store, func(tx *docstore.Tx) ([]*T, error) {
		items, err := q.Items.LoadMany(ctx, tx, ids)
		if err != nil {
			return nil, err
		}
		items = slices.DeleteFunc(items, func(item *T) bool {
			next := I(item).queued().Next
			return next.IsZero() || next.After(tx.Now)
		})
		if q.States != nil && len(items) > 0 {
			if items, err = q.States.Begin(ctx, tx, items); err != nil {
				return nil, err
			}
		}
		for _, item := range items {
			at := I(item).queued()
			at.Attempt++
			at.Next = tx.Now.Add(q.lease)
			if _, err := q.Items.Touch(ctx, tx, item); err != nil {
				return nil, err
			}
		}
		return items, nil
	})
}

var (
	errPanic = errors.New("an internal fault")
	errLost  = errors.New("the last attempt has not ended, and none is left")
)

// attempt makes an attempt, and renews the lease meanwhile.
func (q *Queue[T, I]) attempt(ctx context.Context, item I) (outcome Outcome) {
	id, attempt, ends := item.queued().ID, item.queued().Attempt, item.queued().Next
	last := q.Time
	if q.Deadline != nil {
		last = q.Deadline(item).Sub(q.Store.Now())
	}
	timed, cancel := context.WithTimeout(ctx, last)
	var keeping sync.WaitGroup
	defer keeping.Wait()
	defer cancel()
	keeping.Go(func() {
		q.keep(timed, id, attempt, ends)
		cancel()
	})
	defer func() {
		if p := recover(); p != nil {
			q.Log.ErrorContext(ctx, "an attempt panicked", "work", q.Name, "id", id, "fault", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			outcome = Retry(errPanic)
		}
	}()
	switch {
	case attempt <= q.Attempts || q.States != nil:
		return q.Do(timed, item)
	case q.Lost != nil:
		return q.Lost(timed, item)
	default:
		return GiveUp(errLost)
	}
}

// keep renews the lease of an attempt. It returns when ctx ends, when the lease is another's, or when it has ended
// because the store does not answer.
func (q *Queue[T, I]) keep(ctx context.Context, id string, attempt int64, ends clock.Time) {
	for failed := false; ; {
		left := ends.Sub(q.Store.Now())
		if left <= 0 {
			return
		}
		pause := left - 2*q.lease/3
		if failed {
			pause = min(left, q.lease/10)
		}
		next := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
		timed, cancel := context.WithTimeout(ctx, max(0, ends.Sub(q.Store.Now())))
		renewed, err := q.renew(timed, id, attempt)
		cancel()
		if errors.Is(err, ErrOver) {
			return
		}
		if failed = err != nil; !failed {
			ends = renewed
		}
	}
}

// renew extends the lease of an attempt and returns when it ends. The error is ErrOver if this replica has lost it.
func (q *Queue[T, I]) renew(ctx context.Context, id string, attempt int64) (clock.Time, error) {
	return docstore.Write(ctx, q.Store, func(tx *docstore.Tx) (clock.Time, error) {
		item, err := q.Items.Load(ctx, tx, id)
		if apperr.IsNotFound(err) || err == nil && !q.holds(item, attempt) {
			return clock.Time{}, ErrOver
		}
		if err != nil {
			return clock.Time{}, err
		}
		at := I(item).queued()
		at.Next = tx.Now.Add(q.lease)
		_, err = q.Items.Touch(ctx, tx, item)
		return at.Next, err
	})
}

// holds reports whether the attempt of a stored item is the current one. A claim of another replica would have raised
// its number; one that was undone since has left the item to nobody.
func (q *Queue[T, I]) holds(item I, attempt int64) bool {
	return item.queued().Attempt == attempt && (q.States == nil || q.States.Running(item))
}

// LeavePlace takes the place from an attempt that only waits, such as for an answer. It goes on beside those that have
// one, up to InProgress.
func (q *Queue[T, I]) LeavePlace(ref docstore.Ref) { q.attempts.Wait(ref) }

// BreakOff ends the context of an attempt, if this replica makes one of the item.
func (q *Queue[T, I]) BreakOff(ref docstore.Ref) { q.attempts.BreakOff(ref) }

// Count counts the attempts that this replica makes now.
func (q *Queue[T, I]) Count() int { return q.attempts.Count() }
