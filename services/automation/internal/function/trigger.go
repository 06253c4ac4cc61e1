package function

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// triggeredRun is a run of a function that an event has triggered. It is deleted when it has succeeded, or failed for
// the last time. Its id is made of the event's and the function's, so that an event that is delivered twice triggers
// one run.
type triggeredRun struct {
	work.Item
	FunctionID string          `json:"function_id"`
	EventID    string          `json:"event_id"`
	Origin     string          `json:"payload_origin"` // of the event
	RequestID  string          `json:"request_id"`
	Event      json.RawMessage `json:"event"`
}

const byNext = "next"

var runs = work.Define(docstore.Schema[triggeredRun]{
	Name: "function_runs", Noun: "run", NoIfMatch: true,
	Indexes: []docstore.Index[triggeredRun]{
		docstore.ByText(byFunction, func(r *triggeredRun) string { return r.FunctionID }),
	},
})

var places = stream.DefinePlaces("function_place", "place of the triggers")

// Reader reads the events of all tenants, because each may trigger functions.
func (s *Functions) Reader(l *stream.Log, group *replicas.Group) *stream.Reader {
	return stream.NewReader(stream.ReaderConfig{
		Name: reader, Places: places, Log: l, DB: s.Store, Group: group, Handle: s.trigger, Consumer: reader,
	})
}

// reader is the name of the Reader, and of its consumer in NATS.
const reader = "automation-functions"

const (
	// tenantsAtOnce is how many tenants get the runs of the same events at the same time, and storeAtOnce how many
	// functions of each.
	tenantsAtOnce = 4
	storeAtOnce   = 8
)

// trigger stores a run for each function that an event triggers, so that a function that fails delays no other event.
// If too many runs of a function wait, its events wait in the stream.
func (s *Functions) trigger(ctx context.Context, b *stream.Batch) error {
	byTenant := map[string][]*stream.Event{}
	for _, e := range b.Events {
		byTenant[e.Tenant] = append(byTenant[e.Tenant], e)
	}
	var storing errgroup.Group
	storing.SetLimit(tenantsAtOnce)
	for tenant, events := range byTenant {
		storing.Go(func() error { return s.triggerTenant(request.System(ctx, tenant), b, events) })
	}
	return storing.Wait()
}

func (s *Functions) triggerTenant(ctx context.Context, b *stream.Batch, events []*stream.Event) error {
	var types []string
	for _, e := range events {
		types = append(types, patterns(e.Type)...)
	}
	slices.Sort(types)
	listening, err := functions.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.In(byEvent, texts(slices.Compact(types))...), Limit: maxFunctions,
	})
	if err != nil || len(listening.Docs) == 0 {
		return err
	}
	var storing errgroup.Group
	storing.SetLimit(storeAtOnce)
	for i := range listening.Docs {
		f, err := listening.Docs[i].Value()
		if err != nil {
			s.Log.ErrorContext(ctx, "a function cannot be read, and so makes no runs", "function", listening.Docs[i].ID,
				"error", err)
			continue
		}
		storing.Go(func() error {
			heard := slices.DeleteFunc(slices.Clone(events), func(e *stream.Event) bool { return !f.hears(e) })
			if len(heard) == 0 {
				return nil
			}
			err := s.addRuns(ctx, f, b, events, heard)
			if err == nil || ctx.Err() != nil {
				return err
			}
			s.Log.WarnContext(ctx, "the runs of a function are not stored; its events wait in the stream",
				"function", f.ID, "error", err)
			return s.leaveBehind(ctx, f, b, heard)
		})
	}
	err = storing.Wait()
	tell(s.wake)
	return err
}

// tell leaves a value in a channel that has room for one.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// patterns returns the event type without idp. and all patterns that match it.
func patterns(eventType string) []string {
	name := strings.TrimPrefix(eventType, "idp.")
	entity, action, _ := strings.Cut(name, ".")
	return []string{name, entity + ".*", "*." + action, "*.*", "*"}
}

func texts(all []string) (values []docstore.Value) {
	for _, text := range all {
		values = append(values, docstore.Text(text))
	}
	return values
}

// refusal says why no function is run for an event; "" if they are.
func (s *Functions) refusal(e *stream.Event) string {
	switch {
	case s.depthOf(e.Tenant, e.PayloadOrigin) >= maxDepth:
		return chainTooLong
	case len(e.JSON) > sandbox.MaxInput:
		return "the event is too large to be a function's input"
	default:
		return ""
	}
}

// insertRun stores a run of a function. With look, one that waits already stays.
func insertRun(ctx context.Context, tx *docstore.Tx, function string, e *stream.Event, look bool) error {
	run := triggeredRun{
		Item: work.New(tx.Now), FunctionID: function, EventID: e.ID, Origin: e.PayloadOrigin, RequestID: e.RequestID,
		Event: e.JSON,
	}
	run.ID = e.ID + "." + function
	if look {
		if _, err := runs.Find(ctx, tx, run.ID); !apperr.IsNotFound(err) {
			return err
		}
	}
	_, err := runs.Insert(ctx, tx, &run)
	return err
}

// typesOf is where the event types of a trigger are.
func typesOf(trigger int) string { return apperr.Item("triggers", trigger) + ".event_types" }

// checkTypes reports types of events that no event has, since a function would wait for them for ever. Those that
// the function has are not asked about, and if nobody answers, none is.
func (s *Functions) checkTypes(ctx context.Context, faults *apperr.Faults, p, before *Profile) error {
	var had, added []string
	if before != nil {
		for _, trigger := range before.Triggers {
			had = append(had, trigger.EventTypes...)
		}
	}
	for _, trigger := range p.Triggers {
		for _, event := range trigger.EventTypes {
			if eventForm.MatchString(event) && !slices.Contains(had, event) {
				added = append(added, event)
			}
		}
	}
	if len(added) == 0 {
		return nil
	}
	unknown, err := s.UnknownTypes(ctx, added)
	if err != nil && apperr.KindOf(err) != apperr.Unavailable {
		return err
	}
	for i, trigger := range p.Triggers {
		for j, event := range trigger.EventTypes {
			faults.Check(!slices.Contains(unknown, event), fmt.Sprintf("%s[%d]", typesOf(i), j),
				"selects no type of events that the platform has; GET /v1/event-types lists them")
		}
	}
	return nil
}
