package function

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

const (
	maxAttempts = 5
	firstRetry  = 5 * time.Second  // the pause doubles with each attempt
	laterRetry  = 30 * time.Second // after an attempt that the platform could not begin

	// An attempt ends before its lease: it may take runTime, including the wait for a worker.
	runTime = 50 * time.Second
	lease   = 60 * time.Second

	listEvery = 500 * time.Millisecond
	lookAgain = 2 * time.Second // after a failure, while runs are in progress
	duePage   = 200             // due runs that are listed at a time
)

// Runner works on triggered runs that are due, a limited number at a time.
type Runner struct {
	*Functions
	Slots int // runs at a time; one tenant gets at most half of them

	due     fair.RoundRobin[triggeredRun]
	behind  fair.RoundRobin[progress]
	calls   *fair.InFlight
	rounds  map[string]int // when each function with due runs last got its turn
	round   int
	working sync.WaitGroup
}

// Run is the work of a service.Task. It returns when ctx and all runs have ended. An attempt that is cut short does not
// count, and its run is due at once.
func (r *Runner) Run(ctx context.Context) (int, error) {
	slots := fair.Limits{Most: r.Slots, OfTenant: max(1, r.Slots/2)}
	r.calls = fair.NewInFlight(slots, slots)
	r.due = fair.RoundRobin[triggeredRun]{Of: runs, By: byNext, Group: 1, Others: 16, InFlight: r.calls}
	r.behind = fair.RoundRobin[progress]{Of: progresses, By: byNext, Group: 1, Others: 16}
	r.rounds = map[string]int{}
	defer r.working.Wait()
	for {
		err := r.look(ctx)
		if ctx.Err() != nil || r.calls.Count() == 0 {
			return 0, err
		}
		r.Log.ErrorContext(ctx, "triggered runs that are due cannot be listed", "error", err)
		select { // the runs in progress go on, and others begin
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

// look starts due runs and reads events for functions that are behind, until ctx ends or one of them fails.
func (r *Runner) look(ctx context.Context) error {
	looks, looking := errgroup.WithContext(ctx)
	room := make(chan struct{}, 1) // gets a value when functions that are behind may have room
	looks.Go(func() error { return r.beginAll(ctx, looking, room) })
	looks.Go(func() error { return r.catchUpAll(looking, room) })
	return looks.Wait()
}

// beginAll starts due runs until looking ends. They go on until ctx does: a look that fails ends none.
func (r *Runner) beginAll(ctx, looking context.Context, room chan<- struct{}) error {
	list := time.NewTicker(listEvery)
	defer list.Stop()
	for {
		if err := r.begin(ctx); err != nil {
			return err
		}
		tell(room)
		select {
		case <-looking.Done():
			return looking.Err()
		case <-list.C:
		case <-r.wake:
		case <-r.calls.Ended:
		}
	}
}

// begin starts as many due runs as there are free slots.
func (r *Runner) begin(ctx context.Context) error {
	if r.calls.Full() { // one that ends makes room, and wakes the Runner
		return nil
	}
	groups, err := r.due.List(ctx, r.Store, duePage)
	if err != nil {
		return err
	}
	for _, ref := range r.inTurn(slices.Concat(groups...)) {
		runCtx, cancel := context.WithCancel(request.System(ctx, ref.Tenant))
		if !r.calls.Add(ref, cancel) {
			cancel()
			continue
		}
		r.round++
		r.rounds[functionOf(ref)] = r.round
		r.working.Go(func() {
			defer r.calls.End(ref)
			r.run(runCtx, ref.ID)
		})
	}
	return nil
}

// inTurn lets the functions of a tenant take turns: one that has waited longer for its next turn comes first. The turns
// of tenants stay.
func (r *Runner) inTurn(refs []docstore.Ref) []docstore.Ref {
	byTenant := map[string]map[string][]docstore.Ref{} // and function
	rounds := map[string]int{}
	for _, ref := range refs {
		function := functionOf(ref)
		if byTenant[ref.Tenant] == nil {
			byTenant[ref.Tenant] = map[string][]docstore.Ref{}
		}
		byTenant[ref.Tenant][function] = append(byTenant[ref.Tenant][function], ref)
		rounds[function] = r.rounds[function]
	}
	r.rounds = rounds
	last := maps.Clone(rounds)
	all := make([]docstore.Ref, len(refs))
	for i, ref := range refs {
		next, waiting := "", byTenant[ref.Tenant]
		for function, left := range waiting {
			if len(left) > 0 && (next == "" || last[function] < last[next] ||
				last[function] == last[next] && function < next) {
				next = function
			}
		}
		all[i], waiting[next] = waiting[next][0], waiting[next][1:]
		last[next] = r.round + 1 + i
	}
	return all
}

// functionOf returns the function of a run.
func functionOf(run docstore.Ref) string { return run.ID[strings.LastIndexByte(run.ID, '.')+1:] }

// run works on a run and logs why it failed. A panic fails the attempt: the next one begins when its lease has ended.
func (r *Runner) run(ctx context.Context, id string) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.ErrorContext(ctx, "a triggered run panicked", "run", id, "fault", fmt.Sprint(p), "stack",
				string(debug.Stack()))
		}
	}()
	if err := r.work(ctx, id); err != nil && ctx.Err() == nil && !apperr.IsNotFound(err) {
		r.Log.WarnContext(ctx, "a triggered run was not carried out", "run", id, "error", err)
	}
}

