package function

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// Invocation is the result of a call. That the function itself failed is an outcome, and not an error.
type Invocation struct {
	Outcome    sandbox.Outcome `json:"outcome" enum:"succeeded,failed,timed_out,out_of_memory,crashed" doc:"How the call ended"`
	Output     jsontext.Value  `json:"output" doc:"What the function returned; null unless it succeeded" example:"{\"greeting\":\"Hello 李伟\"}"`
	Error      *sandbox.Fault  `json:"error,omitempty" doc:"Why it did not succeed"`
	Logs       []sandbox.Line  `json:"logs" nullable:"false" doc:"Up to 200 lines with 16 KiB together"`
	DurationMS int64           `json:"duration_ms" doc:"Without waiting for a worker and compiling" example:"1"`
	Revision   int64           `json:"revision" doc:"The revision that ran" example:"1"`
}

// The causes of calls.
const (
	byInvoke  = "invoke"
	byJob     = "job"
	byTrigger = "event"
)

// Invoke calls a function for a client, and emits an event about it. A dry run checks everything and calls nothing. The
// error is apperr.NotFound,
// Unavailable, OutcomeUnknown, or InvalidState if the function is disabled, has no code, or was called by a chain of
// functions that is too long.
func (s *Functions) Invoke(ctx context.Context, id string, input jsontext.Value) (Invocation, error) {
	f, err := s.callable(ctx, id)
	if err == nil {
		err = docstore.CheckExpected(ctx, id, f.Version)
	}
	if err != nil {
		return Invocation{}, err
	}
	if docstore.IsDryRun(ctx) {
		return Invocation{
			Outcome: sandbox.Succeeded, Output: jsontext.Value("null"), Logs: []sandbox.Line{}, Revision: f.Revision,
		}, nil
	}
	v, err := s.call(ctx, f, input, LogEntry{Cause: byInvoke})
	if err := s.tellInvoked(ctx, f, v.Outcome, err); err != nil {
		return Invocation{}, err
	}
	return v, nil
}

// Run calls a function of a tenant for a job and returns its output. The error is apperr.NotFound if there is no such
// function, and InvalidState if it cannot be called. Every other error is the function's failure; its text may be shown
// to the tenant.
func (s *Functions) Run(ctx context.Context, tenant, functionID string, input jsontext.Value) (jsontext.Value, error) {
	ctx = request.System(ctx, tenant)
	f, err := s.callable(ctx, functionID)
	if err != nil {
		return nil, err
	}
	v, err := s.call(ctx, f, input, LogEntry{Cause: byJob})
	if err != nil {
		return nil, err
	}
	return v.Output, v.failure()
}

// failure is the error of a call that did not succeed.
func (v *Invocation) failure() error {
	if v.Outcome == sandbox.Succeeded {
		return nil
	}
	return fmt.Errorf("%s: %s", v.Outcome, v.Error.Message)
}

// callable returns a function that may be called now. The error is apperr.NotFound or InvalidState.
func (s *Functions) callable(ctx context.Context, id string) (*Function, error) {
	doc, err := functions.Find(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	f, err := doc.Value()
	switch {
	case err != nil:
		return nil, err
	case f.Status != Enabled:
		return nil, apperr.New(apperr.InvalidState, "the function is disabled")
	case f.Revision == 0:
		return nil, apperr.New(apperr.InvalidState, "the function has no module yet")
	case s.depth(ctx) >= maxDepth:
		return nil, apperr.New(apperr.InvalidState, "%s", chainTooLong)
	}
	return f, nil
}

// call runs a function. It adds an entry to its logs if the call logged something or failed; a run that an event has
// triggered adds its own.
func (s *Functions) call(ctx context.Context, f *Function, input jsontext.Value, e LogEntry) (Invocation, error) {
	env, err := s.env(ctx, f)
	if err != nil {
		return Invocation{}, err
	}
	if len(input) == 0 {
		input = jsontext.Value("null")
	}
	r, err := s.Pool.Run(ctx, &sandbox.Call{
		Code: sandbox.Code{
			Runtime: f.Runtime, Entry: f.Entry, Hash: f.current().SHA256,
			Load: func() ([]byte, error) { return contentOf(ctx, s.Store, f) },
		},
		Limits: f.limits(), Input: json.RawMessage(input), Env: env, Hosts: f.AllowedHosts,
		Header: map[string]string{"X-Payload-Origin": s.origin(f.TenantID, f.ID, s.depth(ctx)+1)},
	})
	if err != nil {
		return Invocation{}, err
	}
	v := Invocation{
		Outcome: r.Outcome, Output: jsontext.Value(r.Output), Error: r.Fault, Logs: r.Logs, Revision: f.Revision,
		DurationMS: int64((r.Duration + time.Millisecond/2) / time.Millisecond),
	}
	if v.Logs == nil {
		v.Logs = []sandbox.Line{}
	}
	if e.Cause != byTrigger && (len(v.Logs) > 0 || v.Outcome != sandbox.Succeeded) {
		s.note(ctx, f, e.with(&v))
	}
	return v, nil
}

// env reads the variables of the function's environment.
func (s *Functions) env(ctx context.Context, f *Function) (map[string]string, error) {
	if len(f.Env) == 0 {
		return nil, nil
	}
	values, err := functions.RevealAll(ctx, s.Store, f.ID)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for name := range f.Env {
		env[name] = values[envMember+name].Reveal()
	}
	return env, nil
}
