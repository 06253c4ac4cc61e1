package job

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// SubFilter selects sub-jobs whose members are equal to its own. Empty members select all.
type SubFilter struct {
	JobID    string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
	State    string `query:"state" enum:"pending,running,succeeded,failed,cancelled,timed_out"`
	ParentID string `query:"parent_id" maxLength:"64" doc:"Only the parts of this sub-job"`
	docstore.Paging
}

// SubJobs returns a page of a job's sub-jobs. The error is apperr.NotFound if there is no such job.
func (s *Jobs) SubJobs(ctx context.Context, f SubFilter) (docstore.Page[SubJob], error) {
	if _, err := s.Get(ctx, f.JobID); err != nil {
		return docstore.Page[SubJob]{}, err
	}
	where := docstore.And(docstore.Eq(byJob, docstore.Text(f.JobID)), docstore.EqOrAll(byState, f.State),
		docstore.EqOrAll(byParent, f.ParentID))
	return subJobs.List(ctx, s.Store, where, f.Paging)
}

// SubJob returns a sub-job of a job. The error is apperr.NotFound.
func (s *Jobs) SubJob(ctx context.Context, jobID, id string) (SubDoc, error) {
	doc, err := subJobs.Find(ctx, s.Store, id)
	if err != nil {
		return doc, err
	}
	sub, err := doc.Value()
	if err == nil && sub.JobID != jobID {
		err = apperr.Missing("sub-job")
	}
	return doc, err
}

// loadOpen loads an unfinished sub-job of a job, with its run. The error is apperr.NotFound, VersionMismatch or
// InvalidState.
func loadOpen(ctx context.Context, tx *docstore.Tx, jobID, id string) (*SubJob, *run, error) {
	sub, err := subJobs.Load(ctx, tx, id)
	if err == nil && sub.JobID != jobID {
		err = apperr.Missing("sub-job")
	}
	if err != nil {
		return nil, nil, err
	}
	if sub.isOver() {
		return nil, nil, apperr.New(apperr.InvalidState, "the sub-job is over")
	}
	r, err := runs.Load(ctx, tx, id)
	return sub, r, err
}

// Part has the members of a part that clients set.
type Part struct {
	ParentID string         `json:"parent_id" doc:"An unfinished sub-job of the job" example:"1048577"`
	Name     string         `json:"name" doc:"1…128 characters" example:"Page 1"`
	Payload  jsontext.Value `json:"payload" required:"false" doc:"Up to 64 KiB" example:"{\"page\":1}"`
}

// NewPart is a part with the callback token for its worker, which is shown once.
type NewPart struct {
	Doc   SubDoc
	Token Ticket
}

// Stored returns the part's JSON, with the member callback_token added at its end, and its ETag.
func (p NewPart) Stored() (body []byte, tag string, err error) {
	body, err = p.Doc.JSON()
	token := `,"callback_token":"` + string(p.Token) + `"}`
	return append([]byte(strings.TrimSuffix(string(body), "}")), token...), p.Doc.Tag(), err
}

// AddPart splits a part off an unfinished sub-job. Its worker reports its progress and result; the platform does not
// run it. The error is apperr.NotFound, InvalidParameters or InvalidState.
func (s *Jobs) AddPart(ctx context.Context, jobID string, p Part) (NewPart, error) {
	var faults apperr.Faults
	faults.Name("name", p.Name, maxName)
	checkPayload(&faults, "payload", p.Payload)
	faults.Check(p.ParentID != "", "parent_id", "is missing")
	if err := faults.Err(); err != nil {
		return NewPart{}, err
	}
	if _, err := s.Get(ctx, jobID); err != nil {
		return NewPart{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return NewPart{}, err
	}
	token := newTicket(s.Keys, request.Tenant(ctx), id, 1)
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (NewPart, error) {
		parent, _, err := loadOpen(ctx, tx, jobID, p.ParentID)
		if apperr.IsNotFound(err) {
			return NewPart{}, apperr.Invalid("parent_id", "is not the id of a sub-job of this job")
		}
		if err != nil {
			return NewPart{}, err
		}
		root, err := runs.Load(ctx, tx, parent.RootID)
		if err != nil {
			return NewPart{}, err
		}
		if root.Parts++; root.Parts > maxParts {
			return NewPart{}, apperr.New(apperr.InvalidState, "a run has at most %d parts", maxParts)
		}
		if _, err := runs.Replace(ctx, tx, root); err != nil {
			return NewPart{}, err
		}
		r := &run{JobID: jobID, Part: true, Phase: accepted}
		r.ID, r.Attempt = id, 1
		if _, err := runs.Insert(ctx, tx, r); err != nil {
			return NewPart{}, err
		}
		doc, err := subJobs.Insert(ctx, tx, &SubJob{
			Meta: docstore.Meta{ID: id}, JobID: jobID, ParentID: parent.ID, RootID: parent.RootID, Name: p.Name,
			State: pending, Attempt: 1, Payload: orNull(p.Payload), Result: orNull(nil),
		})
		return NewPart{doc, token}, err
	})
}