// work makes the next attempt of a run. The error is apperr.NotFound if the run is no longer due: another replica has
// it.
func (s *Functions) work(ctx context.Context, id string) error {
	run, err := s.claim(ctx, id)
	if err != nil {
		return err
	}
	info := request.From(ctx)
	info.PayloadOrigin, info.ID = run.Origin, run.RequestID
	made, err := s.attempt(request.With(ctx, info), run)
	kind := apperr.KindOf(err)
	made.again = err != nil && kind != apperr.NotFound && kind != apperr.InvalidState && run.Attempt < maxAttempts
	made.cut = ctx.Err() != nil
	made.later = kind == apperr.Unavailable // the code did not begin
	return s.recordOutcome(context.WithoutCancel(ctx), run, made)
}

// attempt is what became of an attempt.
type attempt struct {
	function   *Function
	entry      *LogEntry // nil: none
	again, cut bool      // the run is due later for the next attempt; the attempt was cut short
	later      bool      // the platform could not begin: the run is due later, and the attempt does not count
}

// attempt calls the function of a run. The error is the function's failure, or why it could not be called.
func (s *Functions) attempt(ctx context.Context, run *triggeredRun) (attempt, error) {
	timed, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	f, err := s.callable(timed, run.FunctionID)
	if err != nil {
		return attempt{}, err
	}
	entry := LogEntry{Cause: byTrigger, EventID: run.EventID, Attempt: run.Attempt}
	v, err := s.call(timed, f, jsontext.Value(run.Event), entry)
	switch {
	case err == nil:
		entry, err = entry.with(&v), v.failure()
	case ctx.Err() != nil:
		return attempt{}, err
	default:
		s.Log.WarnContext(ctx, "a triggered function cannot be called", "function", f.ID, "error", err)
		entry = entry.failed("the platform could not run the function")
	}
	return attempt{function: f, entry: &entry}, err
}

// claim begins an attempt of a run that is due, and holds the lease on it. The error is apperr.NotFound if it is not
// due.
func (s *Functions) claim(ctx context.Context, id string) (*triggeredRun, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*triggeredRun, error) {
		run, err := runs.Load(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if run.Next.After(tx.Now) {
			return nil, apperr.Missing("run that is due")
		}
		run.Attempt++
		run.Next = tx.Now.Add(lease)
		_, err = runs.Replace(ctx, tx, run)
		return run, err
	})
}

// recordOutcome ends an attempt and adds its log entry: the run is deleted or, if there is to be another attempt, due
// later. An attempt that was cut short does not count, nor does one that the platform could not begin.
func (s *Functions) recordOutcome(ctx context.Context, run *triggeredRun, made attempt) error {
	if made.entry != nil {
		var err error
		if made.entry.ID, err = s.Store.NewID(ctx); err != nil {
			return err
		}
		ctx = docstore.InTurn(ctx, "logs of "+run.FunctionID) // they delete the same oldest entries
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		held, err := runs.Load(ctx, tx, run.ID)
		if err != nil {
			return err
		}
		if made.entry != nil {
			if err := insertEntry(ctx, tx, made.function, *made.entry); err != nil {
				return err
			}
		}
		if held.Version != run.Version { // the lease has ended, and another replica has it
			return nil
		}
		switch {
		case made.cut:
			held.Attempt, held.Next = held.Attempt-1, tx.Now
		case made.later:
			held.Attempt, held.Next = held.Attempt-1, tx.Now.Add(laterRetry)
		case made.again:
			held.Next = tx.Now.Add(firstRetry << (held.Attempt - 1))
		default:
			_, err = runs.Delete(ctx, tx, held)
			return err
		}
		_, err = runs.Replace(ctx, tx, held)
		return err
	})
}
