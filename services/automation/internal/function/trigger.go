package function

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// triggered is a run of a function that an event asked for. It is deleted when it has succeeded or failed for good. Its
// id is made of those of the event and the function, so that an event that is delivered twice makes one.
type triggered struct {
	docstore.Meta
	FunctionID string          `json:"function_id"`
	EventID    string          `json:"event_id"`
	Origin     string          `json:"payload_origin"` // of the event
	RequestID  string          `json:"request_id"`
	Event      json.RawMessage `json:"event"`
	Attempt    int64           `json:"attempt"` // how often it was begun
	Next       clock.Time      `json:"next"`    // when it may be begun: while it runs, the end of its lease
}

const (
	maxWaiting  = 1000 // runs of a tenant
	maxAttempts = 5
	firstRetry  = 5 * time.Second // then twice as long each time

	// A run that takes longer than runTime, with the time it waits for a worker, is ended before its lease.
	runTime = 50 * time.Second
	lease   = 60 * time.Second

	lookEvery = 500 * time.Millisecond
	lookAt    = 2 * maxWaiting // runs that are due, of all tenants
)

var runs = docstore.Define(docstore.Schema[triggered]{
	Name: "function_runs", Noun: "run", Part: true,
	Indexes: []docstore.Index[triggered]{
		docstore.ByText(byFunction, func(r *triggered) string { return r.FunctionID }),
	},
	Due: func(r *triggered) clock.Time { return r.Next },
})

// cloudEvent is an event as functions get it.
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

// Consumer takes the events of all tenants that may trigger functions.
func (s *Functions) Consumer() bus.ConsumerConfig {
	return bus.ConsumerConfig{Name: "automation-functions", Subjects: []string{"idp.events.>"}, Handle: s.take}
}

// take stores a run for each function that an event triggers. The runs wait in the store and not in the stream, so that
// a function that fails delays no other event.
func (s *Functions) take(ctx context.Context, e bus.Event) error {
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

// patterns are the event type without idp. and all patterns that it matches.
func patterns(eventType string) []docstore.Value {
	name := strings.TrimPrefix(eventType, "idp.")
	entity, action, _ := strings.Cut(name, ".")
	return []docstore.Value{
		docstore.Text(name), docstore.Text(entity + ".*"), docstore.Text("*." + action), docstore.Text("*.*"),
		docstore.Text("*"),
	}
}

// addRun stores a run, or notes in the function's logs why there is none.
func (s *Functions) addRun(ctx context.Context, f *Function, e *bus.Event, event []byte) error {
	refused := ""
	switch {
	case depth(ctx) >= maxDepth:
		refused = "functions caused this event one after the other: the chain ends here"
	case len(event) > sandbox.MaxInput:
		refused = "the event is too large"
	}
	run := triggered{
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
		v := Invocation{Outcome: sandbox.Failed, Error: &sandbox.Fault{Message: refused}, Logs: []sandbox.Line{}}
		s.note(ctx, f, LogEntry{Cause: byTrigger, EventID: e.ID}.of(&v))
	}
	return nil
}

func (s *Functions) insertRun(ctx context.Context, run triggered) (refused string, err error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (string, error) {
		if _, err := runs.Find(ctx, tx, run.ID); !apperr.IsNotFound(err) {
			return "", err
		}
		n, err := runs.Count(ctx, tx, docstore.Filter{})
		if err != nil {
			return "", err
		}
		if n >= maxWaiting {
			return "too many runs wait in this tenant", nil
		}
		fresh := run
		fresh.Next = tx.Now
		_, err = runs.Insert(ctx, tx, &fresh)
		return "", err
	})
}

// Runner begins triggered runs as they fall due, a limited number at a time, until its context ends.
type Runner struct {
	*Functions
	Slots int // runs at a time; one tenant has at most half of them

	mu      sync.Mutex
	running map[docstore.Ref]bool
	tenants map[string]int
	group   sync.WaitGroup
	ended   chan struct{} // tells that a slot is free
}

// Run is the work of a service.Task. It returns when ctx has ended and all runs with it; a run that is cut short is
// given back.
func (r *Runner) Run(ctx context.Context) (int, error) {
	r.running, r.tenants, r.ended = map[docstore.Ref]bool{}, map[string]int{}, make(chan struct{}, 1)
	defer r.group.Wait()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := r.begin(ctx); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-look.C:
		case <-r.wake:
		case <-r.ended:
		}
	}
}

// begin starts as many due runs as there are slots.
func (r *Runner) begin(ctx context.Context) error {
	due, err := runs.Due(ctx, r.Store, lookAt)
	if err != nil {
		return err
	}
	for _, ref := range due {
		if !r.enter(ref) {
			continue
		}
		r.group.Go(func() {
			defer r.leave(ref)
			ctx := request.System(ctx, ref.Tenant)
			if err := r.work(ctx, ref.ID); err != nil && ctx.Err() == nil && !apperr.IsNotFound(err) {
				r.Log.WarnContext(ctx, "a triggered run was not carried out", "run", ref.ID, "error", err)
			}
		})
	}
	return nil
}

func (r *Runner) enter(ref docstore.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[ref] || len(r.running) >= r.Slots || r.tenants[ref.Tenant] >= max(1, r.Slots/2) {
		return false
	}
	r.running[ref] = true
	r.tenants[ref.Tenant]++
	return true
}

func (r *Runner) leave(ref docstore.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, ref)
	if r.tenants[ref.Tenant]--; r.tenants[ref.Tenant] == 0 {
		delete(r.tenants, ref.Tenant)
	}
	select {
	case r.ended <- struct{}{}:
	default:
	}
}

// work carries out one run. apperr.NotFound if it is no longer due: another replica has it.
func (s *Functions) work(ctx context.Context, id string) error {
	run, err := s.claim(ctx, id)
	if err != nil {
		return err
	}
	info := request.From(ctx)
	info.PayloadOrigin, info.ID = run.Origin, run.RequestID
	calling, cancel := context.WithTimeout(request.With(ctx, info), runTime)
	defer cancel()
	f, err := s.callable(calling, run.FunctionID)
	if err == nil {
		var v Invocation
		v, err = s.call(calling, f, run.Event, LogEntry{Cause: byTrigger, EventID: run.EventID, Attempt: run.Attempt})
		if err == nil {
			err = v.failure()
		}
	}
	kind := apperr.KindOf(err)
	again := err != nil && kind != apperr.NotFound && kind != apperr.InvalidState && run.Attempt < maxAttempts
	return s.settle(context.WithoutCancel(ctx), run, again, ctx.Err() != nil)
}

// claim takes a run that is due until its lease ends.
func (s *Functions) claim(ctx context.Context, id string) (*triggered, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*triggered, error) {
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

// settle ends an attempt: the run is deleted, or begun again later. One that was cut short does not count.
func (s *Functions) settle(ctx context.Context, run *triggered, again, cut bool) error {
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
