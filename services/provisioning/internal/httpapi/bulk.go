package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// bulkTime bounds a Bulk request: a thousand changes take longer than one.
const bulkTime = 3 * time.Minute

func (a *api) registerBulk(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "scim-bulk-requests", Method: http.MethodPost, Path: root + "/Bulk", Scope: auth.SCIM, SCIM: fault,
		Timeout: bulkTime, Summary: "Carry out several operations",
		Doc: "RFC 7644 §3.7: in order, each alone. References to a `bulkId` of a later operation let that one come " +
			"first.",
		Request: map[string]any{"schemas": []string{message.BulkRequestURN}, "Operations": []any{map[string]any{
			"method": "POST", "path": "/Users", "bulkId": "1", "data": exampleUser,
		}}},
		Response: message.NewBulkResponse([]message.BulkResult{{Method: "POST", BulkID: "1", Status: "201"}}),
	}, func(ctx context.Context, in *BodyInput) (reply, error) {
		body := in.Body.Text()
		return a.serve(ctx, &in.Asked, "", nothing, func(ctx context.Context, call people.Call) (reply, error) {
			request, err := message.ParseBulk([]byte(body))
			if err != nil {
				return rest.SCIMAnswer{}, err
			}
			return documentAnswer(message.NewBulkResponse(a.bulk(ctx, call, request)), nil)
		})
	})
}

// bulk carries out the operations of a request, and returns their results in the order of the request.
func (a *api) bulk(ctx context.Context, call people.Call, b message.Bulk) []message.BulkResult {
	results := make([]*message.BulkResult, len(b.Operations))
	made := map[string]string{} // ids by bulkId
	failures := 0
	for _, i := range b.Order {
		if b.FailOnErrors > 0 && failures >= b.FailOnErrors || ctx.Err() != nil {
			break
		}
		op := &b.Operations[i]
		result := message.BulkResult{Method: op.Method, BulkID: op.BulkID}
		shown, status, err := a.bulkOne(ctx, call, op, made)
		if err != nil {
			failures++
			status = problem.Status(apperr.KindOf(err))
			result.Response = message.NewError(status, typed(err))
		} else {
			result.Location, result.Version = shown.Location, shown.Tag
			if op.Method == http.MethodPost {
				made[op.BulkID] = shown.ID
			}
		}
		if op.Method != http.MethodPost { // also of one that failed (RFC 7644 section 3.7)
			result.Location = a.locationOf(op.Path)
		}
		result.Status = strconv.Itoa(status)
		results[i] = &result
	}
	var told []message.BulkResult
	for _, r := range results {
		if r != nil {
			told = append(told, *r)
		}
	}
	return told
}

// locationOf is the URL of the resource that an operation names by its path.
func (a *api) locationOf(path string) string {
	if strings.HasPrefix(path, a.Base) {
		return path
	}
	return a.Base + "/" + strings.TrimPrefix(path, "/")
}

func (a *api) bulkOne(ctx context.Context, call people.Call, op *message.BulkOperation, made map[string]string) (
	people.Shown, int, error,
) {
	if op.Err != nil {
		return people.Shown{}, 0, op.Err
	}
	if err := op.Resolve(func(id string) (string, bool) { made, has := made[id]; return made, has }); err != nil {
		return people.Shown{}, 0, err
	}
	path, _ := strings.CutPrefix(op.Path, a.Base)
	collection, id, hasID := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	var e endpoint
	switch {
	case strings.EqualFold(collection, "Users"):
		e = a.users()
	case strings.EqualFold(collection, "Groups"):
		e = a.groups()
	default:
		return people.Shown{}, 0, scim.Invalid(scim.InvalidValue, "path", "must be /Users or /Groups, and an id")
	}
	if hasID == (op.Method == http.MethodPost) || hasID && (id == "" || strings.Contains(id, "/")) {
		return people.Shown{}, 0, scim.Invalid(scim.InvalidValue, "path", "does not fit the method")
	}
	call.Method, call.Path, call.Body = op.Method, root+"/"+collection+"/"+id, ""
	if op.Data != nil {
		data, err := json.Marshal(op.Data)
		if err != nil {
			return people.Shown{}, 0, err
		}
		call.Body = string(data)
	}
	var err error // the connection may have been deleted or disabled since the request began
	if call.Connection, err = a.caller(ctx); err != nil {
		return people.Shown{}, 0, err
	}
	call.Match = matching(op.Version)
	call.Exclusive = call.Match != nil
	shown, status, err := perform(ctx, call, e, op, id)
	return shown, status, overtaken(call, err)
}

func perform(ctx context.Context, call people.Call, e endpoint, op *message.BulkOperation, id string) (
	people.Shown, int, error,
) {
	data, _ := op.Data.(resource.Object)
	p := resource.Project(e.kind, nil, []string{"members"}) // results have no resources
	switch op.Method {
	case http.MethodPost:
		shown, err := e.post(ctx, call, p, data)
		return shown, http.StatusCreated, err
	case http.MethodPut:
		shown, err := e.put(ctx, call, p, id, data)
		return shown, http.StatusOK, err
	case http.MethodPatch:
		operations, err := patch.FromObject(data)
		if err != nil {
			return people.Shown{}, 0, err
		}
		shown, err := e.patch(ctx, call, p, id, operations)
		return shown, http.StatusOK, err
	}
	return people.Shown{}, http.StatusNoContent, e.remove(ctx, call, id)
}
