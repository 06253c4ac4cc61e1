package job

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// errOver refuses a report about an attempt that is not the current one: the run has ended, or another replica or
// worker has it.
var errOver = apperr.New(apperr.InvalidState, "the attempt is over")

// claim claims those of the tenant's runs that are still due, and returns the calls to be made. There is no call for a
// run whose lease, or time for the result of an accepted call, has ended: it ends that attempt. changed counts the runs
// of both kinds; with an error there are none.
func (s *Jobs) claim(ctx context.Context, ids []string) (calls []Call, changed int, err error) {
	calls, err = docstore.Write(ctx, s.Store, func(tx *docstore.Tx) ([]Call, error) {
		due, err := loadDue(ctx, tx, ids)
		if err != nil {
			return nil, err
		}
		var calls []Call
		for _, c := range due {
			switch c.run.Phase {
			case leased:
				err = fail(ctx, tx, c.job, c.sub, c.run, failed, "the process that ran it has stopped or stood still",
					0)
			case accepted:
				err = fail(ctx, tx, c.job, c.sub, c.run, timedOut, "no result arrived within timeout_seconds", 0)
			default:
				var call Call
				call, err = s.begin(ctx, tx, c)
				calls = append(calls, call)
			}
			if err != nil {
				return nil, err
			}
		}
		changed = len(due)
		return calls, nil
	})
	if err != nil {
		return nil, 0, err
	}
	return calls, changed, nil
}

// dueRun is a run that is due, with its records.
type dueRun struct {
	run *run
	sub *SubJob
	job *Job // the transaction does not depend on it
}

// loadDue loads those of the runs that are due and whose jobs exist.
func loadDue(ctx context.Context, tx *docstore.Tx, ids []string) ([]dueRun, error) {
	found, err := runs.LoadMany(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(r *run) bool { return r.Next.IsZero() || r.Next.After(tx.Now) })
	if len(found) == 0 {
		return nil, nil
	}
	var subIDs, jobIDs []string
	for _, r := range found {
		subIDs, jobIDs = append(subIDs, r.ID), append(jobIDs, r.JobID)
	}
	subs, err := subJobs.LoadMany(ctx, tx, subIDs)
	if err != nil {
		return nil, err
	}
	docs, err := jobs.FindMany(ctx, tx.Peek(), jobIDs)
	if err != nil {
		return nil, err
	}
	var due []dueRun
	for _, r := range found {
		sub := slices.IndexFunc(subs, func(s *SubJob) bool { return s.ID == r.ID })
		doc := slices.IndexFunc(docs, func(d Doc) bool { return d.ID == r.JobID })
		if sub < 0 || doc < 0 {
			continue
		}
		j, err := docs[doc].Value()
		if err != nil {
			return nil, err
		}
		due = append(due, dueRun{r, subs[sub], j})
	}
	return due, nil
}

// begin begins the next attempt of a run and returns the call to be made.
func (s *Jobs) begin(ctx context.Context, tx *docstore.Tx, c dueRun) (Call, error) {
	r, sub, j := c.run, c.sub, c.job
	r.Attempt++
	r.Phase, r.Next = leased, tx.Now.Add(s.Lease)
	r.Deadline = tx.Now.Add(time.Duration(j.TimeoutSeconds) * time.Second)
	sub.State, sub.Attempt, sub.TimeStarted = running, r.Attempt, tx.Now
	if _, err := runs.Touch(ctx, tx, r); err != nil {
		return Call{}, err
	}
	if _, err := subJobs.Collection.Touch(ctx, tx, sub); err != nil {
		return Call{}, err
	}
	call := Call{
		Tenant: sub.TenantID, JobID: j.ID, SubJobID: sub.ID, Name: sub.Name, Attempt: r.Attempt, Target: j.Target,
		Payload: sub.Payload, Deadline: r.Deadline, LeaseEnds: r.Next,
	}
	if j.Target.Type == Function {
		return call, nil
	}
	call.CallbackURL = s.PublicURL + "/v1/jobs/" + j.ID + "/sub-jobs/" + sub.ID + "/result"
	call.CallbackToken = string(newTicket(s.Keys, call.Tenant, sub.ID, r.Attempt))
	return call, nil
}

