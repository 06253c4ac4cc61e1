package job

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	maxLines   = 1000 // of a run and its parts
	maxAdded   = 100  // in one request
	maxMessage = 4096 // characters
)

// Line is a line of a sub-job's log. Its JSON form is the API's and the store's.
type Line struct {
	docstore.Meta
	JobID    string     `json:"job_id" doc:"The job" example:"1048576"`
	SubJobID string     `json:"sub_job_id" doc:"The run, or the part of it" example:"1048577"`
	RootID   string     `json:"root_id" doc:"The run" example:"1048577"`
	Time     clock.Time `json:"time" doc:"When it happened" example:"2026-01-31T09:30:00.000Z"`
	Level    string     `json:"level" enum:"debug,info,warn,error" doc:"How bad it is"`
	Message  string     `json:"message" doc:"Up to 4096 characters" example:"120 rows read"`
}

// LineDraft has the members of a line that clients set.
type LineDraft struct {
	Time    clock.Time `json:"time" required:"false" doc:"Now if absent"`
	Level   string     `json:"level" required:"false" enum:"debug,info,warn,error" doc:"info if absent"`
	Message string     `json:"message" doc:"Up to 4096 characters" example:"120 rows read"`
}

const (
	bySubJob = "sub_job"
	byTime   = "time"
)

var lines = docstore.Define(docstore.Schema[Line]{
	Name: "job_logs", Noun: "line",
	Sortable: []string{byTime},
	Indexes: []docstore.Index[Line]{
		docstore.ByText(byJob, func(l *Line) string { return l.JobID }),
		docstore.ByText(bySubJob, func(l *Line) string { return l.SubJobID }),
		docstore.ByText(byRoot, func(l *Line) string { return l.RootID }),
		docstore.ByNumber(byTime, func(l *Line) docstore.Value { return docstore.Moment(l.Time) }),
	},
})

// AddLines adds lines to the log of an unfinished sub-job. The error is apperr.Unauthenticated, NotFound,
// InvalidParameters, or InvalidState if the sub-job is over or the log of its run is full.
func (s *Jobs) AddLines(ctx context.Context, t Ticket, jobID, id string, drafts []LineDraft) (docstore.Batch, error) {
	var faults apperr.Faults
	faults.Check(len(drafts) >= 1 && len(drafts) <= maxAdded, "lines", "must have 1…%d items", maxAdded)
	for i := range drafts {
		line := faults.Within(apperr.Item("lines", i))
		oneOf(line, "level", &drafts[i].Level, "info", "debug", "warn", "error")
		line.Prose("message", drafts[i].Message, maxMessage)
	}
	ctx, err := s.workerContext(ctx, t, &faults)
	if err != nil {
		return docstore.Batch{}, err
	}
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return docstore.Batch{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Batch, error) {
		if err := s.admit(ctx, tx, t, id); err != nil {
			return docstore.Batch{}, err
		}
		sub, _, err := loadOpen(ctx, tx, jobID, id)
		if err != nil {
			return docstore.Batch{}, err
		}
		root, err := runs.Load(ctx, tx, sub.RootID)
		if err != nil {
			return docstore.Batch{}, err
		}
		if root.Logs += int64(len(drafts)); root.Logs > maxLines {
			return docstore.Batch{}, apperr.New(apperr.InvalidState, "a run's log has at most %d lines",
				maxLines)
		}
		if _, err := runs.Replace(ctx, tx, root); err != nil {
			return docstore.Batch{}, err
		}
		added := make([]docstore.Doc[Line], len(drafts))
		for i, d := range drafts {
			if d.Time.IsZero() {
				d.Time = tx.Now
			}
			added[i], err = lines.Insert(ctx, tx, &Line{Meta: docstore.Meta{ID: ids[i]}, JobID: jobID, SubJobID: id,
				RootID: sub.RootID, Time: d.Time, Level: d.Level, Message: d.Message})
			if err != nil {
				return docstore.Batch{}, err
			}
		}
		return docstore.BatchOf(slices.Clip(added))
	})
}

// Lines returns a page of the log of a job, or of one of its sub-jobs if id is not "". The error is apperr.NotFound.
func (s *Jobs) Lines(ctx context.Context, jobID, id string, p docstore.Paging) (docstore.Page[Line], error) {
	var err error
	where := docstore.Eq(byJob, docstore.Text(jobID))
	if id == "" {
		_, err = s.Get(ctx, jobID)
	} else {
		_, err = s.SubJob(ctx, jobID, id)
		where = docstore.Eq(bySubJob, docstore.Text(id))
	}
	if err != nil {
		return docstore.Page[Line]{}, err
	}
	return lines.List(ctx, s.Store, where, p)
}
