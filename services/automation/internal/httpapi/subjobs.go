package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/job"
)

const (
	allSubJobs = oneJob + "/sub-jobs"
	oneSubJob  = allSubJobs + "/{sid}"

	// ticketHeader is the header of callback tokens.
	ticketHeader = "X-Callback-Token"
	byWorker     = "A worker may send the callback token as `" + ticketHeader + "` instead of a credential."
)

func (a *api) registerSubJobs(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-sub-jobs", Method: http.MethodGet, Path: allSubJobs, Record: rest.NoRecord, Scope: auth.JobsRead,
		Summary:  "List a job's runs and their parts",
		Doc:      "The last 100 finished runs of a job are kept, for a week.",
		Response: map[string]any{"items": []any{exampleSubJob}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listSubJobs)
	rest.Handle(s, rest.Op{
		ID: "create-sub-job", Method: http.MethodPost, Path: allSubJobs, Record: rest.NoRecord, Scope: auth.JobsWrite,
		Summary: "Split a part off a run", Errors: []apperr.Kind{apperr.InvalidState}, Fresh: rest.FreshAlways,
		Doc: "The platform does not run a part. Its worker reports progress and result, with a credential or with " +
			"the `callback_token`, which is shown once. A part that is unfinished when its parent ends is cancelled. " +
			"A run has at most 100 parts.",
		Request:  map[string]any{"parent_id": "1048578", "name": "Page 1", "payload": map[string]any{"page": 1}},
		Response: exampleNewSubJob,
	}, a.createSubJob)
	rest.Handle(s, rest.Op{
		ID: "get-sub-job", Method: http.MethodGet, Path: oneSubJob, Record: "sid", Scope: auth.JobsRead,
		Summary: "Get a sub-job", Response: exampleSubJob,
	}, func(ctx context.Context, in *BySubJob) (subJobRecord, error) {
		return subJobOf(a.Jobs.SubJob(ctx, in.ID, in.SubJob))
	})
	rest.Handle(s, rest.Op{
		ID: "update-sub-job", Method: http.MethodPatch, Path: oneSubJob, Record: "sid", Scope: auth.JobsWrite,
		Ticket: ticketHeader, Summary: "Report a sub-job's progress", Errors: []apperr.Kind{apperr.InvalidState},
		Doc:     "Only while it is unfinished. " + byWorker,
		Request: map[string]any{"progress": 50}, Response: exampleSubJob,
	}, a.updateSubJob)
	rest.Handle(s, rest.Op{
		ID: "cancel-sub-job", Method: http.MethodPost, Path: oneSubJob + "/cancel", Record: "sid",
		Scope:   auth.JobsWrite,
		Summary: "Cancel a sub-job", Errors: []apperr.Kind{apperr.InvalidState}, Response: exampleSubJob,
		Doc: "Its parts are cancelled too. Reports that come later are refused.",
	}, func(ctx context.Context, in *BySubJob) (subJobRecord, error) {
		return subJobOf(a.Jobs.Cancel(ctx, in.ID, in.SubJob))
	})
	rest.Handle(s, rest.Op{
		ID: "finish-sub-job", Method: http.MethodPost, Path: oneSubJob + "/result", Record: "sid",
		Scope:  auth.JobsWrite,
		Ticket: ticketHeader, TicketTenant: a.Jobs.TicketTenant, Summary: "Report a sub-job's result",
		Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Only the first result of the current attempt counts; another one is 409. A failed run is tried again " +
			"if its job allows another attempt. " + byWorker,
		Request:  map[string]any{"state": "succeeded", "result": map[string]any{"rows": 120}},
		Response: exampleSubJob,
	}, a.finishSubJob)
	a.registerLogs(s)
}

