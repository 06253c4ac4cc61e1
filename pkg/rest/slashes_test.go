package rest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// ByPlace is a path with a parameter that can contain slashes.
type ByPlace struct {
	Room  string `path:"room"`
	Place string `path:"place"`
}

// place is the answer of the operations below.
type place struct {
	Operation string `json:"operation"`
	Room      string `json:"room"`
	Place     string `json:"place"`
	Expects   bool   `json:"expects"`
}

func registerPlaces(s *rest.Server, _ service.Deps) {
	const path = "/v1/rooms/{room}/places/{place}"
	for _, op := range []rest.Op{
		{ID: "get-place", Method: http.MethodGet, Path: path, Scope: auth.UsersRead},
		{ID: "get-neighbours", Method: http.MethodGet, Path: path + "/next/all", Scope: auth.UsersRead},
		{ID: "get-neighbour", Method: http.MethodGet, Path: path + "/all", Scope: auth.UsersRead},
		{ID: "delete-place", Method: http.MethodDelete, Path: path, IfMatchParam: "place", Scope: auth.UsersWrite},
		{ID: "clear-place", Method: http.MethodPost, Path: path + "/clear", IfMatchParam: "place",
			Scope: auth.UsersWrite},
	} {
		op.CatchAllParam, op.Summary = "place", op.ID
		rest.Handle(s, op, func(ctx context.Context, in *ByPlace) (place, error) {
			return place{op.ID, in.Room, in.Place, docstore.Expects(ctx, in.Place)}, nil
		})
	}
}

func TestAPathParameterWithSlashes(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerPlaces).client()
	const rooms = "/v1/rooms/"
	for path, want := range map[string]place{
		"1/places/a":               {Operation: "get-place", Room: "1", Place: "a"},
		"1/places/a/b":             {Operation: "get-place", Room: "1", Place: "a/b"},
		"1/places/a%2Fb/c+d%20e":   {Operation: "get-place", Room: "1", Place: "a/b/c+d e"},
		"1%2F2/places/a%252Fb":     {Operation: "get-place", Room: "1/2", Place: "a%2Fb"},
		"1/places/all":             {Operation: "get-place", Room: "1", Place: "all"},
		"1/places/a/b/all":         {Operation: "get-neighbour", Room: "1", Place: "a/b"},
		"1/places/a/b/next/all":    {Operation: "get-neighbours", Room: "1", Place: "a/b"},
		"1/places/places/next/all": {Operation: "get-neighbours", Room: "1", Place: "places"},
	} {
		var got place
		c.Get(rooms + path).OK(&got)
		require.Equal(t, want, got, path)
	}
	var got place
	c.With("If-Match", `"1"`).Delete(rooms+"1/places/a/b", nil).OK(&got)
	require.Equal(t, place{"delete-place", "1", "a/b", true}, got)
	c.Post(rooms+"1/places/a/b/clear", nil).OK(&got)
	require.Equal(t, place{"clear-place", "1", "a/b", false}, got)
	c.Post(rooms+"1/places/a/b", nil).Problem(http.StatusNotFound, "not_found")
	c.Patch(rooms+"1/places/a/b", nil).Problem(http.StatusMethodNotAllowed, "method_not_allowed")
	c.Get(rooms+"1/places").Problem(http.StatusNotFound, "not_found")
	require.Equal(t, http.StatusOK, c.Do(http.MethodHead, rooms+"1/places/a/b", nil).Status)
}
