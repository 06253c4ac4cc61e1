package job

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Call is one attempt of a run, as its target gets it.
type Call struct {
	Tenant   string
	JobID    string
	SubJobID string
	Name     string
	Attempt  int64
	Target   Target
	Payload  jsontext.Value
	Deadline clock.Time

	// CallbackURL is where the worker of an accepted call sends the result, with CallbackToken as credential.
	CallbackURL   string
	CallbackToken string

	Secret secret.String // signs the request to a webhook, unless it is empty
}

// Outcome is the answer to a call.
type Outcome struct {
	Accepted bool           // the result comes later, to CallbackURL
	Result   jsontext.Value // JSON or nil

	// RetryAfter is the least pause before the next attempt that a target asks for whose call failed.
	RetryAfter time.Duration
}

// Runner makes calls to targets of one type. An error fails the attempt, and its text becomes the sub-job's error.
type Runner interface {
	Run(ctx context.Context, call Call) (Outcome, error)
}

// FunctionRunner runs functions.
func FunctionRunner(f Functions) Runner { return functionRunner{f} }

type functionRunner struct{ functions Functions }

// Run implements Runner. A function's output is the result.
func (r functionRunner) Run(ctx context.Context, c Call) (Outcome, error) {
	output, err := r.functions.Run(ctx, c.Tenant, c.Target.FunctionID, c.Payload)
	return Outcome{Result: output}, err
}
