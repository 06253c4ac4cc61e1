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
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

type hidden struct {
	Secret string `json:"secret" query:"secret"`
}

// Shown embeds a struct that encoding/json encodes and huma overlooks.
type Shown struct {
	hidden
	Name string `json:"name"`
}

type pointed struct{ *hidden }

// Doubled embeds two structs with fields of one name and different members.
type Doubled struct {
	docstore.Meta
	Person
}

// Person has a member that is called in Go as one of docstore.Meta.
type Person struct {
	ID string `json:"person_id"`
}

// Cyclic contains itself.
type Cyclic struct {
	Name string   `json:"name"`
	More []Cyclic `json:"more,omitempty"`
}

func handle[I, B any](method string) func(*rest.Server) {
	return func(s *rest.Server) {
		rest.Handle(s, rest.Op{ID: "it", Method: method, Path: "/v1/it", Scope: auth.UsersWrite, Summary: "It"},
			func(context.Context, *I) (B, error) { var b B; return b, nil })
	}
}

func TestTypesThatHumaOverlooks(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	for name, c := range map[string]struct {
		register func(*rest.Server)
		panics   bool
	}{
		"good":             {handle[struct{ ByID }, rest.Record[Thing]](http.MethodGet), false},
		"cyclic":           {handle[struct{ Body rest.JSON[Cyclic] }, []Cyclic](http.MethodPost), false},
		"upload":           {handle[struct{ rest.Upload }, rest.Stream](http.MethodPut), false},
		"input":            {handle[struct{ hidden }, rest.Empty](http.MethodGet), true},
		"pointer in input": {handle[pointed, rest.Empty](http.MethodGet), true},
		"body":             {handle[struct{ Body Shown }, rest.Empty](http.MethodPost), true},
		"optional body":    {handle[struct{ Body *Shown }, rest.Empty](http.MethodPost), true},
		"json":             {handle[struct{ Body rest.JSON[Shown] }, rest.Empty](http.MethodPost), true},
		"patch":            {handle[struct{ Body rest.MergePatch[Shown] }, rest.Empty](http.MethodPatch), true},
		"nested": {handle[struct {
			Body struct {
				List map[string][]*Shown `json:"list"`
			}
		}, rest.Empty](http.MethodPost), true},
		"answer": {handle[struct{}, Shown](http.MethodGet), true},
		"record": {handle[struct{}, rest.Record[Shown]](http.MethodGet), true},
		"list":   {handle[struct{}, rest.List[Shown]](http.MethodGet), true},
		"array":  {handle[struct{}, []Shown](http.MethodGet), true},
	} {
		newWorld(t, func(s *rest.Server, _ service.Deps) {
			if c.panics {
				require.Contains(t, panicOf(func() { c.register(s) }), "hidden", name)
			} else {
				require.NotPanics(t, func() { c.register(s) }, name)
			}
		})
	}
}

// Of two fields of one name, huma would overlook the second.
func TestFieldsOfOneName(t *testing.T) {
	t.Parallel()
	newWorld(t, func(s *rest.Server, _ service.Deps) {
		fault := panicOf(func() { handle[struct{}, Doubled](http.MethodGet)(s) })
		require.Contains(t, fault, "two fields ID, for id and for person_id")
	})
}

func panicOf(fn func()) (fault any) {
	defer func() { fault = recover() }()
	fn()
	return nil
}

// The document would promise an Idempotency-Key that nothing honours.
func TestAPostThatReadsItsBodyItselfMustStream(t *testing.T) {
	t.Parallel()
	newWorld(t, func(s *rest.Server, _ service.Deps) {
		require.Panics(t, func() {
			rest.Handle(s, rest.Op{ID: "it", Method: http.MethodPost, Path: "/v1/it", Scope: auth.UsersWrite,
				Summary: "It", Consumes: []string{"image/png"}},
				func(context.Context, *upload) (rest.Empty, error) { return rest.Empty{}, nil })
		})
	})
}

// TestTotalRelation: a list says so if there are more records than total.
func TestTotalRelation(t *testing.T) {
	t.Parallel()
	page := docstore.Page[thing]{}
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "counted", Method: http.MethodGet, Path: "/v1/counted", Scope: auth.UsersRead,
			Summary: "Counted"},
			func(_ context.Context, in *struct{ docstore.Paging }) (rest.List[Thing], error) {
				return rest.ListOf[Thing](in.Paging, page, nil)
			})
	})
	list := func(total int64, more bool) map[string]any {
		page.Total, page.More = total, more
		return w.client().Get("/v1/counted").Object()
	}
	require.Equal(t, map[string]any{"items": []any{}, "total": 3.0, "page_num": 1.0, "page_size": 20.0}, list(3, false))
	require.Equal(t, map[string]any{"items": []any{}, "total": 10000.0, "total_relation": "gte", "page_num": 1.0,
		"page_size": 20.0}, list(10_000, true))
	require.Equal(t, map[string]any{"items": []any{}, "page_num": 1.0, "page_size": 20.0}, list(-1, false))
}

// TestSchemasComeFirst: a name or another schema would not reach the operations that were there before.
func TestSchemasComeFirst(t *testing.T) {
	t.Parallel()
	newWorld(t, func(s *rest.Server, _ service.Deps) {
		handle[struct{}, Cyclic](http.MethodGet)(s)
		require.Contains(t, panicOf(func() { rest.Named[Cyclic](s, "Ring") }), "described after")
		require.Contains(t, panicOf(func() { rest.DescribedAs[Cyclic, string](s) }), "described after")
	})
}

// TestNamed: a schema has its name also where a member points to its type.
func TestNamed(t *testing.T) {
	t.Parallel()
	newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Named[Cyclic](s, "Ring")
		handle[struct{}, struct {
			Ring *Cyclic `json:"ring"`
		}](http.MethodGet)(s)
		schemas := s.OpenAPI().Components.Schemas.Map()
		require.Contains(t, schemas, "Ring")
		require.NotContains(t, schemas, "Cyclic")
	})
}
