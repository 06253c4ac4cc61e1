package function

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// invoked is the record of the event about a call that a client has made. It has neither input nor output. It is not
// stored: an invocation is a record of its own, so that those of one function do not wait for each other.
type invoked struct {
	ID          string          `json:"id"`
	FunctionID  string          `json:"function_id"`
	Code        string          `json:"code"` // the function's
	Revision    int64           `json:"revision"`
	Outcome     sandbox.Outcome `json:"outcome"`
	TimeCreated clock.Time      `json:"time_created"`
}

// unknownOutcome is that of a call that may have run.
const unknownOutcome sandbox.Outcome = "unknown"

// tellInvoked emits the event about a call that a client has made, whose error is failed. A call that has not begun has
// none.
func (s *Functions) tellInvoked(ctx context.Context, f *Function, outcome sandbox.Outcome, failed error) error {
	if failed != nil && apperr.KindOf(failed) != apperr.OutcomeUnknown {
		return failed
	}
	if failed != nil {
		outcome = unknownOutcome
	}
	ctx = docstore.WithoutCommitHook(context.WithoutCancel(ctx))
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return apperr.Unknown(err) // the call has happened
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		record, err := json.Marshal(invoked{id, f.ID, f.Code, f.Revision, outcome, tx.Now})
		if err != nil {
			return err
		}
		return outbox.Append(ctx, tx, outbox.Event{
			Entity: "function_invocation", Action: "created", Source: "/functions/invocations", Subject: id,
			Revision: 1, Record: record,
		})
	})
	if err != nil {
		return apperr.Unknown(err)
	}
	return failed
}
