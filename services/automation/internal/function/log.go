package function

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

// LogEntry is an entry of a function's logs: a call that logged something, failed, or was triggered by an event.
type LogEntry struct {
	docstore.Meta
	FunctionID string          `json:"function_id" doc:"The function" example:"1048576"`
	Cause      string          `json:"cause" enum:"invoke,job,event" doc:"Why it ran"`
	EventID    string          `json:"event_id" doc:"Of the event that triggered it"`
	Attempt    int64           `json:"attempt" doc:"Of a run that an event triggered; 0 for other causes"`
	Revision   int64           `json:"revision" doc:"The revision that ran" example:"1"`
	Outcome    sandbox.Outcome `json:"outcome" enum:"succeeded,failed,timed_out,out_of_memory,crashed" doc:"How the call ended"`
	Error      *sandbox.Fault  `json:"error,omitempty" doc:"Why it did not succeed"`
	Logs       []sandbox.Line  `json:"logs" nullable:"false" doc:"What it logged"`
	DurationMS int64           `json:"duration_ms" doc:"Without waiting for a worker and compiling" example:"1"`
	TimeEnd    clock.Time      `json:"time_end" doc:"When the entry is deleted" example:"2026-02-07T09:30:00.000Z"`
}

const (
	maxEntries = 100 // of a function
	keepFor    = 7 * 24 * time.Hour
)

var logs = docstore.Define(docstore.Schema[LogEntry]{
	Name: "function_logs", Noun: "log entry", NoIfMatch: true,
	Sortable: []string{byTimeCreated},
	Indexes: []docstore.Index[LogEntry]{
		docstore.ByText(byFunction, func(e *LogEntry) string { return e.FunctionID }),
		docstore.ByNumber(byTimeCreated, func(e *LogEntry) docstore.Value { return docstore.Moment(e.TimeCreated) }),
	},
	Due: func(e *LogEntry) clock.Time { return e.TimeEnd },
})

// with returns the entry with the result of a call.
func (e LogEntry) with(v *Invocation) LogEntry {
	e.Outcome, e.Error, e.Logs, e.DurationMS = v.Outcome, v.Error, v.Logs, v.DurationMS
	return e
}

// note adds an entry to a function's logs. If that fails, it only logs a warning: the call has happened all the same.
func (s *Functions) note(ctx context.Context, f *Function, e LogEntry) {
	ctx = docstore.WithoutCommitHook(context.WithoutCancel(ctx))
	if err := s.addEntry(ctx, f, e); err != nil {
		s.Log.WarnContext(ctx, "the log of a function's call is lost", "function", f.ID, "error", err)
	}
}

// noteFailure adds an entry about a run that failed without a call of the function.
func (s *Functions) noteFailure(ctx context.Context, f *Function, e LogEntry, reason string) {
	s.note(ctx, f, e.failed(reason))
}

// failed returns the entry of a run that failed without a call of the function.
func (e LogEntry) failed(reason string) LogEntry {
	return e.with(&Invocation{Outcome: sandbox.Failed, Error: &sandbox.Fault{Message: reason}, Logs: []sandbox.Line{}})
}

// addEntry adds an entry to a function's logs.
func (s *Functions) addEntry(ctx context.Context, f *Function, e LogEntry) error {
	var err error
	if e.ID, err = s.Store.NewID(ctx); err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		if _, err := functions.Find(ctx, tx.Peek(), f.ID); err != nil { // it was deleted meanwhile
			return err
		}
		return insertEntry(ctx, tx, f, e)
	})
}

// insertEntry adds an entry, which has an id, and deletes the oldest ones if there are too many. The transaction does
// not depend on how many there are, because those of other calls would run again.
func insertEntry(ctx context.Context, tx *docstore.Tx, f *Function, e LogEntry) error {
	e.FunctionID, e.Revision, e.TimeEnd = f.ID, f.Revision, tx.Now.Add(keepFor)
	of := docstore.Eq(byFunction, docstore.Text(f.ID))
	n, err := logs.Count(ctx, tx.Peek(), of)
	if err != nil {
		return err
	}
	if n >= maxEntries {
		if err := dropOldest(ctx, tx, of, int(n)-maxEntries+1); err != nil {
			return err
		}
	}
	_, err = logs.Insert(ctx, tx, &e)
	return err
}

// LogFilter selects the log entries of a function.
type LogFilter struct {
	FunctionID string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
	docstore.Paging
}

// Logs returns a page of a function's log entries. The error is apperr.NotFound.
func (s *Functions) Logs(ctx context.Context, f LogFilter) (docstore.Page[LogEntry], error) {
	if _, err := functions.Find(ctx, s.Store, f.FunctionID); err != nil {
		return docstore.Page[LogEntry]{}, err
	}
	return logs.List(ctx, s.Store, docstore.Eq(byFunction, docstore.Text(f.FunctionID)), f.Paging)
}

// DueLogs lists log entries that are older than a week.
func DueLogs(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return logs.Due(ctx, s, limit)
}

// ForgetLog deletes a log entry. The error is apperr.NotFound if another replica was first.
func (s *Functions) ForgetLog(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		e, err := logs.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = logs.Delete(ctx, tx, e)
		return err
	})
}

func dropOldest(ctx context.Context, tx *docstore.Tx, of docstore.Filter, n int) error {
	oldest, err := logs.LoadWhere(ctx, tx, of, byTimeCreated, n)
	if err != nil {
		return err
	}
	for _, old := range oldest {
		if _, err := logs.Delete(ctx, tx, old); err != nil {
			return err
		}
	}
	return nil
}
