package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/pkg/work"
)

// Deps are what Jobs need.
type Deps struct {
	Store     *docstore.Store
	Keys      *secret.Keyring
	Runners   map[string]Runner // by type of target
	Functions Functions
	Log       *slog.Logger
	Metrics   prometheus.Registerer
	PublicURL string // of the platform, for callbacks
}

// Jobs are the use cases, and the work in the background.
type Jobs struct {
	Deps
	Queue     *work.Queue[run, *run] // of runs
	waitAfter time.Duration
	dueJobs   fair.RoundRobin[Job]

	watchCopy watchCopy
	fires     *rate.Limiter
	attempts  *prometheus.CounterVec
}

// perSecond is how many jobs a replica fires, and how many runs it starts, in a second. 10,000 jobs that are due at the
// same time take 50 s, and the processors and the disk have time for requests meanwhile.
const perSecond = 200

// New makes the use cases.
func New(d Deps) *Jobs {
	s := &Jobs{
		Deps: d, waitAfter: waitAfter,
		dueJobs: fair.RoundRobin[Job]{Of: &jobs.Collection, By: byNextFire, Group: FiresAtOnce, Others: 64},
		fires:   rate.NewLimiter(perSecond, FiresAtOnce),
	}
	s.Queue = s.newQueue()
	s.attempts = telemetry.Counters(d.Metrics, prometheus.CounterOpts{
		Name: "idp_job_attempts_total", Help: "Attempts of runs that this process made, by what became of them.",
	}, []string{"target", "outcome"}, telemetry.Combinations([]string{Webhook, NATS, Function}, outcomes)...)
	telemetry.Register(d.Metrics, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "idp_job_attempts_running", Help: "Attempts of runs that this process is making.",
	}, func() float64 { return float64(s.Queue.Count()) }))
	return s
}

// outcomes are all that outcomeOf returns.
var outcomes = []string{refused, notBegun, timedOut, failed, string(accepted), succeeded}

const (
	refused  = "refused"
	notBegun = "not_begun"
)

// outcomeOf names what became of an attempt, for the metrics.
func outcomeOf(o Outcome, failure, stored error) string {
	switch {
	case stored != nil:
		return refused
	case errors.Is(failure, errNotBegun):
		return notBegun
	case errors.Is(failure, context.DeadlineExceeded):
		return timedOut
	case failure != nil:
		return failed
	case o.Accepted:
		return string(accepted)
	}
	return succeeded
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{
		jobs.Def(), subJobs.Def(), runs.Def(), lines.Def(), reserved.Def(), leftovers.Def(), watches.Def(),
	}
}

// Filter selects jobs whose members are equal to its own. Empty members select all.
type Filter struct {
	Code   string `query:"code" maxLength:"64"`
	State  string `query:"state" enum:"scheduled,suspended,finished"`
	Target string `query:"target_type" enum:"webhook,nats,function"`
	textindex.Search
	docstore.Paging
}

// List returns a page of jobs.
func (s *Jobs) List(ctx context.Context, f Filter) (docstore.Page[Job], error) {
	where := docstore.And(docstore.EqOrAll(byCode, f.Code), docstore.EqOrAll(byState, f.State),
		docstore.EqOrAll(byTarget, f.Target), textindex.HavingPart(f.Keyword))
	return jobs.List(ctx, s.Store, where, f.Paging)
}

// Get returns a job. The error is apperr.NotFound.
func (s *Jobs) Get(ctx context.Context, id string) (Doc, error) { return jobs.Find(ctx, s.Store, id) }

// Create adds a job. id is "" or an id that Reserve has returned. The error is apperr.InvalidParameters, Forbidden,
// AlreadyExists, or InvalidState if the tenant has too many jobs.
func (s *Jobs) Create(ctx context.Context, id string, p Profile) (Doc, error) {
	if err := p.check(s.Store.Now(), Profile{}); err != nil {
		return Doc{}, err
	}
	fresh, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		if id != "" {
			if err := redeem(ctx, tx, id); err != nil {
				return Doc{}, err
			}
			fresh = id
		}
		if err := s.checkTarget(ctx, tx, p.Target, Target{}); err != nil {
			return Doc{}, err
		}
		if err := jobs.CheckLimit(ctx, tx, docstore.Filter{}, maxJobs, "a tenant has at most %d jobs"); err != nil {
			return Doc{}, err
		}
		j := &Job{Meta: docstore.Meta{ID: fresh}, Profile: p, State: scheduled}
		j.reset(tx.Now)
		return jobs.Insert(ctx, tx, j)
	})
}

// Update applies edit to a job. The error is apperr.NotFound, InvalidParameters, AlreadyExists or VersionMismatch, or
// that of edit.
func (s *Jobs) Update(ctx context.Context, id string, edit func(*Profile) error) (Doc, error) {
	return jobs.Edit(ctx, s.Store, id, func(tx *docstore.Tx, j *Job) error {
		before := j.Profile
		if err := edit(&j.Profile); err != nil {
			return err
		}
		if err := j.Profile.check(tx.Now, before); err != nil {
			return err
		}
		if err := s.checkTarget(ctx, tx, j.Target, before.Target); err != nil {
			return err
		}
		if j.Schedule != before.Schedule || j.Status != before.Status {
			if j.State == finished {
				j.State = scheduled
			}
			j.reset(tx.Now)
		}
		return nil
	})
}

