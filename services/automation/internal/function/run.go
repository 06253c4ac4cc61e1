package function

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/work"
)

const (
	maxAttempts = 5
	firstRetry  = 5 * time.Second  // the pause doubles with each attempt
	laterRetry  = 30 * time.Second // after an attempt that the platform could not begin
	runTime     = 50 * time.Second // of an attempt, with the wait for a worker

	lookEvery = 500 * time.Millisecond // for functions that are behind
	lookAgain = 2 * time.Second        // after a failure
	duePage   = 200                    // functions that are listed at a time
)

// Runner carries out triggered runs, a limited number at a time.
type Runner struct {
	*Functions
	queue  *work.Queue[triggeredRun, *triggeredRun]
	behind fair.RoundRobin[progress]
	room   chan struct{} // gets a value when functions that are behind may have room
}

// NewRunner makes a runner of at most slots runs at a time; one tenant gets at most half of them.
func NewRunner(s *Functions, slots int, metrics prometheus.Registerer) *Runner {
	r := &Runner{Functions: s, room: make(chan struct{}, 1)}
	r.queue = work.NewQueue[triggeredRun](work.Config[triggeredRun]{
		Name: "run triggered functions", Items: runs, Store: s.Store, Log: s.Log, Metrics: metrics,
		Places: fair.Limits{Most: slots, OfTenant: max(1, slots/2)}, Turn: functionOf,
		Time: runTime, Attempts: maxAttempts,
		Pause: func(attempt int64) time.Duration { return firstRetry << (attempt - 1) },
		Do:    s.carryOut, Lost: s.noteLost, Ended: func(*triggeredRun, error) { tell(r.room) },
	})
	r.behind = fair.RoundRobin[progress]{Of: progresses, By: byNext, Group: 1, Others: 16}
	return r
}

// Run carries out runs, and reads events for functions that are behind, until ctx and all runs have ended. An attempt
// that is cut short does not count, and its run is due at once.
func (r *Runner) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.catchUpAll(ctx) })
	running.Go(func() { r.hear(ctx) })
	return r.queue.Run(ctx)
}

// hear has runs begin as soon as events have made them.
func (r *Runner) hear(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			r.queue.Wake()
		}
	}
}

// functionOf returns the function of a run.
func functionOf(run string) string { return run[strings.LastIndexByte(run, '.')+1:] }

// carryOut makes an attempt of a run. An attempt that the platform could not begin does not count.
func (s *Functions) carryOut(ctx context.Context, run *triggeredRun) work.Outcome {
	entryID, err := s.Store.NewID(ctx)
	if err != nil {
		return work.NotStarted(err, laterRetry)
	}
	info := request.From(ctx)
	info.PayloadOrigin, info.ID = run.Origin, run.RequestID
	f, entry, err := s.attempt(request.With(ctx, info), run)
	outcome := work.Done()
	switch kind := apperr.KindOf(err); {
	case err == nil || kind == apperr.NotFound || kind == apperr.InvalidState: // the function is gone or disabled
	case kind == apperr.Unavailable:
		outcome = work.NotStarted(nil, laterRetry)
	case entry == nil:
		outcome = work.Retry(err)
	default:
		outcome = work.Retry(nil) // the function's log has the failure
	}
	if entry == nil {
		return outcome
	}
	entry.ID = entryID
	return outcome.With(adds(f, entry))
}

// adds stores an entry of a function's log with the outcome of a run. Transactions with entries of one function delete
// the same oldest ones.
func adds(f *Function, entry *LogEntry) (key string, store func(ctx context.Context, tx *docstore.Tx) error) {
	return "logs of " + f.ID, func(ctx context.Context, tx *docstore.Tx) error {
		return insertEntry(ctx, tx, f, *entry)
	}
}

// noteLost tells the function's log that a run is over whose last attempt has never ended.
func (s *Functions) noteLost(ctx context.Context, run *triggeredRun) work.Outcome {
	entryID, err := s.Store.NewID(ctx)
	if err != nil {
		return work.NotStarted(err, laterRetry)
	}
	doc, err := functions.Find(ctx, s.Store, run.FunctionID)
	if err == nil {
		var f *Function
		if f, err = doc.Value(); err == nil {
			entry := LogEntry{Cause: byTrigger, EventID: run.EventID, Attempt: run.Attempt - 1}.
				failed("the process that ran it has stopped")
			entry.ID = entryID
			return work.GiveUp(nil).With(adds(f, &entry))
		}
	}
	return work.GiveUp(apperr.Ignore(err, apperr.NotFound))
}

// attempt calls the function of a run. entry is for its log; nil: none. The error is the function's failure, or why it
// could not be called.
func (s *Functions) attempt(ctx context.Context, run *triggeredRun) (f *Function, entry *LogEntry, err error) {
	if f, err = s.callable(ctx, run.FunctionID); err != nil {
		return nil, nil, err
	}
	made := LogEntry{Cause: byTrigger, EventID: run.EventID, Attempt: run.Attempt}
	v, err := s.call(ctx, f, jsontext.Value(run.Event), made)
	switch {
	case err == nil:
		made, err = made.with(&v), v.failure()
	case errors.Is(ctx.Err(), context.Canceled): // it is cut short
		return nil, nil, err
	default:
		s.Log.WarnContext(ctx, "a triggered function cannot be called", "function", f.ID, "error", err)
		made = made.failed("the platform could not run the function")
	}
	return f, &made, err
}
