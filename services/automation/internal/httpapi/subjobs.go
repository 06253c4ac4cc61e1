package httpapi

import (
	"context"
	"net/http"

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
	rest.Named[job.Part](s, "SubJobInput")
	rest.Named[job.Report](s, "SubJobResult")
	runs := rest.Resource[job.SubJob, job.Progress, job.SubFilter]{
		Server: s, ID: "sub-job", Path: allSubJobs, Read: auth.JobsRead,
	}
	runs.List(rest.Op{
		IfMatchParam: rest.NoRecord, Summary: "List a job's runs and their parts",
		Doc: "The last 100 finished runs of a job are kept, for a week.",
	}, a.Jobs.SubJobs)
	rest.Handle(s, rest.Op{
		ID: "create-sub-job", Method: http.MethodPost, Path: allSubJobs, IfMatchParam: rest.NoRecord,
		Scope:   auth.JobsWrite,
		Summary: "Split a part off a run", Errors: []apperr.Kind{apperr.InvalidState}, RecentSignIn: rest.FreshAlways,
		Doc: "The platform does not run a part. Its worker reports progress and result, with a credential or with " +
			"the `callback_token`, which is shown once. A part that is unfinished when its parent ends is cancelled. " +
			"A run has at most 100 parts.",
	}, a.createSubJob)
	rest.Handle(s, rest.Op{
		ID: "get-sub-job", Method: http.MethodGet, Path: oneSubJob, IfMatchParam: "sid", Scope: auth.JobsRead,
		Summary: "Get a sub-job",
	}, func(ctx context.Context, in *BySubJob) (subJobRecord, error) {
		return subJobOf(a.Jobs.SubJob(ctx, in.ID, in.SubJob))
	})
	rest.Handle(s, rest.Op{
		ID: "update-sub-job", Method: http.MethodPatch, Path: oneSubJob, IfMatchParam: "sid", Scope: auth.JobsWrite,
		CallbackToken: ticketHeader, Summary: "Report a sub-job's progress", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Only while it is unfinished. " + byWorker,
	}, a.updateSubJob)
	rest.Handle(s, rest.Op{
		ID: "cancel-sub-job", Method: http.MethodPost, Path: oneSubJob + "/cancel", IfMatchParam: "sid",
		Scope:   auth.JobsWrite,
		Summary: "Cancel a sub-job", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Its parts are cancelled too. Reports that come later are refused.",
	}, func(ctx context.Context, in *BySubJob) (subJobRecord, error) {
		return subJobOf(a.Jobs.Cancel(ctx, in.ID, in.SubJob))
	})
	rest.Handle(s, rest.Op{
		ID: "finish-sub-job", Method: http.MethodPost, Path: oneSubJob + "/result", IfMatchParam: "sid",
		Scope:         auth.JobsWrite,
		CallbackToken: ticketHeader, CallbackTenant: a.Jobs.TicketTenant, Summary: "Report a sub-job's result",
		Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Only the first result of the current attempt counts; another one is 409. A failed run is tried again " +
			"if its job allows another attempt. " + byWorker,
	}, a.finishSubJob)
	a.registerLogs(s)
}

func (a *api) registerLogs(s *rest.Server) {
	rest.Named[job.Line](s, "JobLine")
	rest.Named[job.LineDraft](s, "JobLineInput")
	rest.Named[rest.BatchOf[job.Line]](s, "JobLineBatch")
	rest.Handle(s, rest.Op{
		ID: "list-job-logs", Method: http.MethodGet, Path: oneJob + "/logs", IfMatchParam: rest.NoRecord,
		Scope: auth.JobsRead, Summary: "List the log lines of a job's runs",
	}, func(ctx context.Context, in *struct {
		rest.ByID
		docstore.Paging
	}) (rest.List[job.Line], error) {
		list, err := a.Jobs.Lines(ctx, in.ID, "", in.Paging)
		return rest.ListOf[job.Line](in.Paging, list, err)
	})
	rest.Handle(s, rest.Op{
		ID: "list-sub-job-logs", Method: http.MethodGet, Path: oneSubJob + "/logs", IfMatchParam: rest.NoRecord,
		Scope: auth.JobsRead, Summary: "List a sub-job's log lines",
	}, func(ctx context.Context, in *struct {
		BySubJob
		docstore.Paging
	}) (rest.List[job.Line], error) {
		list, err := a.Jobs.Lines(ctx, in.ID, in.SubJob, in.Paging)
		return rest.ListOf[job.Line](in.Paging, list, err)
	})
	rest.Handle(s, rest.Op{
		ID: "add-sub-job-logs", Method: http.MethodPost, Path: oneSubJob + "/logs", IfMatchParam: "sid",
		Scope:         auth.JobsWrite,
		CallbackToken: ticketHeader, CallbackTenant: a.Jobs.TicketTenant, Summary: "Add lines to a sub-job's log",
		Errors: []apperr.Kind{apperr.InvalidState},
		Doc:    "Only while it is unfinished. A run and its parts have at most 1000 lines. " + byWorker,
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

type subJobRecord = rest.Record[job.SubJob]

func subJobOf(doc job.SubDoc, err error) (subJobRecord, error) {
	return rest.RecordOf[job.SubJob](doc, err)
}

type createSubJobInput struct {
	rest.ByID
	Body rest.JSON[job.Part]
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
	Body rest.JSON[job.Report]
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

func (a *api) addLines(ctx context.Context, in *addLinesInput) (rest.BatchOf[job.Line], error) {
	var draft JobLinesInput
	if err := in.Body.Into(&draft); err != nil {
		return rest.BatchOf[job.Line]{}, err
	}
	return rest.BatchFrom[job.Line](a.Jobs.AddLines(ctx, job.Ticket(in.Ticket), in.ID, in.SubJob, draft.Lines))
}

// NewSubJob is a part that has just been created.
type NewSubJob struct {
	job.SubJob
	CallbackToken string `json:"callback_token" format:"password" doc:"For its worker; shown once" example:"rT9kQ2vX5mB8nL1pZ4wY7cH0sJ3dF6gA"`
}

// SubJobChangeInput has the members of an unfinished sub-job that can be changed. Read-only members may be sent back
// and do not count.
type SubJobChangeInput struct {
	rest.MembersOf[job.SubJob]
	State string `json:"state,omitempty" doc:"running, and only of a part"`
}

// JobLinesInput are lines to be added.
type JobLinesInput struct {
	Lines []job.LineDraft `json:"lines" minItems:"1" maxItems:"100" doc:"1…100, in their order"`
}
