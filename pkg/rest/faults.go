package rest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// All faults of a request are reported together: unknown members, what the schema forbids, and what the domain finds.
// huma would stop after the schema. So the body is checked against the schema before huma parses the request, and a
// request with faults still runs, as a dry run without questions to other services, only to find its other faults.

// validate adds the faults that the schema finds in a JSON body without unknown members.
func (s *Server) validate(op *Op, call *call, body []byte) {
	if len(body) == 0 {
		return // huma refuses an empty body where one is required
	}
	var value any
	if decodeJSON(body, &value) != nil {
		return // huma refuses a body that cannot be decoded
	}
	var found huma.ValidateResult
	huma.Validate(s.api.OpenAPI().Components.Schemas, op.schema, huma.NewPathBuffer([]byte("body"), 4),
		huma.ModeWriteToServer, value, &found)
	for i, err := range found.Errors {
		if i > maxFaults { // one of the others may be of a value that is too large
			call.unfit = true
			break
		}
		fault := faultOf(err)
		call.faults = append(call.faults, fault)
		call.unfit = call.unfit || !slices.ContainsFunc(fit, func(start string) bool {
			return strings.HasPrefix(fault.Message, start)
		})
	}
}

// fit are the beginnings of messages about values that the domain can check nevertheless. The domain relies on never
// getting a value of the wrong type, or a larger one than the schema allows. For the domain, an empty list is an absent
// one.
var fit = []string{
	missing, "expected value to be one of", "expected string to match", "expected string to be ",
	"expected length >=", "expected number >",
}

// allFaults runs an operation without its writes, so that one answer has the faults against the schema and those that
// the domain finds.
func (c *call) allFaults(ctx context.Context, run func(context.Context) (answer, error)) (err error) {
	if c.unfit {
		return c.with(nil)
	}
	_, err = run(request.WithoutQuestions(docstore.WithDryRun(ctx)))
	return c.with(err)
}

// with makes the error for a request with faults; err has its other faults. Of several faults at one place, the first
// is reported.
func (c *call) with(err error) error {
	faults := slices.Clone(c.faults)
	if e, ok := errors.AsType[*apperr.Error](err); ok && e.Kind == apperr.InvalidParameters {
		for _, fault := range e.Faults {
			if !slices.ContainsFunc(c.faults, func(known apperr.Fault) bool { return covers(known, fault) }) {
				faults = append(faults, fault)
			}
		}
	}
	return bounded(faults).Err()
}

// covers reports whether a fault explains another: one at the same place or below it.
func covers(known, other apperr.Fault) bool {
	below, ok := strings.CutPrefix(other.Location, known.Location)
	return ok && (below == "" || below[0] == '.' || below[0] == '[')
}
