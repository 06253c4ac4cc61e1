package job

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// leftover is a deleted job whose runs may still be stored.
type leftover struct {
	docstore.Meta            // with the job's id
	Since         clock.Time `json:"since"`
}

var leftovers = docstore.Define(docstore.Schema[leftover]{
	Name: "job_leftovers", Noun: "leftover", NoIfMatch: true,
	Due: func(l *leftover) clock.Time { return l.Since },
})

const runsAtOnce = 10 // runs of a deleted job that one transaction removes

// Delete deletes a job. Its runs are removed too: the first ones at once, the others soon afterwards, with no event
// that they have finished. Calls in progress go on, and their reports are refused once the runs are removed. The error
// is apperr.NotFound or VersionMismatch.
func (s *Jobs) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	deleted, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		j, err := jobs.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, discard(ctx, tx, j)
	})
	if err == nil && !docstore.IsDryRun(ctx) {
		_, _ = s.clear(docstore.WithoutCommitHook(ctx), id) // if it fails, or runs are left, the task removes them
	}
	return deleted, err
}

// DeleteMany deletes those of the jobs that exist, and returns how many there were. A task removes their runs.
func (s *Jobs) DeleteMany(ctx context.Context, ids []string) (int, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (int, error) {
		if err := jobs.ReadAhead(ctx, tx, ids...); err != nil {
			return 0, err
		}
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

// discard deletes a loaded job, and has the task remove its runs.
func discard(ctx context.Context, tx *docstore.Tx, j *Job) error {
	if _, err := leftovers.Insert(ctx, tx, &leftover{Meta: docstore.Meta{ID: j.ID}, Since: tx.Now}); err != nil {
		return err
	}
	_, err := jobs.Delete(ctx, tx, j)
	return err
}

// DueLeftovers lists deleted jobs whose runs may still be stored.
func DueLeftovers(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return leftovers.Due(ctx, store, limit)
}

// Clear removes all runs of a deleted job. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Clear(ctx context.Context, id string) error {
	for {
		if left, err := s.clear(ctx, id); err != nil || !left {
			return err
		}
	}
}

// clear removes up to runsAtOnce runs of a deleted job, and its leftover with the last of them. left says that there
// may be more.
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

// remove deletes a run and its parts, with their log lines.
func remove(ctx context.Context, tx *docstore.Tx, root string) error {
	ofRoot := docstore.Eq(byRoot, docstore.Text(root))
	var ids []string
	err := subJobs.Collection.DeleteWhere(ctx, tx, ofRoot, func(doc SubDoc) error {
		ids = append(ids, doc.ID)
		return nil
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := lines.DeleteWhere(ctx, tx, ofRoot, nil); err != nil {
		return err
	}
	return runs.DeleteWhere(ctx, tx, docstore.ID(ids...), nil)
}

// forget removes the oldest finished runs of a job that is about to get another run, so that at most keptRuns stay. It
// removes two of those that are too many, so that their number goes down.
func forget(ctx context.Context, tx *docstore.Tx, j *Job) error {
	if j.Fired < keptRuns {
		return nil
	}
	outdated := docstore.Range(byNumber, docstore.Text(j.ID+"/"), docstore.Text(runNumber(j.ID, j.Fired-keptRuns+2)))
	found, err := subJobs.LoadWhere(ctx, tx, outdated, byNumber, 2)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(sub *SubJob) bool { return !sub.isOver() }) { // newer ones may have finished
		over := docstore.In(byState, docstore.Text(succeeded), docstore.Text(failed), docstore.Text(cancelled),
			docstore.Text(timedOut))
		if found, err = subJobs.LoadWhere(ctx, tx, docstore.And(outdated, over), byNumber, 2); err != nil {
			return err
		}
	}
	for _, sub := range found {
		if err := remove(ctx, tx, sub.ID); err != nil {
			return err
		}
	}
	return nil
}

// DueSubJobs lists runs that have been over for a week.
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
			return apperr.New(apperr.VersionMismatch, "the run is not due to be removed")
		}
		return remove(ctx, tx, id)
	})
}
