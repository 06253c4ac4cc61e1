package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/job"
)

const (
	oneJob      = "/v1/jobs/{id}"
	ofFunctions = "To set a target of the type `function`, or its payload, needs `functions:write`, too."
)

func (a *api) registerJobs(s *rest.Server) {
	rest.Named[job.Schedule](s, "JobSchedule")
	rest.Named[job.Target](s, "JobTarget")
	rest.Named[job.Retry](s, "JobRetry")
	rest.DescribedAs[job.Moment, time.Time](s)
	rest.DescribedAs[job.Number, string](s)
	jobs := rest.Resource[job.Job, job.Profile, job.Filter]{
		Server: s, ID: "job", One: "a job", Many: "jobs", Path: "/v1/jobs", Read: auth.JobsRead, Write: auth.JobsWrite,
	}
	jobs.List(rest.Op{}, a.Jobs.List)
	rest.Handle(s, rest.Op{
		ID: "create-job", Method: http.MethodPost, Path: "/v1/jobs", Scope: auth.JobsWrite, Summary: "Create a job",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState}, Request: exampleJobInput,
		Doc: "`id` may be a pre-created id. Cron expressions have 5 fields, or 6 with seconds first, or are " +
			"`@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. A time that a change of the clocks skips " +
			"fires right after the change, and one that it repeats fires the first time. An expression whose hours " +
			"begin with `*` fires by elapsed time. " + ofFunctions,
	}, a.createJob)
	jobs.Get(rest.Op{}, a.Jobs.Get)
	rest.Handle(s, rest.Op{
		ID: "replace-job", Method: http.MethodPut, Path: oneJob, Scope: auth.JobsWrite, Summary: "Replace a job",
		Doc: ofFunctions, Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleJobInput,
	}, rest.Replace[job.Job, JobInput](a.Jobs.Update))
	rest.Handle(s, rest.Op{
		ID: "update-job", Method: http.MethodPatch, Path: oneJob, Scope: auth.JobsWrite, Summary: "Change a job",
		Doc: "JSON merge patch (RFC 7396). " + ofFunctions, Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"timeout_seconds": 30},
	}, rest.Update[job.Job, JobInput](a.Jobs.Update))
	jobs.Delete(rest.Op{Doc: "Its runs and their logs are deleted too."}, a.Jobs.Delete)
	jobs.Action("suspend", rest.Op{
		Doc:    "It does not fire until it is resumed. Runs that have begun go on.",
		Errors: []apperr.Kind{apperr.InvalidState},
	}, a.Jobs.Suspend)
	jobs.Action("resume", rest.Op{
		Doc:    "Times that have passed while it was suspended do not fire.",
		Errors: []apperr.Kind{apperr.InvalidState},
	}, a.Jobs.Resume)
	a.registerJobActions(s)
}

func (a *api) registerJobActions(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "trigger-job", Method: http.MethodPost, Path: oneJob + "/trigger", Scope: auth.JobsWrite,
		Summary: "Run a job now", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The answer is the new run. A suspended job can be triggered, a disabled one cannot. To give the run of " +
			"a function a `payload` needs `functions:write`, too.",
	}, a.triggerJob)
	rest.Handle(s, rest.Op{
		ID: "get-job-fire-times", Method: http.MethodGet, Path: oneJob + "/fire-times", Scope: auth.JobsRead,
		Summary: "List the times at which a job fires next",
	}, a.fireTimes)
	rest.Handle(s, rest.Op{
		ID: "preview-fire-times", Method: http.MethodPost, Path: "/v1/jobs/fire-times", Scope: auth.JobsRead,
		Summary: "List the times at which a schedule would fire next", NoReplay: true,
		Doc: "As if a job had the schedule from now on. A schedule that a job cannot have is refused as by " +
			"`create-job`.",
	}, a.previewFireTimes)
	rest.Handle(s, rest.Op{
		ID: "pre-create-job-id", Method: http.MethodPost, Path: "/v1/jobs/pre-created-id", Scope: auth.JobsWrite,
		Summary: "Get an id for a job to be created", Doc: "A job can be created with this id in the next 24 hours.",
		Errors: []apperr.Kind{apperr.InvalidState},
	}, func(ctx context.Context, _ *struct{}) (rest.Deleted, error) { return a.Jobs.Reserve(ctx) })
	for _, batch := range []struct {
		id, path, summary string
		suspend           bool
	}{
		{"suspend-jobs", "/v1/batch/jobs-suspend", "Suspend several jobs", true},
		{"resume-jobs", "/v1/batch/jobs-resume", "Resume several jobs", false},
	} {
		rest.Handle(s, rest.Op{
			ID: batch.id, Method: http.MethodPost, Path: batch.path, Scope: auth.JobsWrite, Summary: batch.summary,
			Doc: "All of them or none.",
		}, func(ctx context.Context, in *struct{ Body JobIDs }) (rest.BatchOf[job.Job], error) {
			return rest.BatchFrom[job.Job](a.Jobs.SetStates(ctx, in.Body.IDs, batch.suspend))
		})
	}
	rest.Handle(s, rest.Op{
		ID: "delete-jobs", Method: http.MethodDelete, Path: "/v1/batch/jobs", Scope: auth.JobsWrite,
		Summary: "Delete several jobs", Doc: "Ids that do not exist are no error.",
	}, func(ctx context.Context, in *struct{ Body JobIDs }) (rest.Removed, error) {
		n, err := a.Jobs.DeleteMany(ctx, in.Body.IDs)
		return rest.Removed{Removed: n}, err
	})
}