// Suspend stops a job's schedule; runs that have begun go on. The error is apperr.NotFound, InvalidState or
// VersionMismatch.
func (s *Jobs) Suspend(ctx context.Context, id string) (Doc, error) {
	return s.setState(ctx, id, suspended, "suspended")
}

// Resume continues the schedule from now on. The error is apperr.NotFound, InvalidState or VersionMismatch.
func (s *Jobs) Resume(ctx context.Context, id string) (Doc, error) {
	return s.setState(ctx, id, scheduled, "resumed")
}

func (s *Jobs) setState(ctx context.Context, id, state, action string) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		return setState(ctx, tx, id, state, action)
	})
}

func setState(ctx context.Context, tx *docstore.Tx, id, state, action string) (Doc, error) {
	j, err := jobs.Load(ctx, tx, id)
	if err != nil {
		return Doc{}, err
	}
	if j.State == finished {
		return Doc{}, apperr.New(apperr.InvalidState, "the job is finished")
	}
	if j.State != state {
		j.State = state
		j.reset(tx.Now)
	}
	return jobs.As(action).Replace(ctx, tx, j)
}

// SetStates suspends or resumes all jobs of a list, or none of them. The error is apperr.InvalidParameters at ids[i]
// for a job that does not exist or is finished.
func (s *Jobs) SetStates(ctx context.Context, ids []string, suspend bool) (docstore.Batch, error) {
	state, action := scheduled, "resumed"
	if suspend {
		state, action = suspended, "suspended"
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Batch, error) {
		var faults apperr.Faults
		docs := make([]Doc, len(ids))
		if err := jobs.ReadAhead(ctx, tx, ids...); err != nil {
			return docstore.Batch{}, err
		}
		for i, id := range ids {
			var err error
			docs[i], err = setState(ctx, tx, id, state, action)
			switch apperr.KindOf(err) {
			case "":
			case apperr.NotFound:
				faults.Add(apperr.Item("ids", i), "is not a job's id")
			case apperr.InvalidState:
				faults.Add(apperr.Item("ids", i), "is a finished job's id")
			default:
				return docstore.Batch{}, err
			}
		}
		if err := faults.Err(); err != nil {
			return docstore.Batch{}, err
		}
		return docstore.BatchOf(docs)
	})
}

// FireTimes returns up to count times at which a job will fire next unless it is changed. The error is apperr.NotFound.
func (s *Jobs) FireTimes(ctx context.Context, id string, count int) ([]clock.Time, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	j, err := doc.Value()
	if err != nil {
		return nil, err
	}
	times := []clock.Time{}
	for at := j.NextFireTime.time(); !at.IsZero() && len(times) < count; at = j.Schedule.next(j.ScheduledSince, at) {
		times = append(times, at)
	}
	return times, nil
}

// PreviewFireTimes returns up to count times at which a job would fire next whose schedule were set now. The error is
// apperr.InvalidParameters.
func (s *Jobs) PreviewFireTimes(schedule Schedule, count int) ([]clock.Time, error) {
	var faults apperr.Faults
	now := s.Store.Now()
	schedule.check(faults.Within("schedule"), now, Schedule{})
	if err := faults.Err(); err != nil {
		return nil, err
	}
	times := []clock.Time{}
	for at := schedule.next(now, now); !at.IsZero() && len(times) < count; at = schedule.next(now, at) {
		times = append(times, at)
	}
	return times, nil
}

// Trigger adds a run that is due now. Its payload is the job's if payload is nil. The error is apperr.NotFound,
// Forbidden, InvalidParameters, or InvalidState if the job is disabled or its concurrency does not allow another run.
func (s *Jobs) Trigger(ctx context.Context, id string, payload jsontext.Value) (SubDoc, error) {
	var faults apperr.Faults
	checkPayload(&faults, "payload", payload)
	if err := faults.Err(); err != nil {
		return SubDoc{}, err
	}
	runID, err := s.Store.NewID(ctx)
	if err != nil {
		return SubDoc{}, err
	}
	defer s.Queue.Wake()
	return docstore.Write(docstore.InTurn(ctx, "job "+id), s.Store, func(tx *docstore.Tx) (SubDoc, error) {
		j, err := jobs.Load(ctx, tx, id)
		if err != nil {
			return SubDoc{}, err
		}
		if j.Status != enabled {
			return SubDoc{}, apperr.New(apperr.InvalidState, "the job is disabled")
		}
		if payload != nil {
			if err := mayRun(ctx, j.Target); err != nil {
				return SubDoc{}, err
			}
		}
		given := payload // the transaction may run again, with another payload of the job
		if given == nil {
			given = j.Target.Payload
		}
		doc, started, err := start(ctx, tx, j, runID, given, clock.Time{})
		if err != nil {
			return SubDoc{}, err
		}
		if !started {
			return SubDoc{}, apperr.New(apperr.InvalidState,
				"the job has as many unfinished runs as its concurrency allows")
		}
		_, err = jobs.Collection.Replace(ctx, tx, j)
		return doc, err
	})
}