// Report is the result of a sub-job, as its worker sends it.
type Report struct {
	State  string         `json:"state" enum:"succeeded,failed" doc:"How it ended"`
	Result jsontext.Value `json:"result" required:"false" doc:"Up to 64 KiB" example:"{\"rows\":120}"`
	Error  string         `json:"error" required:"false" doc:"Up to 2048 characters"`
}

// Finish stores the result of a sub-job. A failed run is tried again if its job allows another attempt. The error is
// apperr.Unauthenticated, NotFound, InvalidParameters, VersionMismatch, or InvalidState if the sub-job or the token's
// attempt is over.
func (s *Jobs) Finish(ctx context.Context, t Ticket, jobID, id string, report Report) (SubDoc, error) {
	var faults apperr.Faults
	oneOf(&faults, "state", &report.State, succeeded, failed)
	faults.Check(len(report.Result) <= maxResult, "result", "must have at most %d KiB", maxResult>>10)
	faults.Prose("error", report.Error, maxError)
	ctx, err := s.workerContext(ctx, t, &faults)
	if err != nil {
		return SubDoc{}, err
	}
	defer s.Queue.Wake() // another run of the job may begin
	doc, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (SubDoc, error) {
		if err := s.admit(ctx, tx, t, id); err != nil {
			return SubDoc{}, err
		}
		sub, r, err := loadOpen(ctx, tx, jobID, id)
		if err != nil {
			return SubDoc{}, err
		}
		if r.Phase == queued || r.Phase == ready {
			return SubDoc{}, apperr.New(apperr.InvalidState, "the sub-job is not running")
		}
		if report.State == failed && !r.Part {
			j, err := find(ctx, tx, jobID)
			if err != nil {
				return SubDoc{}, err
			}
			err = fail(ctx, tx, j, sub, r, failed, report.Error, 0)
			return written(ctx, tx, id, err)
		}
		return written(ctx, tx, id, end(ctx, tx, sub, r, report.State, report.Result, report.Error))
	})
	if err == nil && !docstore.IsDryRun(ctx) {
		s.Queue.BreakOff(docstore.Ref{Tenant: request.Tenant(ctx), ID: id})
	}
	return doc, err
}

// written returns a sub-job as the transaction has written it, unless err is set.
func written(ctx context.Context, tx *docstore.Tx, id string, err error) (SubDoc, error) {
	if err != nil {
		return SubDoc{}, err
	}
	return subJobs.Find(ctx, tx, id)
}

// Progress has the members of an unfinished sub-job that a worker can change.
type Progress struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Progress int64  `json:"progress"`
}

// UpdateSubJob applies edit to an unfinished sub-job. The error is apperr.Unauthenticated, NotFound, InvalidParameters,
// VersionMismatch or InvalidState, or that of edit.
func (s *Jobs) UpdateSubJob(ctx context.Context, t Ticket, jobID, id string, edit func(*Progress) error) (SubDoc,
	error) {
	ctx, err := t.Context(ctx)
	if err != nil {
		return SubDoc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (SubDoc, error) {
		if err := s.admit(ctx, tx, t, id); err != nil {
			return SubDoc{}, err
		}
		sub, r, err := loadOpen(ctx, tx, jobID, id)
		if err != nil {
			return SubDoc{}, err
		}
		p := Progress{sub.Name, sub.State, sub.Progress}
		if err := edit(&p); err != nil {
			return SubDoc{}, err
		}
		var faults apperr.Faults
		faults.Name("name", p.Name, maxName)
		faults.Check(p.Progress >= 0 && p.Progress <= 100, "progress", "must lie in 0…100")
		faults.Check(p.State == sub.State || r.Part && p.State == running, "state",
			"can only be changed to running, and only of a part")
		if err := faults.Err(); err != nil {
			return SubDoc{}, err
		}
		if p.State != sub.State {
			sub.TimeStarted = tx.Now
		}
		sub.Name, sub.State, sub.Progress = p.Name, p.State, p.Progress
		return subJobs.Replace(ctx, tx, sub)
	})
}

// Cancel ends an unfinished sub-job and its parts. If this replica has its call in progress, the call is broken off. A
// result that is reported later is refused. The error is apperr.NotFound, VersionMismatch or InvalidState.
func (s *Jobs) Cancel(ctx context.Context, jobID, id string) (SubDoc, error) {
	defer s.Queue.Wake() // another run of the job may begin
	doc, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (SubDoc, error) {
		sub, r, err := loadOpen(ctx, tx, jobID, id)
		if err != nil {
			return SubDoc{}, err
		}
		return written(ctx, tx, id, end(ctx, tx, sub, r, cancelled, nil, ""))
	})
	if err == nil && !docstore.IsDryRun(ctx) {
		s.Queue.BreakOff(docstore.Ref{Tenant: request.Tenant(ctx), ID: id})
	}
	return doc, err
}
