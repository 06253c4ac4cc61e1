package job

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/work"
)

// misfireAfter is how late a time may fire if nobody was there to fire it. A later one is missed, and the job's misfire
// setting says what happens. A time that is late because much is due is not missed.
const misfireAfter = time.Minute

const (
	// FiresAtOnce is how many jobs of a tenant one transaction fires.
	FiresAtOnce = 8
	// DuePage is how many jobs DueJobs lists at a time: those of half a second. Then it looks again which tenants have
	// jobs that are due.
	DuePage = perSecond / 2
)

// DueJobs lists up to limit jobs that are due, and some of other tenants if one tenant has most of them.
func (s *Jobs) DueJobs(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	if err := s.noteFiring(ctx); err != nil {
		return nil, err
	}
	groups, err := s.dueJobs.List(ctx, store, limit)
	return slices.Concat(groups...), err
}

// Fire starts a run of a job that is due and sets the job's next time, in one transaction. So each time fires once,
// however many replicas try. The error is apperr.NotFound or VersionMismatch.
func (s *Jobs) Fire(ctx context.Context, id string) error {
	err := s.FireAll(ctx, []string{id})
	if apperr.KindOf(err) == apperr.AlreadyExists { // this time has a run; the clock was set back after it fired
		err = s.fire(ctx, []string{id}, nil)
	}
	return err
}

// FireAll is Fire for up to FiresAtOnce jobs of a tenant, in one transaction. The error is also apperr.AlreadyExists.
func (s *Jobs) FireAll(ctx context.Context, ids []string) error {
	if err := s.fires.WaitN(ctx, len(ids)); err != nil {
		return err
	}
	if err := s.noteFiring(ctx); err != nil {
		return err
	}
	runIDs, err := s.Store.NewIDs(ctx, len(ids))
	if err != nil {
		return err
	}
	return s.fire(ctx, ids, runIDs)
}

// fire sets the next times of jobs that are due. With runIDs, one for each job, it also starts runs.
func (s *Jobs) fire(ctx context.Context, ids, runIDs []string) error {
	if len(ids) == 1 {
		ctx = docstore.InTurn(ctx, "job "+ids[0])
	}
	defer s.Queue.Wake()
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		due, err := jobs.LoadMany(ctx, tx, ids)
		if err != nil {
			return err
		}
		for i, j := range due {
			runID := ""
			if runIDs != nil {
				runID = runIDs[i]
			}
			if err := j.fire(ctx, tx, runID, s.watchCopy.since()); err != nil {
				return err
			}
		}
		return nil
	})
}

// fire sets the next time of a loaded job and, if runID is not "", starts a run. since is when replicas began to fire
// jobs without a gap.
func (j *Job) fire(ctx context.Context, tx *docstore.Tx, runID string, since clock.Time) error {
	at := j.NextFireTime.time()
	if at.IsZero() || at.After(tx.Now) { // another replica was first
		return nil
	}
	missed := tx.Now.Sub(at) > misfireAfter && since.Sub(at) > misfireAfter
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
	_, err := jobs.As("finished").Touch(ctx, tx, j)
	return err
}

// start adds a run to a loaded job, unless the job's concurrency forbids it. at is the time that the run fires for, or
// zero if it is triggered. The caller must store the job afterwards: then transactions that start runs of the same job
// conflict, and each sees the runs of those before.
func start(ctx context.Context, tx *docstore.Tx, j *Job, id string, payload jsontext.Value, at clock.Time) (
	_ SubDoc, started bool, _ error) {
	active, err := unfinished(ctx, tx, j)
	if err != nil {
		return SubDoc{}, false, err
	}
	r := &run{Item: work.New(tx.Now), JobID: j.ID, Phase: ready}
	r.ID = id
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
	j.LastSubJobID = Number(last)
	if _, err := runs.Insert(ctx, tx, r); err != nil {
		return SubDoc{}, false, err
	}
	doc, err := subJobs.Insert(ctx, tx, &SubJob{
		Meta: docstore.Meta{ID: id}, JobID: j.ID, RootID: id, Name: j.Name, Number: j.Fired, State: pending,
		Payload: orNull(payload), Result: orNull(nil), TimeScheduled: at,
	})
	return doc, err == nil, err
}

// unfinished counts a job's unfinished runs. Where runs wait for others (queue) it loads them: the transaction then
// runs again if one of them ends meanwhile, so that no run waits for one that is over.
func unfinished(ctx context.Context, tx *docstore.Tx, j *Job) (int64, error) {
	ofJob := docstore.Eq(byActive, docstore.Text(j.ID))
	if j.Concurrency != queue {
		return runs.Count(ctx, tx, ofJob)
	}
	found, err := runs.LoadWhere(ctx, tx, ofJob, "", maxQueued+1)
	return int64(len(found)), err
}

// orNull returns JSON's null for an absent value.
func orNull(value jsontext.Value) jsontext.Value {
	if len(value) == 0 {
		return jsontext.Value("null")
	}
	return value
}
