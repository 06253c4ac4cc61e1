package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/automation/internal/job"
)

const (
	oneJob      = "/v1/jobs/{id}"
	ofFunctions = "To set a target of the type `function`, or its payload, needs `functions:write`, too."
)

func (a *api) registerJobs(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-jobs", Method: http.MethodGet, Path: "/v1/jobs", Scope: auth.JobsRead, Summary: "List jobs",
		Response: map[string]any{"items": []any{exampleJob}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listJobs)
	rest.Handle(s, rest.Op{
		ID: "create-job", Method: http.MethodPost, Path: "/v1/jobs", Scope: auth.JobsWrite, Summary: "Create a job",
		Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState}, Request: exampleJobInput,
		Response: exampleJob,
		Doc: "`id` may be a pre-created id. Cron expressions have 5 fields, or 6 with seconds first, or are " +
			"`@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. A time that a change of the clocks skips " +
			"fires right after the change, and one that it repeats fires the first time. An expression whose hours " +
			"begin with `*` fires by elapsed time. " + ofFunctions,
	}, a.createJob)
	rest.Handle(s, rest.Op{
		ID: "get-job", Method: http.MethodGet, Path: oneJob, Scope: auth.JobsRead, Summary: "Get a job",
		Response: exampleJob,
	}, rest.One[Job](a.Jobs.Get))
	rest.Handle(s, rest.Op{
		ID: "replace-job", Method: http.MethodPut, Path: oneJob, Scope: auth.JobsWrite, Summary: "Replace a job",
		Doc:    ofFunctions,
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleJobInput, Response: exampleJob,
	}, rest.Replace[Job, JobInput](a.Jobs.Update))
	rest.Handle(s, rest.Op{
		ID: "update-job", Method: http.MethodPatch, Path: oneJob, Scope: auth.JobsWrite, Summary: "Change a job",
		Doc: "JSON merge patch (RFC 7396). " + ofFunctions, Errors: []apperr.Kind{apperr.AlreadyExists},
		Request: map[string]any{"timeout_seconds": 30}, Response: exampleJob,
	}, rest.Update[Job, JobInput](a.Jobs.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-job", Method: http.MethodDelete, Path: oneJob, Scope: auth.JobsWrite, Summary: "Delete a job",
		Doc: "Its runs and their logs are deleted too.", Response: rest.Deleted{ID: "1048577"},
	}, rest.Delete(a.Jobs.Delete))
	rest.Handle(s, rest.Op{
		ID: "suspend-job", Method: http.MethodPost, Path: oneJob + "/suspend", Scope: auth.JobsWrite,
		Summary: "Suspend a job", Doc: "It does not fire until it is resumed. Runs that have begun go on.",
		Errors: []apperr.Kind{apperr.InvalidState}, Response: exampleJob,
	}, rest.One[Job](a.Jobs.Suspend))
	rest.Handle(s, rest.Op{
		ID: "resume-job", Method: http.MethodPost, Path: oneJob + "/resume", Scope: auth.JobsWrite,
		Summary: "Resume a job", Doc: "Times that have passed while it was suspended do not fire.",
		Errors: []apperr.Kind{apperr.InvalidState}, Response: exampleJob,
	}, rest.One[Job](a.Jobs.Resume))
	a.registerJobActions(s)
}

