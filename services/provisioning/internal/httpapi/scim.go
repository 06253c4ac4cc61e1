package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/journal"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// reply is the answer of an operation of SCIM.
type reply = rest.SCIMAnswer

// root is the path of the SCIM service.
const root = "/scim/v2"

// fault makes the body of an error.
func fault(status int, err error) any { return message.NewError(status, typed(err)) }

// typed gives what the server has refused, before the domain saw it, a scimType.
func typed(err error) error {
	if _, is := errors.AsType[*scim.Error](err); is {
		return err
	}
	e, is := errors.AsType[*apperr.Error](err)
	if !is || e.Kind != apperr.InvalidParameters {
		return err
	}
	for _, f := range e.Faults {
		if f.Location == "body" || strings.HasPrefix(f.Location, "body.") {
			return scim.With(scim.InvalidSyntax, e)
		}
	}
	return err
}

// Asked is the part of the input that all SCIM operations have in common.
type Asked struct {
	rest.SCIMRequest
}

// did is what a request has done, for the log and the counters.
type did string

const (
	created did = "created"
	updated did = "updated"
	removed did = "removed"
	nothing did = ""
)

// serve finds the connection of the caller, runs an operation for it, and logs the request. body is "" if there is
// none.
func (a *api) serve(
	ctx context.Context, in *Asked, body string, what did, run func(context.Context, people.Call) (reply, error),
) (reply, error) {
	c, err := a.caller(ctx)
	if err != nil {
		return rest.SCIMAnswer{}, err
	}
	info := request.From(ctx)
	info.Actor = connection.Actor(c.ID)
	ctx = request.With(ctx, info)
	call := people.Call{
		Connection: c, Ignored: &resource.Ignored{}, Method: in.Method, Path: in.Target, Body: body,
		Match: matching(in.IfMatch),
	}
	call.Exclusive = call.Match != nil
	answer, err := run(ctx, call)
	err = overtaken(call, err)
	if docstore.IsDryRun(ctx) {
		return answer, err
	}
	e := journal.Entry{ConnectionID: c.ID, Method: in.Method, Path: in.Target, Ignored: call.Ignored.Names()}
	if err != nil {
		refusal := message.NewError(problem.Status(apperr.KindOf(err)), typed(err))
		e.Status = int64(problem.Status(apperr.KindOf(err)))
		e.SCIMType, e.Detail = string(refusal.ScimType), refusal.Detail
		what = nothing
	} else if e.Status = int64(answer.Status); e.Status == 0 {
		e.Status = http.StatusOK
	}
	a.Journal.Note(ctx, e, string(what))
	return answer, err
}

// overtaken is what a client is told whose request others have overtaken: 412 is for a version that it has asked for.
func overtaken(call people.Call, err error) error {
	if call.Match == nil && apperr.KindOf(err) == apperr.VersionMismatch {
		return apperr.New(apperr.Unavailable, "others change the resource at the same time; try again").Because(err)
	}
	return err
}

// matching is the condition of an If-Match; nil if it takes any.
func matching(ifMatch string) people.Match {
	if text := strings.TrimSpace(ifMatch); text == "" || text == "*" {
		return nil
	}
	return func(tag string) bool { return rest.SCIMMatches(ifMatch, tag) }
}

// caller is the connection whose client sends the request. The error is apperr.Forbidden.
func (a *api) caller(ctx context.Context) (*connection.Connection, error) {
	p := auth.PrincipalFrom(ctx)
	if p == nil {
		return nil, apperr.New(apperr.Unauthenticated, "the request has no credential")
	}
	var doc connection.Doc
	var err error
	id, ours := strings.CutPrefix(p.Actor(), connection.Actor(""))
	switch {
	case p.Issuer != auth.Platform: // its clients may have the same names
		err = apperr.Missing("connection")
	case ours:
		doc, err = a.Connections.Get(ctx, id)
	case p.Actor() == auth.ClientActor(p.ClientID):
		doc, err = a.Connections.OfClient(ctx, p.ClientID)
	default:
		err = apperr.Missing("connection")
	}
	if apperr.IsNotFound(err) {
		return nil, apperr.New(apperr.Forbidden, "the credential is of no provisioning connection")
	}
	if err != nil {
		return nil, err
	}
	c, err := doc.Value()
	if err != nil {
		return nil, err
	}
	if c.Status != "1" {
		return nil, apperr.New(apperr.Forbidden, "the connection is disabled")
	}
	return c, nil
}

// shownAnswer is the answer with a resource.
func shownAnswer(shown people.Shown, status int) rest.SCIMAnswer {
	answer := rest.SCIMAnswer{Status: status, JSON: shown.JSON, Version: shown.Tag}
	if status == http.StatusCreated {
		answer.Location = shown.Location
	}
	return answer
}

func documentAnswer(v any, err error) (reply, error) {
	if err != nil {
		return rest.SCIMAnswer{}, err
	}
	body, err := json.Marshal(v)
	return rest.SCIMAnswer{JSON: body}, err
}