func (a *api) registerLogs(s *rest.Server) {
	page := map[string]any{"items": []any{exampleLine}, "total": 1, "page_num": 1, "page_size": 20}
	rest.Handle(s, rest.Op{
		ID: "list-job-logs", Method: http.MethodGet, Path: oneJob + "/logs", Record: rest.NoRecord,
		Scope:   auth.JobsRead,
		Summary: "List the log lines of a job's runs", Response: page,
	}, func(ctx context.Context, in *struct {
		rest.ByID
		docstore.Paging
	}) (rest.List[JobLine], error) {
		list, err := a.Jobs.Lines(ctx, in.ID, "", in.Paging)
		return rest.ListOf[JobLine](in.Paging, list, err)
	})
	rest.Handle(s, rest.Op{
		ID: "list-sub-job-logs", Method: http.MethodGet, Path: oneSubJob + "/logs", Record: rest.NoRecord,
		Scope:   auth.JobsRead,
		Summary: "List a sub-job's log lines", Response: page,
	}, func(ctx context.Context, in *struct {
		BySubJob
		docstore.Paging
	}) (rest.List[JobLine], error) {
		list, err := a.Jobs.Lines(ctx, in.ID, in.SubJob, in.Paging)
		return rest.ListOf[JobLine](in.Paging, list, err)
	})
	rest.Handle(s, rest.Op{
		ID: "add-sub-job-logs", Method: http.MethodPost, Path: oneSubJob + "/logs", Record: "sid",
		Scope:  auth.JobsWrite,
		Ticket: ticketHeader, TicketTenant: a.Jobs.TicketTenant, Summary: "Add lines to a sub-job's log",
		Errors:   []apperr.Kind{apperr.InvalidState},
		Doc:      "Only while it is unfinished. A run and its parts have at most 1000 lines. " + byWorker,
		Request:  map[string]any{"lines": []any{map[string]any{"message": "120 rows read"}}},
		Response: map[string]any{"items": []any{exampleLine}},
	}, a.addLines)
}

// BySubJob is the path of a sub-job.
type BySubJob struct {
	rest.ByID
	SubJob string `path:"sid" maxLength:"64" doc:"The sub-job's id" example:"1048578"`
}

// WithTicket has the header of a worker.
type WithTicket struct {
	Ticket string `header:"X-Callback-Token" maxLength:"256" doc:"The callback token of the sub-job, instead of a credential"`
}

type subJobRecord = rest.Record[SubJob]

func subJobOf(doc job.SubDoc, err error) (subJobRecord, error) {
	return rest.RecordOf[SubJob](doc, err)
}

type listSubJobsInput struct {
	rest.ByID
	State    string `query:"state" enum:"pending,running,succeeded,failed,cancelled,timed_out"`
	ParentID string `query:"parent_id" maxLength:"64" doc:"Only the parts of this sub-job"`
	docstore.Paging
}

func (a *api) listSubJobs(ctx context.Context, in *listSubJobsInput) (rest.List[SubJob], error) {
	page, err := a.Jobs.SubJobs(ctx, in.ID, job.SubFilter{State: in.State, ParentID: in.ParentID}, in.Paging)
	return rest.ListOf[SubJob](in.Paging, page, err)
}

type createSubJobInput struct {
	rest.ByID
	Body rest.JSON[SubJobInput]
}

func (a *api) createSubJob(ctx context.Context, in *createSubJobInput) (rest.Record[NewSubJob], error) {
	var draft job.Part
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[NewSubJob]{}, err
	}
	part, err := a.Jobs.AddPart(ctx, in.ID, draft)
	if err != nil {
		return rest.Record[NewSubJob]{}, err
	}
	body, tag, err := part.Stored()
	return rest.Record[NewSubJob]{JSON: body, Tag: tag}, err
}

type updateSubJobInput struct {
	BySubJob
	WithTicket
	Body rest.MergePatch[SubJobChangeInput]
}

func (a *api) updateSubJob(ctx context.Context, in *updateSubJobInput) (subJobRecord, error) {
	return subJobOf(a.Jobs.UpdateSubJob(ctx, job.Ticket(in.Ticket), in.ID, in.SubJob,
		func(p *job.Progress) error { return in.Body.Into(p) }))
}

type finishSubJobInput struct {
	BySubJob
	WithTicket
	Body rest.JSON[SubJobResult]
}

func (a *api) finishSubJob(ctx context.Context, in *finishSubJobInput) (subJobRecord, error) {
	var report job.Report
	if err := in.Body.Into(&report); err != nil {
		return subJobRecord{}, err
	}
	return subJobOf(a.Jobs.Finish(ctx, job.Ticket(in.Ticket), in.ID, in.SubJob, report))
}

type addLinesInput struct {
	BySubJob
	WithTicket
	Body rest.JSON[JobLinesInput]
}

func (a *api) addLines(ctx context.Context, in *addLinesInput) (rest.BatchOf[JobLine], error) {
	var draft struct {
		Lines []job.LineDraft `json:"lines"`
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.BatchOf[JobLine]{}, err
	}
	return rest.BatchFrom[JobLine](a.Jobs.AddLines(ctx, job.Ticket(in.Ticket), in.ID, in.SubJob, draft.Lines))
}