func (a *api) registerJobActions(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "trigger-job", Method: http.MethodPost, Path: oneJob + "/trigger", Scope: auth.JobsWrite,
		Summary: "Run a job now", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The answer is the new run. A suspended job can be triggered, a disabled one cannot. To give the run of " +
			"a function a `payload` needs `functions:write`, too.",
		Request: map[string]any{"payload": map[string]any{"full": true}}, Response: exampleSubJob,
	}, a.triggerJob)
	rest.Handle(s, rest.Op{
		ID: "get-job-fire-times", Method: http.MethodGet, Path: oneJob + "/fire-times", Scope: auth.JobsRead,
		Summary:  "List the times at which a job fires next",
		Response: FireTimes{[]string{"2026-02-01T01:30:00.000Z"}},
	}, a.fireTimes)
	rest.Handle(s, rest.Op{
		ID: "preview-fire-times", Method: http.MethodPost, Path: "/v1/jobs/fire-times", Scope: auth.JobsRead,
		Summary: "List the times at which a schedule would fire next", Momentary: true,
		Doc: "As if a job had the schedule from now on. A schedule that a job cannot have is refused as by " +
			"`create-job`.",
		Request:  map[string]any{"schedule": exampleJobInput["schedule"], "count": 3},
		Response: FireTimes{[]string{"2026-02-01T01:30:00.000Z"}},
	}, a.previewFireTimes)
	rest.Handle(s, rest.Op{
		ID: "pre-create-job-id", Method: http.MethodPost, Path: "/v1/jobs/pre-created-id", Scope: auth.JobsWrite,
		Summary: "Get an id for a job to be created", Doc: "A job can be created with this id in the next 24 hours.",
		Errors: []apperr.Kind{apperr.InvalidState}, Response: rest.Deleted{ID: "1048577"},
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
			Doc: "All of them or none.", Request: JobIDs{[]string{"1048577"}},
			Response: map[string]any{"items": []any{exampleJob}},
		}, func(ctx context.Context, in *struct{ Body JobIDs }) (rest.BatchOf[Job], error) {
			return rest.BatchFrom[Job](a.Jobs.SetStates(ctx, in.Body.IDs, batch.suspend))
		})
	}
	rest.Handle(s, rest.Op{
		ID: "delete-jobs", Method: http.MethodDelete, Path: "/v1/batch/jobs", Scope: auth.JobsWrite,
		Summary: "Delete several jobs", Doc: "Ids that do not exist are no error.",
		Request:  JobIDs{[]string{"1048577"}},
		Response: rest.Removed{Removed: 1},
	}, func(ctx context.Context, in *struct{ Body JobIDs }) (rest.Removed, error) {
		n, err := a.Jobs.DeleteMany(ctx, in.Body.IDs)
		return rest.Removed{Removed: n}, err
	})
}

// JobIDs names jobs.
type JobIDs struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids"`
}

type listJobsInput struct {
	Code   string `query:"code" maxLength:"64"`
	State  string `query:"state" enum:"scheduled,suspended,finished"`
	Target string `query:"target_type" enum:"webhook,nats,function"`
	textindex.Search
	docstore.Paging
}

func (a *api) listJobs(ctx context.Context, in *listJobsInput) (rest.List[Job], error) {
	filter := job.Filter{Code: in.Code, State: in.State, Target: in.Target, Keyword: in.Keyword}
	page, err := a.Jobs.List(ctx, filter, in.Paging)
	return rest.ListOf[Job](in.Paging, page, err)
}

type createJobInput struct {
	Body rest.JSON[JobInput]
}

func (a *api) createJob(ctx context.Context, in *createJobInput) (rest.Record[Job], error) {
	var draft struct {
		ID string `json:"id"`
		job.Profile
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[Job]{}, err
	}
	return rest.RecordOf[Job](a.Jobs.Create(ctx, draft.ID, draft.Profile))
}

type triggerInput struct {
	rest.ByID
	Body *rest.JSON[TriggerInput]
}

func (a *api) triggerJob(ctx context.Context, in *triggerInput) (subJobRecord, error) {
	var draft struct {
		Payload json.RawMessage `json:"payload"`
	}
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
		Schedule rest.JSON[JobSchedule] `json:"schedule" doc:"The draft"`
		Number   int                    `json:"count,omitempty" minimum:"1" maximum:"100" default:"10" doc:"How many"`
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
	FireTimes []string `json:"fire_times" format:"date-time" nullable:"false" doc:"The next times, in UTC"`
}

// TriggerInput is the body of a trigger.
type TriggerInput struct {
	Payload any `json:"payload,omitempty" doc:"Instead of the payload of the job's target; up to 64 KiB"`
}

// JobSchedule says when a job fires.
type JobSchedule struct {
	Type         string     `json:"type" enum:"cron,interval,once,manual" doc:"cron: at times of a calendar; interval: again and again; once: at a time; manual: only when triggered"`
	Cron         string     `json:"cron,omitempty" doc:"For cron: the expression" example:"30 2 * * MON-FRI"`
	Timezone     string     `json:"timezone,omitempty" doc:"For cron: an IANA name; UTC if absent" example:"Europe/Berlin"`
	EverySeconds int64      `json:"every_seconds,omitempty" doc:"For interval: counted from when the schedule was set or the job resumed"`
	At           *time.Time `json:"at,omitempty" doc:"For once: the time"`
}

// JobTarget is what a job runs.
type JobTarget struct {
	Type       string `json:"type" enum:"webhook,nats,function" doc:"webhook: a request; nats: a message; function: a call"`
	URL        string `json:"url,omitempty" doc:"For webhook: status 202 accepts a run, another 2xx ends it with the body as its result"`
	Subject    string `json:"subject,omitempty" doc:"For nats: runs go to idp.jobs.<tenant>.<subject>" example:"reports"`
	FunctionID string `json:"function_id,omitempty" doc:"For function: its id; the function cannot be deleted while a job has it as its target"`
	Payload    any    `json:"payload,omitempty" doc:"Up to 64 KiB"`
	Secret     string `json:"secret,omitempty" doc:"For webhook: signs the requests (Standard Webhooks). Shown as ******"`
}

