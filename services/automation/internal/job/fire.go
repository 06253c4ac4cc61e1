package job

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// misfireAfter is how late a time may fire. What is later has been missed, and the job's misfire rule decides.
const misfireAfter = time.Minute

const (
	// FiresAtOnce is how many jobs of a tenant one transaction fires.
	FiresAtOnce = 8
	// DuePage is how many jobs fire before it is looked anew which tenants have others: those of half a second.
	DuePage = perSecond / 2
)

// DueJobs lists jobs that are to fire, tenants in turn.
func (s *Jobs) DueJobs(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	groups, err := s.due.list(ctx, store, limit)
	return slices.Concat(groups...), err
}

// Fire starts a run of a job whose time has come, and sets its next time, in one transaction. So each time fires once,
// whichever replicas try. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Fire(ctx context.Context, id string) error {
	err := s.FireAll(ctx, []string{id})
	if apperr.KindOf(err) == apperr.AlreadyExists { // the time has fired; the clock was set back since
		err = s.fire(ctx, []string{id}, nil)
	}
	return err
}

// FireAll is Fire for up to FiresAtOnce jobs of a tenant, in one transaction.
func (s *Jobs) FireAll(ctx context.Context, ids []string) error {
	if err := s.fires.WaitN(ctx, len(ids)); err != nil {
		return err
	}
	runIDs, err := s.Store.NewIDs(ctx, len(ids))
	if err != nil {
		return err
	}
	return s.fire(ctx, ids, runIDs)
}

// fire sets the next times of jobs and, if there are ids for them, starts runs.
func (s *Jobs) fire(ctx context.Context, ids, runIDs []string) error {
	if len(ids) == 1 {
		ctx = docstore.InTurn(ctx, "job "+ids[0])
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		due, err := jobs.LoadMany(ctx, tx, ids)
		if err != nil {
			return err
		}
		for i, j := range due {
			runtime.Gosched() // requests that wait for a processor go first
			runID := ""
			if runIDs != nil {
				runID = runIDs[i]
			}
			if err := j.fire(ctx, tx, runID); err != nil {
				return err
			}
		}
		return nil
	})
}

// fire sets the next time of a loaded job and, if runID is not "", starts a run.
func (j *Job) fire(ctx context.Context, tx *docstore.Tx, runID string) error {
	at := j.NextFireTime.time()
	if at.IsZero() || at.After(tx.Now) { // another replica was first
		return nil
	}
	missed := tx.Now.Sub(at) > misfireAfter
	if runID != "" && (!missed || j.Misfire == fireOnce) {
		if _, _, err := start(ctx, tx, j, runID, j.Target.Payload, at); err != nil {
			return err
		}
	}
	from := at
	if missed {
		from = tx.Now
	}
	next := j.Schedule.next(j.ScheduledSince, from)
	j.NextFireTime = momentOf(next)
	if !next.IsZero() {
		_, err := jobs.Recount(ctx, tx, j)
		return err
	}
	j.State = finished
	doc, err := jobs.Touch(ctx, tx, j)
	if err != nil {
		return err
	}
	return tell(ctx, tx, "finished", &doc)
}

// start adds a run to a loaded job, which the caller must store afterwards: that makes transactions that start runs of
// one job follow each other. It starts none if the job's concurrency forbids it.
func start(ctx context.Context, tx *docstore.Tx, j *Job, id string, payload json.RawMessage, at clock.Time) (
	_ SubDoc, started bool, _ error) {
	active, err := unfinished(ctx, tx, j)
	if err != nil {
		return SubDoc{}, false, err
	}
	r := &run{Meta: docstore.Meta{ID: id}, JobID: j.ID, Phase: ready, Next: tx.Now}
	switch {
	case j.Concurrency == skip && active > 0, j.Concurrency == queue && active > maxQueued, active >= maxWaiting:
		return SubDoc{}, false, nil
	case j.Concurrency == queue && active > 0:
		r.Phase, r.Next = queued, clock.Time{}
	}
	if err := forget(ctx, tx, j); err != nil {
		return SubDoc{}, false, err
	}
	j.Fired++
	last, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return SubDoc{}, false, err
	}
	j.LastSubJobID = number(last)
	if _, err := runs.Insert(ctx, tx, r); err != nil {
		return SubDoc{}, false, err
	}
	doc, err := subJobs.Insert(ctx, tx, &SubJob{
		Meta: docstore.Meta{ID: id}, JobID: j.ID, RootID: id, Name: j.Name, Number: j.Fired, State: pending,
		Payload: orNull(payload), Result: orNull(nil), TimeScheduled: at,
	})
	if err != nil {
		return SubDoc{}, false, err
	}
	return doc, true, tellSub(ctx, tx, "created", &doc)
}

// unfinished counts a job's runs. For a queue it loads them: the transaction then runs again if one of them ends
// meanwhile, so that no run waits for one that is over.
func unfinished(ctx context.Context, tx *docstore.Tx, j *Job) (int64, error) {
	ofJob := docstore.Eq(byActive, docstore.Text(j.ID))
	if j.Concurrency != queue {
		return runs.Count(ctx, tx, ofJob)
	}
	found, err := runs.LoadWhere(ctx, tx, ofJob, "", maxQueued+1)
	return int64(len(found)), err
}

// orNull is JSON for a value that may be absent.
func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
