package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/work"
)

// orphanPause is how long a run waits whose job or sub-job is deleted: a task deletes it, too.
const orphanPause = time.Minute

// beginDue begins attempts of those of the tenant's runs that are ready. A run whose lease, or time for the result of
// an accepted call, has ended gets none: that ends its attempt.
func (s *Jobs) beginDue(ctx context.Context, tx *docstore.Tx, due []*run) (begun []*run, err error) {
	var subIDs, jobIDs []string
	for _, r := range due {
		subIDs, jobIDs = append(subIDs, r.ID), append(jobIDs, r.JobID)
	}
	subs, err := subJobs.LoadMany(ctx, tx, subIDs)
	if err != nil {
		return nil, err
	}
	docs, err := jobs.FindMany(ctx, tx.Peek(), jobIDs) // the transaction does not depend on them
	if err != nil {
		return nil, err
	}
	for _, r := range due {
		sub := slices.IndexFunc(subs, func(s *SubJob) bool { return s.ID == r.ID })
		doc := slices.IndexFunc(docs, func(d Doc) bool { return d.ID == r.JobID })
		if sub < 0 || doc < 0 {
			r.Next = tx.Now.Add(orphanPause)
			if _, err := runs.Touch(ctx, tx, r); err != nil {
				return nil, err
			}
			continue
		}
		j, err := docs[doc].Value()
		if err != nil {
			return nil, err
		}
		switch r.Phase {
		case leased:
			err = fail(ctx, tx, j, subs[sub], r, failed, "the process that ran it has stopped or stood still", 0)
		case accepted:
			err = fail(ctx, tx, j, subs[sub], r, timedOut, "no result arrived within timeout_seconds", 0)
		default:
			err = s.begin(ctx, tx, j, subs[sub], r)
			begun = append(begun, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return begun, nil
}

// begin begins the next attempt of a run, and says which call is to be made.
func (s *Jobs) begin(ctx context.Context, tx *docstore.Tx, j *Job, sub *SubJob, r *run) error {
	attempt := r.Attempt + 1
	r.Phase, r.Deadline = leased, tx.Now.Add(time.Duration(j.TimeoutSeconds)*time.Second)
	sub.State, sub.Attempt, sub.TimeStarted = running, attempt, tx.Now
	r.call = Call{
		Tenant: sub.TenantID, JobID: j.ID, SubJobID: sub.ID, Name: sub.Name, Attempt: attempt, Target: j.Target,
		Payload: sub.Payload, Deadline: r.Deadline,
	}
	if j.Target.Type != Function {
		r.call.CallbackURL = s.PublicURL + "/v1/jobs/" + j.ID + "/sub-jobs/" + sub.ID + "/result"
		r.call.CallbackToken = string(newTicket(s.Keys, r.call.Tenant, sub.ID, attempt))
	}
	_, err := subJobs.Collection.Touch(ctx, tx, sub)
	return err
}

func (r *run) isLeased() bool { return r.Phase == leased }

// conclude stores what became of an attempt of a run.
func (s *Jobs) conclude(ctx context.Context, tx *docstore.Tx, r, attempted *run) error {
	sub, err := subJobs.Load(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	switch failure := attempted.failure; {
	case errors.Is(failure, errGivenBack):
		return undo(ctx, tx, sub, r, tx.Now)
	case errors.Is(failure, errNotBegun):
		sub.Error = shorten(failure.Error())
		return undo(ctx, tx, sub, r, tx.Now.Add(laterRetry))
	case failure != nil:
		j, err := find(ctx, tx, r.JobID)
		if apperr.IsNotFound(err) {
			return work.ErrOver
		}
		if err != nil {
			return err
		}
		state := failed
		if errors.Is(failure, context.DeadlineExceeded) {
			state, failure = timedOut, errors.New("the attempt did not end within timeout_seconds")
		}
		return fail(ctx, tx, j, sub, r, state, failure.Error(), attempted.outcome.RetryAfter)
	case attempted.outcome.Accepted:
		r.Phase, r.Next = accepted, r.Deadline
		_, err := runs.Replace(ctx, tx, r)
		return err
	}
	return end(ctx, tx, sub, r, succeeded, attempted.outcome.Result, "")
}

// find returns a job without making the transaction depend on it. The error is apperr.NotFound.
func find(ctx context.Context, tx *docstore.Tx, id string) (*Job, error) {
	doc, err := jobs.Find(ctx, tx.Peek(), id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// undo undoes the claim of a run, which is due again at next. The attempt does not count.
func undo(ctx context.Context, tx *docstore.Tx, sub *SubJob, r *run, next clock.Time) error {
	r.Attempt--
	r.Phase, r.Next = ready, next
	sub.State, sub.Attempt = pending, r.Attempt
	if _, err := runs.Touch(ctx, tx, r); err != nil {
		return err
	}
	_, err := subJobs.Collection.Touch(ctx, tx, sub)
	return err
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
