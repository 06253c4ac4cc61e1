package job

import (
	"context"
	"encoding/json"
)

// Functions runs the functions that jobs have as their targets.
type Functions interface {
	// Run runs an enabled function of the tenant and returns its output. input is the run's payload. The error is
	// apperr.NotFound if there is no such function, and apperr.InvalidState if it is disabled; every other error is
	// the function's failure, whose text is shown as the run's error.
	Run(ctx context.Context, tenant, functionID string, input json.RawMessage) (output json.RawMessage, err error)
}