// JobIDs names jobs.
type JobIDs struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids" example:"1048577"`
}

func (a *api) createJob(ctx context.Context, in *rest.Creation[JobInput]) (rest.Record[job.Job], error) {
	var draft struct {
		ID string `json:"id"`
		job.Profile
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[job.Job]{}, err
	}
	return rest.RecordOf[job.Job](a.Jobs.Create(ctx, draft.ID, draft.Profile))
}

type triggerInput struct {
	rest.ByID
	Body *rest.JSON[TriggerInput]
}

func (a *api) triggerJob(ctx context.Context, in *triggerInput) (subJobRecord, error) {
	var draft TriggerInput
	if in.Body != nil {
		if err := in.Body.Into(&draft); err != nil {
			return subJobRecord{}, err
		}
	}
	return subJobOf(a.Jobs.Trigger(ctx, in.ID, draft.Payload))
}

type fireTimesInput struct {
	rest.ByID
	Number int `query:"count" minimum:"1" maximum:"100" default:"10" doc:"How many"`
}

func (a *api) fireTimes(ctx context.Context, in *fireTimesInput) (FireTimes, error) {
	return fireTimesOf(a.Jobs.FireTimes(ctx, in.ID, in.Number))
}

func fireTimesOf(times []clock.Time, err error) (FireTimes, error) {
	answer := FireTimes{make([]string, len(times))}
	for i, at := range times {
		answer.FireTimes[i] = at.String()
	}
	return answer, err
}

type previewInput struct {
	Body struct {
		Schedule rest.JSON[job.Schedule] `json:"schedule" doc:"The draft"`
		Number   int                     `json:"count,omitempty" minimum:"1" maximum:"100" default:"10" doc:"How many"`
	}
}

func (a *api) previewFireTimes(_ context.Context, in *previewInput) (FireTimes, error) {
	var schedule job.Schedule
	if in.Body.Schedule.Text() == "" {
		return FireTimes{}, nil // the request is refused because it is missing
	}
	if err := in.Body.Schedule.Into(&schedule); err != nil {
		return FireTimes{}, err
	}
	return fireTimesOf(a.Jobs.PreviewFireTimes(schedule, cmp.Or(in.Body.Number, defaultTimes)))
}

const defaultTimes = 10

// FireTimes are the times at which a job fires next unless it is changed.
type FireTimes struct {
	FireTimes []string `json:"fire_times" format:"date-time" nullable:"false" doc:"The next times, in UTC" example:"2026-02-01T01:30:00.000Z"`
}

// TriggerInput is the body of a trigger.
type TriggerInput struct {
	Payload jsontext.Value `json:"payload,omitempty" doc:"Instead of the payload of the job's target; up to 64 KiB" example:"{\"full\":true}"`
}

// JobTargetInput is the target of a job to be created or changed.
type JobTargetInput struct {
	job.Target
	Secret string `json:"secret,omitempty" writeOnly:"true" doc:"For webhook: signs the requests (Standard Webhooks): whsec_ and the base64 of 24…64 bytes. ****** keeps it, with the same URL"`
}

// JobInput is a job to be created or changed. Read-only members may be sent back and do not count.
type JobInput struct {
	rest.MembersOf[job.Job]
	ID       string         `json:"id,omitempty" doc:"Only on creation: a pre-created id"`
	Code     string         `json:"code"`
	Name     string         `json:"name"`
	Schedule job.Schedule   `json:"schedule"`
	Target   JobTargetInput `json:"target"`
}

var exampleJobInput = map[string]any{
	"code": "nightly-report", "name": "Nightly report",
	"schedule": map[string]any{"type": "cron", "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
	"target":   map[string]any{"type": "webhook", "url": "https://reports.acme.test/run"},
	"retry":    map[string]any{"max": 3, "backoff_seconds": 60},
}
