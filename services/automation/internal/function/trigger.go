package function

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/automation/internal/due"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// triggeredRun is a run of a function that an event has triggered. It is deleted when it has succeeded, or failed for
// the last time. Its id is made of the event's and the function's, so that an event that is delivered twice triggers
// one run.
type triggeredRun struct {
	docstore.Meta
	FunctionID string          `json:"function_id"`
	EventID    string          `json:"event_id"`
	Origin     string          `json:"payload_origin"` // of the event
	RequestID  string          `json:"request_id"`
	Event      json.RawMessage `json:"event"`
	Attempt    int64           `json:"attempt"` // how many attempts have begun
	Next       clock.Time      `json:"next"`    // when the next attempt may begin, at the end of a lease or a pause
}

const (
	maxWaiting  = 1000 // runs of a tenant
	maxAttempts = 5
	firstRetry  = 5 * time.Second // the pause doubles with each attempt

	// An attempt ends before its lease: it may take runTime, including the wait for a worker.
	runTime = 50 * time.Second
	lease   = 60 * time.Second

	listEvery = 500 * time.Millisecond
	duePage   = 200 // due runs that are listed at a time
)

const byNext = "next"

var runs = docstore.Define(docstore.Schema[triggeredRun]{
	Name: "function_runs", Noun: "run", Part: true,
	Indexes: []docstore.Index[triggeredRun]{
		docstore.ByText(byFunction, func(r *triggeredRun) string { return r.FunctionID }),
		docstore.ByNumber(byNext, func(r *triggeredRun) docstore.Value { return docstore.Moment(r.Next) }),
	},
	Due: func(r *triggeredRun) clock.Time { return r.Next },
})

// cloudEvent is the input of a triggered function: the event in CloudEvents 1.0 JSON form.
type cloudEvent struct {
	SpecVersion   string          `json:"specversion"`
	ID            string          `json:"id"`
	Source        string          `json:"source"`
	Type          string          `json:"type"`
	Subject       string          `json:"subject"`
	Time          clock.Time      `json:"time"`
	Tenant        string          `json:"tenantid"`
	Actor         string          `json:"actor,omitempty"`
	RequestID     string          `json:"requestid,omitempty"`
	PayloadOrigin string          `json:"payloadorigin,omitempty"`
	Data          json.RawMessage `json:"data"`
}

// Consumer consumes the events of all tenants, because each may trigger functions.
func (s *Functions) Consumer() bus.ConsumerConfig {
	return bus.ConsumerConfig{Name: "automation-functions", Subjects: []string{"idp.events.>"}, Handle: s.trigger}
}

