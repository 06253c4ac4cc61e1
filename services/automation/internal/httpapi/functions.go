package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/function"
	"github.com/idplatform/idplatform/services/automation/internal/sandbox"
)

const (
	functionsPath = "/v1/functions"
	oneFunction   = functionsPath + "/{id}"
)

func (a *api) registerFunctions(s *rest.Server) {
	rest.Named[function.Limits](s, "FunctionLimits")
	rest.Named[function.Trigger](s, "FunctionTrigger")
	rest.Named[function.Revision](s, "FunctionRevision")
	rest.Named[sandbox.Fault](s, "FunctionFault")
	rest.Named[sandbox.Line](s, "FunctionLine")
	writeErrors := []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.Unavailable}
	rest.Handle(s, rest.Op{
		ID: "create-function", Method: http.MethodPost, Path: functionsPath, Scope: auth.FunctionsWrite,
		Summary: "Create a function", Errors: writeErrors,
		Doc: "The code is compiled and checked, but not run. `javascript` needs `source` of at most 256 KiB. `wasm` " +
			"takes `module_base64`; a module that is too large for a body of 1 MiB is uploaded afterwards. The " +
			"values of `env` are secrets.",
	}, a.createFunction)
	rest.Handle(s, rest.Op{
		ID: "list-functions", Method: http.MethodGet, Path: functionsPath, Scope: auth.FunctionsRead,
		Summary: "List functions", Doc: "Without their code.",
	}, a.listFunctions)
	rest.Handle(s, rest.Op{
		ID: "get-function", Method: http.MethodGet, Path: oneFunction, Scope: auth.FunctionsRead,
		Summary: "Get a function",
	}, a.getFunction)
	rest.Handle(s, rest.Op{
		ID: "replace-function", Method: http.MethodPut, Path: oneFunction, Scope: auth.FunctionsWrite,
		Summary: "Replace a function", Errors: writeErrors,
		Doc: "Absent code stays as it is, and so does each value of `env` that is `******`. Other code, another " +
			"runtime or another entry makes a new revision.",
	}, a.replaceFunction)
	rest.Handle(s, rest.Op{
		ID: "update-function", Method: http.MethodPatch, Path: oneFunction, Scope: auth.FunctionsWrite,
		Summary: "Change a function", Errors: writeErrors, Doc: "JSON merge patch (RFC 7396).",
		Request: map[string]any{"limits": map[string]any{"timeout_ms": 5000}},
	}, a.updateFunction)
	rest.Handle(s, rest.Op{
		ID: "delete-function", Method: http.MethodDelete, Path: oneFunction, Scope: auth.FunctionsWrite,
		Summary: "Delete a function", Errors: []apperr.Kind{apperr.InUse},
		Doc: "Its revisions, logs and waiting runs are deleted too. Refused while it is the target of jobs.",
	}, rest.Delete(a.Functions.Delete))
	rest.Handle(s, rest.Op{
		ID: "put-function-module", Method: http.MethodPut, Path: oneFunction + "/module", Scope: auth.FunctionsWrite,
		Summary: "Upload a module", Errors: append(writeErrors, apperr.TooLarge),
		Consumes: []string{"application/wasm"},
		Doc:      "The body is a WebAssembly module of at most 4 MiB.",
	}, a.putModule)
	a.registerCalls(s)
}

func (a *api) registerCalls(s *rest.Server) {
	rest.Named[function.Invocation](s, "FunctionInvocation")
	rest.Handle(s, rest.Op{
		ID: "invoke-function", Method: http.MethodPost, Path: oneFunction + "/invoke", Scope: auth.FunctionsWrite,
		Summary: "Invoke a function", Timeout: time.Minute,
		Errors: []apperr.Kind{apperr.InvalidState, apperr.Unavailable, apperr.OutcomeUnknown},
		Doc: "The answer is 200 however the function ends: `outcome` says how, and `error` why. If the function's " +
			"worker is killed, the answer is 502: the function may have run. A dry run calls nothing.",
	}, a.invoke)
	rest.Handle(s, rest.Op{
		ID: "list-function-revisions", Method: http.MethodGet, Path: oneFunction + "/revisions",
		Scope: auth.FunctionsRead, Summary: "List revisions",
		Doc: "Those whose code is kept: at most 10 with 8 MiB together; latest first, or by `page_sort` in the order " +
			"of `revision` or `time_created`.",
	}, a.listRevisions)
	rest.Handle(s, rest.Op{
		ID: "rollback-function", Method: http.MethodPost, Path: oneFunction + "/rollback", Scope: auth.FunctionsWrite,
		Summary: "Roll back a function", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "Creates a new revision with the code, runtime and entry of an earlier one.",
	}, a.rollBack)
	rest.Named[function.LogEntry](s, "FunctionLog")
	logs := rest.Resource[function.LogEntry, struct{}, function.LogFilter]{
		Server: s, ID: "function-log", Path: oneFunction + "/logs", Read: auth.FunctionsRead,
	}
	logs.List(rest.Op{
		Summary: "List a function's log",
		Doc: "Calls that logged something, failed, or were triggered by an event: the last 100 of a function, for 7 " +
			"days. `page_sort=time_created[desc]` begins with the latest.",
	}, a.Functions.Logs)
}