// JobTargetInput is the target of a job to be created or changed.
type JobTargetInput struct {
	JobTarget
	Secret string `json:"secret,omitempty" writeOnly:"true" doc:"For webhook: signs the requests (Standard Webhooks): whsec_ and the base64 of 24…64 bytes. ****** keeps it, with the same URL"`
}

// JobRetry says how often, and after which pauses, a failed run is tried again.
type JobRetry struct {
	Max            int64 `json:"max,omitempty" doc:"Attempts after the first: 0…20"`
	BackoffSeconds int64 `json:"backoff_seconds,omitempty" doc:"Pause after the first attempt: 0…3600; it doubles with each attempt, up to an hour"`
}

// JobProfile has the members that clients set.
type JobProfile struct {
	Code           string      `json:"code" doc:"1…64 letters, digits or . _ -; unique" example:"nightly-report"`
	Name           string      `json:"name" doc:"1…128 characters" example:"Nightly report"`
	Description    string      `json:"description,omitempty" doc:"Up to 1024 characters"`
	Schedule       JobSchedule `json:"schedule" doc:"When it fires"`
	Target         JobTarget   `json:"target" doc:"What it runs"`
	TimeoutSeconds int64       `json:"timeout_seconds,omitempty" doc:"Of one attempt: 1…86400; 60 if absent"`
	Retry          JobRetry    `json:"retry,omitzero" doc:"What happens when a run fails"`
	Concurrency    string      `json:"concurrency,omitempty" enum:"allow,skip,queue" doc:"What happens when the job fires while a run is unfinished: another run starts (allow), none does (skip), or it waits (queue); allow if absent"`
	Misfire        string      `json:"misfire,omitempty" enum:"fire_once,skip" doc:"What happens to times that were missed by more than a minute: one run for all (fire_once) or none (skip); fire_once if absent"`
	Status         string      `json:"status,omitempty" enum:"1,0" doc:"0 disables the job; 1 if absent"`
}

// JobState has the members that the scheduler sets.
type JobState struct {
	State          string     `json:"state,omitempty" readOnly:"true" enum:"scheduled,suspended,finished" doc:"suspended: it does not fire; finished: it never fires again"`
	NextFireTime   *time.Time `json:"next_fire_time,omitempty" nullable:"true" readOnly:"true" doc:"null: none"`
	LastSubJobID   string     `json:"last_sub_job_id,omitempty" readOnly:"true" doc:"Its last run; empty: none"`
	Fired          int64      `json:"fired,omitempty" readOnly:"true" doc:"How many runs the job has had"`
	ScheduledSince *time.Time `json:"scheduled_since,omitempty" readOnly:"true" doc:"When the schedule was set or resumed"`
}

// Job describes job.Job for the OpenAPI document.
type Job struct {
	rest.Meta
	JobProfile
	JobState
}

// JobInput is a job to be created or changed. Read-only members may be sent back and do not count.
type JobInput struct {
	rest.MembersOf[Job]
	ID       string         `json:"id,omitempty" doc:"Only on creation: a pre-created id"`
	Code     string         `json:"code"`
	Name     string         `json:"name"`
	Schedule JobSchedule    `json:"schedule"`
	Target   JobTargetInput `json:"target"`
}

var exampleJobInput = map[string]any{
	"code": "nightly-report", "name": "Nightly report",
	"schedule": map[string]any{"type": "cron", "cron": "30 2 * * *", "timezone": "Europe/Berlin"},
	"target":   map[string]any{"type": "webhook", "url": "https://reports.acme.test/run"},
	"retry":    map[string]any{"max": 3, "backoff_seconds": 60},
}

var exampleJob = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","code":"nightly-report",` +
	`"name":"Nightly report","description":"","schedule":{"type":"cron","cron":"30 2 * * *",` +
	`"timezone":"Europe/Berlin"},"target":{"type":"webhook","url":"https://reports.acme.test/run"},` +
	`"timeout_seconds":60,"retry":{"max":3,"backoff_seconds":60},"concurrency":"allow","misfire":"fire_once",` +
	`"status":"1","state":"scheduled","next_fire_time":"2026-02-01T01:30:00.000Z","last_sub_job_id":"","fired":0,` +
	`"scheduled_since":"2026-01-31T09:30:00.000Z"}`)
