package job

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Functions runs the functions that jobs have as their targets.
type Functions interface {
	// Run runs an enabled function of the tenant with the run's payload as input, and returns its output. The error is
	// apperr.NotFound if there is no such function, and apperr.InvalidState if it is disabled. Every other error is the
	// function's failure; its text becomes the sub-job's error.
	Run(ctx context.Context, tenant, functionID string, input json.RawMessage) (output json.RawMessage, err error)

	// Exists reports whether the context's tenant has a function. The transaction depends on it.
	Exists(ctx context.Context, tx *docstore.Tx, functionID string) (bool, error)
}

// checkFunction checks that the function of a new target exists. The error is apperr.InvalidParameters.
func (s *Jobs) checkFunction(ctx context.Context, tx *docstore.Tx, t, before Target) error {
	if t.Type != Function || t.FunctionID == before.FunctionID {
		return nil
	}
	exists, err := s.Functions.Exists(ctx, tx, t.FunctionID)
	if err == nil && !exists {
		err = apperr.Invalid("target.function_id", "is not a function's id")
	}
	return err
}

// CountFor counts the jobs of the context's tenant whose target is a function.
func CountFor(ctx context.Context, tx *docstore.Tx, functionID string) (int64, error) {
	return jobs.Count(ctx, tx, docstore.Eq(byFunction, docstore.Text(functionID)))
}
