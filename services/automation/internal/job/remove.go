package job

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// leftover is a deleted job whose runs are still there.
type leftover struct {
	docstore.Meta            // the job's id
	Since         clock.Time `json:"since"`
}

var leftovers = docstore.Define(docstore.Schema[leftover]{
	Name: "job_leftovers", Noun: "leftover", Part: true,
	Due: func(l *leftover) clock.Time { return l.Since },
})

const runsAtOnce = 10 // that one transaction of a job's deletion removes

// Delete deletes a job. Its unfinished runs are not told as finished, calls that are being made go on, and what they
// report is refused. The runs themselves go with it, or soon after. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	deleted, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		j, err := jobs.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, discard(ctx, tx, j)
	})
	if err == nil && !docstore.IsDryRun(ctx) {
		_, _ = s.clear(docstore.Aside(ctx), id) // what fails now, or is left, is done by the task
	}
	return deleted, err
}

// DeleteMany deletes the jobs that exist among ids, and returns how many there were.
func (s *Jobs) DeleteMany(ctx context.Context, ids []string) (int, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (int, error) {
		found, err := jobs.LoadMany(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		for _, j := range found {
			if err := discard(ctx, tx, j); err != nil {
				return 0, err
			}
		}
		return len(found), nil
	})
}

// discard deletes a loaded job and leaves its runs to the task.
func discard(ctx context.Context, tx *docstore.Tx, j *Job) error {
	if _, err := leftovers.Insert(ctx, tx, &leftover{Meta: docstore.Meta{ID: j.ID}, Since: tx.Now}); err != nil {
		return err
	}
	doc, err := jobs.Delete(ctx, tx, j)
	if err != nil {
		return err
	}
	return tell(ctx, tx, "deleted", &doc)
}

// DueLeftovers lists deleted jobs whose runs are still there.
func DueLeftovers(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return leftovers.Due(ctx, store, limit)
}

// Clear removes all runs of a deleted job.
func (s *Jobs) Clear(ctx context.Context, id string) error {
	for {
		if left, err := s.clear(ctx, id); err != nil || !left {
			return err
		}
	}
}

// clear removes some runs of a deleted job, or what says that there are any if there are none.
func (s *Jobs) clear(ctx context.Context, id string) (left bool, err error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (bool, error) {
		l, err := leftovers.Load(ctx, tx, id)
		if err != nil {
			return false, err
		}
		found, err := subJobs.LoadWhere(ctx, tx, docstore.Prefix(byNumber, id+"/"), byNumber, runsAtOnce)
		if err != nil {
			return false, err
		}
		for _, sub := range found {
			if err := remove(ctx, tx, sub.ID); err != nil {
				return false, err
			}
		}
		if len(found) == runsAtOnce {
			return true, nil
		}
		_, err = leftovers.Delete(ctx, tx, l)
		return false, err
	})
}

// remove deletes a run with its parts and all that belongs to them.
func remove(ctx context.Context, tx *docstore.Tx, root string) error {
	ofRoot := docstore.Eq(byRoot, docstore.Text(root))
	var ids []string
	err := subJobs.DeleteWhere(ctx, tx, ofRoot, func(doc SubDoc) error { ids = append(ids, doc.ID); return nil })
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := lines.DeleteWhere(ctx, tx, ofRoot, nil); err != nil {
		return err
	}
	return runs.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
}

// forget removes the oldest runs of a job, so that at most keptRuns finished ones stay.
func forget(ctx context.Context, tx *docstore.Tx, j *Job) error {
	if j.Fired < keptRuns {
		return nil
	}
	outdated := docstore.Range(byNumber, docstore.Text(j.ID+"/"), docstore.Text(runNumber(j.ID, j.Fired-keptRuns+2)))
	found, err := subJobs.LoadWhere(ctx, tx, outdated, byNumber, 2) // two for each new one: the number goes down
	if err != nil {
		return err
	}
	for _, sub := range found {
		if !sub.isOver() {
			continue
		}
		if err := remove(ctx, tx, sub.ID); err != nil {
			return err
		}
	}
	return nil
}

// DueSubJobs lists runs that are over for so long that they are removed.
func DueSubJobs(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return subJobs.Due(ctx, store, limit)
}

// Forget removes a run that has been over for a week. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Forget(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		sub, err := subJobs.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if !sub.isOver() || sub.TimeFinished.Add(keepFor).After(tx.Now) {
			return apperr.New(apperr.VersionMismatch, "it is not due")
		}
		return remove(ctx, tx, id)
	})
}
