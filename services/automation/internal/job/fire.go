package job

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// misfireAfter is how late a time may fire. What is later has been missed, and the job's misfire rule decides.
const misfireAfter = time.Minute

// DueJobs lists jobs that are to fire.
func DueJobs(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return jobs.Due(ctx, store, limit)
}

// Fire starts a run of a job whose time has come, and sets its next time, in one transaction. So each time fires once,
// whichever replicas try. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Fire(ctx context.Context, id string) error {
	if err := s.fires.Wait(ctx); err != nil {
		return err
	}
	runID, err := s.Store.NewID(ctx)
	if err != nil {
		return err
	}
	err = s.fire(ctx, id, runID, true)
	if apperr.KindOf(err) == apperr.AlreadyExists { // the time has fired; the clock was set back since
		err = s.fire(ctx, id, runID, false)
	}
	return err
}

// fire sets a job's next time and, if begin is set, starts a run.
func (s *Jobs) fire(ctx context.Context, id, runID string, begin bool) error {
	return docstore.Do(docstore.InTurn(ctx, "job "+id), s.Store, func(tx *docstore.Tx) error {
		j, err := jobs.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		at := j.NextFireTime.time()
		if at.IsZero() || at.After(tx.Now) { // another replica was first
			return nil
		}
		missed := tx.Now.Sub(at) > misfireAfter
		if begin && (!missed || j.Misfire == fireOnce) {
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
		if next.IsZero() {
			j.State = finished
		}
		doc, err := jobs.Replace(ctx, tx, j)
		if err != nil || j.State != finished {
			return err
		}
		return tell(ctx, tx, "finished", &doc)
	})
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
