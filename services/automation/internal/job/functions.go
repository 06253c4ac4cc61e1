package job

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Functions runs the functions that jobs have as their targets.
type Functions interface {
	// Run runs an enabled function of the tenant with the run's payload as input, and returns its output. The error is
	// apperr.NotFound if there is no such function, and apperr.InvalidState if it is disabled. Every other error is the
	// function's failure; its text becomes the sub-job's error.
	Run(ctx context.Context, tenant, functionID string, input jsontext.Value) (output jsontext.Value, err error)

	// Exists reports whether the context's tenant has a function. The transaction depends on it.
	Exists(ctx context.Context, tx *docstore.Tx, functionID string) (bool, error)
}

// mayRun refuses a caller who sets what a function is run with, and may not write functions: a function can have rights
// that the caller lacks. Work without a request may do so.
func mayRun(ctx context.Context, t Target) error {
	caller := auth.PrincipalFrom(ctx)
	if t.Type != Function || caller == nil || caller.Has(auth.FunctionsWrite) {
		return nil
	}
	return apperr.New(apperr.Forbidden, "to set what a function is run with needs the scope %s", auth.FunctionsWrite)
}

// checkTarget checks that the caller may set a target that has changed, and that its function exists. The error is
// apperr.Forbidden or InvalidParameters.
func (s *Jobs) checkTarget(ctx context.Context, tx *docstore.Tx, t, before Target) error {
	if !t.equal(before) {
		if err := mayRun(ctx, t); err != nil {
			return err
		}
	}
	if t.Type != Function || t.FunctionID == before.FunctionID {
		return nil
	}
	exists, err := s.Functions.Exists(ctx, tx, t.FunctionID)
	if err == nil && !exists {
		err = apperr.Invalid("target.function_id", "is not a function's id")
	}
	return err
}

// equal reports whether two targets do the same.
func (t Target) equal(other Target) bool {
	return t.Type == other.Type && t.URL == other.URL && t.Subject == other.Subject &&
		t.FunctionID == other.FunctionID && sameJSON(t.Payload, other.Payload)
}

func sameJSON(a, b jsontext.Value) bool {
	var values [2]any
	for i, text := range []jsontext.Value{a, b} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil { // absent
			values[i] = nil
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// CountFor counts the jobs of the context's tenant whose target is a function.
func CountFor(ctx context.Context, tx *docstore.Tx, functionID string) (int64, error) {
	return jobs.Count(ctx, tx, docstore.Eq(byFunction, docstore.Text(functionID)))
}