// find returns a job without making the transaction depend on it. The error is apperr.NotFound.
func find(ctx context.Context, tx *docstore.Tx, id string) (*Job, error) {
	doc, err := jobs.Find(ctx, tx.Peek(), id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// renew extends the lease of an attempt and returns when it ends. The error is errOver if this replica has lost it.
func (s *Jobs) renew(ctx context.Context, id string, attempt int64) (clock.Time, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (clock.Time, error) {
		r, err := current(ctx, tx, id, attempt)
		if err != nil {
			return clock.Time{}, err
		}
		r.Next = tx.Now.Add(s.Lease)
		_, err = runs.Touch(ctx, tx, r)
		return r.Next, err
	})
}

// current loads a run if the attempt has its lease. The error is errOver otherwise.
func current(ctx context.Context, tx *docstore.Tx, id string, attempt int64) (*run, error) {
	r, err := runs.Load(ctx, tx, id)
	if apperr.IsNotFound(err) || err == nil && (r.Attempt != attempt || r.Phase != leased) {
		return nil, errOver
	}
	return r, err
}

// fail ends an attempt. The run is tried again if its job allows another attempt, no sooner than after the least pause;
// otherwise it ends with the state.
func fail(ctx context.Context, tx *docstore.Tx, j *Job, sub *SubJob, r *run, state, reason string,
	least time.Duration) error {
	reason = shorten(reason)
	if r.Attempt > j.Retry.Max {
		return end(ctx, tx, sub, r, state, nil, reason)
	}
	r.Phase, r.Next = ready, tx.Now.Add(max(backoff(j.Retry.BackoffSeconds, r.Attempt), least))
	sub.State, sub.Error = pending, reason
	if _, err := runs.Replace(ctx, tx, r); err != nil {
		return err
	}
	_, err := subJobs.Replace(ctx, tx, sub)
	return err
}

// backoff is the pause after an attempt: seconds after the first, twice as long after each next one, up to an hour.
func backoff(seconds, attempt int64) time.Duration {
	pause := time.Duration(seconds) * time.Second
	for range attempt - 1 {
		pause = min(2*pause, maxBackoff*time.Second)
	}
	return pause
}

func shorten(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if letters := []rune(text); len(letters) > maxError {
		text = string(letters[:maxError-1]) + "…"
	}
	return text
}

// end ends a sub-job and cancels its unfinished parts. If it is a run, the next queued run of the job becomes ready.
func end(ctx context.Context, tx *docstore.Tx, sub *SubJob, r *run, state string, result jsontext.Value,
	reason string) error {
	switch {
	case len(result) > maxResult:
		state, result, reason = failed, nil, "the result is too large"
	case levels(result) > maxLevels:
		state, result, reason = failed, nil, fmt.Sprintf("the result has more than %d levels", maxLevels)
	}
	sub.State, sub.Result, sub.Error, sub.TimeFinished = state, orNull(result), shorten(reason), tx.Now
	if state == succeeded {
		sub.Progress = 100
	}
	if _, err := runs.Delete(ctx, tx, r); err != nil {
		return err
	}
	if _, err := subJobs.As("finished").Touch(ctx, tx, sub); err != nil {
		return err
	}
	if r.Part || r.Parts > 0 {
		if err := endParts(ctx, tx, sub.ID); err != nil || r.Part {
			return err
		}
	}
	if r.Phase == queued { // another one is at work still
		return nil
	}
	waiting, err := runs.LoadWhere(ctx, tx, docstore.Eq(byQueued, docstore.Text(r.JobID)), "", 1)
	if err != nil || len(waiting) == 0 {
		return err
	}
	waiting[0].Phase, waiting[0].Next = ready, tx.Now
	_, err = runs.Replace(ctx, tx, waiting[0])
	return err
}

// maxLevels is how many levels a result can have, as the body of a request. Clients fail at deeper ones, and so could
// not list the runs.
const maxLevels = 100

// levels is how deep the arrays and objects of a valid JSON text are nested.
func levels(text jsontext.Value) (most int) {
	for d := jsontext.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.ReadToken(); err != nil {
			return most
		}
		most = max(most, d.StackDepth())
	}
}

// endParts cancels the unfinished parts of a sub-job that has ended.
func endParts(ctx context.Context, tx *docstore.Tx, parent string) error {
	parts, err := subJobs.LoadWhere(ctx, tx, docstore.Eq(byParent, docstore.Text(parent)), "", maxParts)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if part.isOver() {
			continue
		}
		r, err := runs.Load(ctx, tx, part.ID)
		if err != nil {
			return err
		}
		if err := end(ctx, tx, part, r, cancelled, nil, "the sub-job that it is a part of has ended"); err != nil {
			return err
		}
	}
	return nil
}