// detailed makes a body of a function with its code.
func detailed(d function.Detail, err error) (rest.Record[Function], error) {
	if err != nil {
		return rest.Record[Function]{}, err
	}
	body, tag, err := d.Stored()
	return rest.Record[Function]{JSON: body, Tag: tag}, err
}

func (a *api) createFunction(ctx context.Context, in *rest.Creation[FunctionInput]) (rest.Record[Function], error) {
	var draft function.Draft
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[Function]{}, err
	}
	return detailed(a.Functions.Create(ctx, draft))
}

func (a *api) listFunctions(ctx context.Context, in *function.Filter) (rest.List[Function], error) {
	page, err := a.Functions.List(ctx, *in)
	return rest.ListOf[Function](in.Paging, page, err)
}

func (a *api) getFunction(ctx context.Context, in *rest.ByID) (rest.Record[Function], error) {
	return detailed(a.Functions.Get(ctx, in.ID))
}

func (a *api) replaceFunction(ctx context.Context, in *rest.Replacement[FunctionInput]) (rest.Record[Function], error) {
	return detailed(a.Functions.Update(ctx, in.ID, func(d *function.Draft) error {
		*d = function.Draft{}
		return in.Body.Into(d)
	}))
}

func (a *api) updateFunction(ctx context.Context, in *rest.Change[FunctionInput]) (rest.Record[Function], error) {
	return detailed(a.Functions.Update(ctx, in.ID, func(d *function.Draft) error { return in.Body.Into(d) }))
}

type putModuleInput struct {
	rest.ByID
	rest.Upload
}

func (a *api) putModule(ctx context.Context, in *putModuleInput) (rest.Record[Function], error) {
	module, err := io.ReadAll(io.LimitReader(in.Request.Body, sandbox.MaxCode+1))
	if err != nil {
		return rest.Record[Function]{}, apperr.Invalid("", "could not be read").Because(err)
	}
	if len(module) > sandbox.MaxCode {
		return rest.Record[Function]{},
			apperr.New(apperr.TooLarge, "the module has more than %d MiB", sandbox.MaxCode>>20)
	}
	return detailed(a.Functions.Update(ctx, in.ID, func(d *function.Draft) error {
		d.Module = module
		return nil
	}))
}

type invokeInput struct {
	rest.ByID
	Body *rest.JSON[FunctionCall]
}

func (a *api) invoke(ctx context.Context, in *invokeInput) (function.Invocation, error) {
	var body FunctionCall
	if in.Body != nil {
		if err := in.Body.Into(&body); err != nil {
			return function.Invocation{}, err
		}
	}
	return a.Functions.Invoke(ctx, in.ID, body.Input)
}

type listRevisionsInput struct {
	rest.ByID
	docstore.Paging
}

func (a *api) listRevisions(ctx context.Context, in *listRevisionsInput) (rest.List[function.Revision], error) {
	page, err := a.Functions.Revisions(ctx, in.ID, in.Paging)
	if err != nil {
		return rest.List[function.Revision]{}, err
	}
	list := rest.List[function.Revision]{
		Total: int64(page.Total), Num: in.Num, Size: in.Size, Next: page.Next,
	}
	if !in.Count.Or(true) {
		list.Total = -1
	}
	for _, r := range page.Items {
		part, err := rest.PartOf[function.Revision](r, "")
		if err != nil {
			return list, err
		}
		list.Items = append(list.Items, part.JSON)
	}
	return list, nil
}

type rollBackInput struct {
	rest.ByID
	Body *rest.JSON[FunctionRollback]
}

func (a *api) rollBack(ctx context.Context, in *rollBackInput) (rest.Record[Function], error) {
	var to FunctionRollback
	if in.Body != nil {
		if err := in.Body.Into(&to); err != nil {
			return rest.Record[Function]{}, err
		}
	}
	return detailed(a.Functions.Rollback(ctx, in.ID, to.Revision))
}
