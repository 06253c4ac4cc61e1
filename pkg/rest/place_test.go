package rest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// The domain names members; the answer tells where in the request they are.
func TestPlacesOfFaults(t *testing.T) {
	t.Parallel()
	var refusal error
	refuse := func() (rest.Empty, error) { return rest.Empty{}, refusal }
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		op := func(id, method, path string) rest.Op {
			return rest.Op{ID: id, Method: method, Path: path, Scope: auth.UsersWrite, Summary: "Refuse"}
		}
		rest.Handle(s, op("change-it", http.MethodPatch, "/v1/refusals/{id}"), func(_ context.Context, _ *struct {
			rest.ByID
			Mode string `query:"mode"`
			Body struct {
				rest.MembersOf[docstore.Meta]
				Name string            `json:"name,omitempty"`
				Path []string          `json:"path,omitempty"`
				Body map[string]string `json:"body,omitempty"`
			}
		},
		) (rest.Empty, error) {
			return refuse()
		})
		type paging struct{ docstore.Paging }
		rest.Handle(s, op("list-them", http.MethodGet, "/v1/refusals"), func(context.Context, *paging) (rest.Empty,
			error) {
			return refuse()
		})
		rest.Handle(s, op("show-it", http.MethodGet, "/v1/refusals/{id}"), func(_ context.Context, _ *struct {
			rest.ByID
			Size int `query:"size"`
		},
		) (rest.Image, error) {
			load := func(context.Context) (string, []byte, error) { return "", nil, refusal }
			return rest.Image{ETag: "1", Load: load}, nil
		})
	})
	c := w.client()
	change := func() problem.Document { return c.Patch("/v1/refusals/1", map[string]any{}).Problem(refused(refusal)) }
	list := func() problem.Document { return c.Get("/v1/refusals").Problem(refused(refusal)) }
	show := func() problem.Document { return c.Get("/v1/refusals/1").Problem(refused(refusal)) }
	inUse := &apperr.Error{Kind: apperr.InUse, Detail: "x",
		Faults: []apperr.Fault{{Location: "tree_nodes", Message: "2 records refer to it", Count: 2}}}
	for _, row := range []struct {
		ask      func() problem.Document
		err      *apperr.Error
		location string
	}{
		{change, apperr.Invalid("name", "is bad"), "body.name"},
		{change, apperr.Invalid("items[3].email", "is bad"), "body.items[3].email"},
		{change, apperr.Invalid("", "is bad"), "body"},
		{change, apperr.Invalid("id", "has too many nodes below it"), "path.id"},
		{change, apperr.Invalid("mode", "is bad"), "query.mode"},
		{change, apperr.Invalid("ids[1]", "is bad"), "body.ids[1]"},
		{change, apperr.Taken("name"), "body.name"},
		{change, apperr.Invalid("path[0]", "is bad"), "body.path[0]"},
		{change, apperr.Invalid("body.x", "is bad"), "body.body.x"},
		{change, apperr.Invalid("query.mode", "is bad"), "query.mode"}, // the operation may name the place itself
		{change, inUse, "tree_nodes"},
		{list, apperr.Invalid("page_token", "is bad"), "query.page_token"},
		{list, apperr.Invalid("", "must have an end"), "query"},
		{list, apperr.Invalid("header.X-Tenant-Id", "is bad"), "header.X-Tenant-Id"},
		{show, apperr.Invalid("size", "is bad"), "query.size"},
	} {
		refusal = row.err
		doc := row.ask()
		require.Len(t, doc.Errors, 1)
		require.Equal(t, row.location, doc.Errors[0].Location)
		if row.err.Kind == apperr.InvalidParameters {
			require.Equal(t, row.location+" "+row.err.Faults[0].Message, doc.Detail)
		}
	}
}

func refused(err error) (status int, code string) {
	e, _ := errors.AsType[*apperr.Error](err)
	return problem.Status(e.Kind), string(e.Kind)
}