// trigger stores a run for each function that an event triggers. The runs wait in the store and not in the stream, so
// that a function that fails delays no other event.
func (s *Functions) trigger(ctx context.Context, e bus.Event) error {
	listening, err := functions.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.In(byEvent, patterns(e.Type)...), Limit: maxFunctions,
	})
	if err != nil || len(listening.Docs) == 0 {
		return err
	}
	event, err := json.Marshal(cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject, Time: e.Time,
		Tenant: e.Tenant, Actor: e.Actor, RequestID: e.RequestID, PayloadOrigin: e.PayloadOrigin, Data: e.Data,
	})
	if err != nil {
		return err
	}
	for i := range listening.Docs {
		f, err := listening.Docs[i].Value()
		if err != nil {
			return err
		}
		if err := s.addRun(ctx, f, &e, event); err != nil {
			return err
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// patterns returns the event type without idp. and all patterns that match it.
func patterns(eventType string) []docstore.Value {
	name := strings.TrimPrefix(eventType, "idp.")
	entity, action, _ := strings.Cut(name, ".")
	return []docstore.Value{
		docstore.Text(name), docstore.Text(entity + ".*"), docstore.Text("*." + action), docstore.Text("*.*"),
		docstore.Text("*"),
	}
}

// addRun stores a run. If it is refused, an entry in the function's logs says why.
func (s *Functions) addRun(ctx context.Context, f *Function, e *bus.Event, event []byte) error {
	refused := ""
	switch {
	case depth(ctx) >= maxDepth:
		refused = chainTooLong
	case len(event) > sandbox.MaxInput:
		refused = "the event is too large to be a function's input"
	}
	run := triggeredRun{
		Meta: docstore.Meta{ID: e.ID + "." + f.ID}, FunctionID: f.ID, EventID: e.ID, Origin: e.PayloadOrigin,
		RequestID: e.RequestID, Event: event,
	}
	if refused == "" {
		var err error
		if refused, err = s.insertRun(ctx, run); err != nil {
			return err
		}
	}
	if refused != "" {
		s.noteFailure(ctx, f, LogEntry{Cause: byTrigger, EventID: e.ID}, refused)
	}
	return nil
}

// insertRun stores a run unless it is stored already. refused says why it cannot be stored; "" if it is.
func (s *Functions) insertRun(ctx context.Context, run triggeredRun) (refused string, err error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (string, error) {
		if _, err := runs.Find(ctx, tx, run.ID); !apperr.IsNotFound(err) {
			return "", err
		}
		n, err := runs.Count(ctx, tx, docstore.Filter{})
		if err != nil {
			return "", err
		}
		if n >= maxWaiting {
			return fmt.Sprintf("the tenant has %d waiting runs; it cannot have more", maxWaiting), nil
		}
		fresh := run // fn may run again
		fresh.Next = tx.Now
		_, err = runs.Insert(ctx, tx, &fresh)
		return "", err
	})
}

// Runner works on triggered runs that are due, a limited number at a time.
type Runner struct {
	*Functions
	Slots int // runs at a time; one tenant gets at most half of them

	due     due.Turns[triggeredRun]
	calls   *due.Calls
	working sync.WaitGroup
}

// Run is the work of a service.Task. It returns when ctx and all runs have ended. An attempt that is cut short does not
// count, and its run is due at once.
func (r *Runner) Run(ctx context.Context) (int, error) {
	r.due = due.Turns[triggeredRun]{Of: runs, By: byNext, Group: 1, Others: 16}
	r.calls = due.NewCalls(r.Slots, max(1, r.Slots/2))
	defer r.working.Wait()
	list := time.NewTicker(listEvery)
	defer list.Stop()
	for {
		if err := r.begin(ctx); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-list.C:
		case <-r.wake:
		case <-r.calls.Ended:
		}
	}
}

// begin starts as many due runs as there are free slots.
func (r *Runner) begin(ctx context.Context) error {
	groups, err := r.due.List(ctx, r.Store, duePage)
	if err != nil {
		return err
	}
	for _, ref := range slices.Concat(groups...) {
		runCtx, cancel := context.WithCancel(request.System(ctx, ref.Tenant))
		if !r.calls.Add(ref, cancel) {
			cancel()
			continue
		}
		r.working.Go(func() {
			defer r.calls.End(ref)
			r.run(runCtx, ref.ID)
		})
	}
	return nil
}

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
	err = s.attempt(request.With(ctx, info), run)
	kind := apperr.KindOf(err)
	again := err != nil && kind != apperr.NotFound && kind != apperr.InvalidState && run.Attempt < maxAttempts
	return s.settle(context.WithoutCancel(ctx), run, again, ctx.Err() != nil)
}

// attempt calls the function of a run. The error is the function's failure, or why it could not be called.
func (s *Functions) attempt(ctx context.Context, run *triggeredRun) error {
	timed, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	f, err := s.callable(timed, run.FunctionID)
	if err != nil {
		return err
	}
	entry := LogEntry{Cause: byTrigger, EventID: run.EventID, Attempt: run.Attempt}
	v, err := s.call(timed, f, run.Event, entry)
	if err == nil {
		return v.failure()
	}
	if ctx.Err() == nil {
		s.Log.WarnContext(ctx, "a triggered function cannot be called", "function", f.ID, "error", err)
		s.noteFailure(ctx, f, entry, "the platform could not run the function")
	}
	return err
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

// settle ends an attempt: the run is deleted or, if again, due later for the next one. An attempt that was cut short
// does not count.
func (s *Functions) settle(ctx context.Context, run *triggeredRun, again, cut bool) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		held, err := runs.Load(ctx, tx, run.ID)
		if err != nil {
			return err
		}
		if held.Version != run.Version { // the lease has ended, and another replica has it
			return nil
		}
		switch {
		case cut:
			held.Attempt, held.Next = held.Attempt-1, tx.Now
		case again:
			held.Next = tx.Now.Add(firstRetry << (held.Attempt - 1))
		default:
			_, err = runs.Delete(ctx, tx, held)
			return err
		}
		_, err = runs.Replace(ctx, tx, held)
		return err
	})
}