// SubJob describes job.SubJob for the OpenAPI document.
type SubJob struct {
	rest.Meta
	JobID         string     `json:"job_id" readOnly:"true" doc:"The job"`
	ParentID      string     `json:"parent_id" readOnly:"true" doc:"Of a part: the sub-job that it was split off from; empty for a run"`
	RootID        string     `json:"root_id" readOnly:"true" doc:"The run that it is a part of, or itself"`
	Name          string     `json:"name" doc:"Of a part; empty for a run"`
	Number        int64      `json:"number" readOnly:"true" doc:"Counts the job's runs from 1; 0 for a part"`
	State         string     `json:"state" enum:"pending,running,succeeded,failed,cancelled,timed_out" doc:"How it stands"`
	Attempt       int64      `json:"attempt" readOnly:"true" doc:"Counts its attempts from 1"`
	Progress      int64      `json:"progress" doc:"0…100"`
	Payload       any        `json:"payload" readOnly:"true" doc:"What it works on: any JSON"`
	Result        any        `json:"result" readOnly:"true" doc:"What it ended with: any JSON"`
	Error         string     `json:"error" readOnly:"true" doc:"Of the last attempt that failed"`
	TimeScheduled *time.Time `json:"time_scheduled" readOnly:"true" nullable:"true" doc:"The time of the schedule that it fires for; null if it was triggered"`
	TimeStarted   *time.Time `json:"time_started" readOnly:"true" nullable:"true" doc:"Of the last attempt"`
	TimeFinished  *time.Time `json:"time_finished" readOnly:"true" nullable:"true" doc:"null: not yet"`
}

// NewSubJob is a part that has just been created.
type NewSubJob struct {
	SubJob
	CallbackToken string `json:"callback_token" format:"password" doc:"For its worker; shown once"`
}

// SubJobInput is a part to be created.
type SubJobInput struct {
	ParentID string `json:"parent_id" doc:"An unfinished sub-job of the job"`
	Name     string `json:"name" doc:"1…128 characters"`
	Payload  any    `json:"payload,omitempty" doc:"Up to 64 KiB"`
}

// SubJobChangeInput has the members of an unfinished sub-job that can be changed. Read-only members may be sent back
// and do not count.
type SubJobChangeInput struct {
	rest.MembersOf[SubJob]
	State string `json:"state,omitempty" doc:"running, and only of a part"`
}

// SubJobResult is the result that a worker reports.
type SubJobResult struct {
	State  string `json:"state" enum:"succeeded,failed" doc:"How it ended"`
	Result any    `json:"result,omitempty" doc:"Up to 64 KiB"`
	Error  string `json:"error,omitempty" doc:"Up to 2048 characters"`
}

// JobLine describes job.Line for the OpenAPI document.
type JobLine struct {
	rest.Meta
	JobID    string    `json:"job_id" doc:"The job"`
	SubJobID string    `json:"sub_job_id" doc:"The run, or the part of it"`
	RootID   string    `json:"root_id" doc:"The run"`
	Time     time.Time `json:"time" doc:"When it happened"`
	Level    string    `json:"level" enum:"debug,info,warn,error" doc:"How bad it is"`
	Message  string    `json:"message" doc:"Up to 4096 characters"`
}

// JobLineInput is a line to be added.
type JobLineInput struct {
	Time    *time.Time `json:"time,omitempty" doc:"Now if absent"`
	Level   string     `json:"level,omitempty" enum:"debug,info,warn,error" doc:"info if absent"`
	Message string     `json:"message" doc:"Up to 4096 characters"`
}

// JobLinesInput are lines to be added.
type JobLinesInput struct {
	Lines []JobLineInput `json:"lines" minItems:"1" maxItems:"100" doc:"1…100, in their order"`
}

var exampleSubJob = json.RawMessage(`{"id":"1048578","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","job_id":"1048577",` +
	`"parent_id":"","root_id":"1048578","name":"Nightly report","number":1,"state":"pending","attempt":0,` +
	`"progress":0,"payload":{"full":true},"result":{"rows":0},"error":"","time_scheduled":null,"time_started":null,` +
	`"time_finished":null}`)

var exampleNewSubJob = json.RawMessage(strings.TrimSuffix(string(exampleSubJob), "}") +
	`,"callback_token":"rT9kQ2vX5mB8nL1pZ4wY7cH0sJ3dF6gA"}`)

var exampleLine = json.RawMessage(`{"id":"1048579","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","job_id":"1048577",` +
	`"sub_job_id":"1048578","root_id":"1048578","time":"2026-01-31T09:30:00.000Z","level":"info",` +
	`"message":"120 rows read"}`)
