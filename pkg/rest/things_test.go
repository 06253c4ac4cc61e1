package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

func TestMain(m *testing.M) { basic.Main(m) }

// thing is the record of these tests' operations.
type thing struct {
	docstore.Meta
	Name  string          `json:"name"`
	Count int64           `json:"count"`
	Size  *Size           `json:"size,omitempty"`
	Tags  []string        `json:"tags,omitempty"`
	Props json.RawMessage `json:"props,omitempty"`
}

// Size is a nested object.
type Size struct {
	Width  int64  `json:"width"`
	Height int64  `json:"height"`
	Unit   string `json:"unit,omitempty" enum:"mm,inch"`
}

var things = docstore.Define(docstore.Schema[thing]{
	Name: "things", Noun: "thing", Sortable: []string{"time_created", "name"},
	Indexes: []docstore.Index[thing]{
		docstore.Unique(docstore.ByText("name", func(v *thing) string { return v.Name }), "name"),
		docstore.ByNumber("time_created", func(v *thing) docstore.Value { return docstore.Moment(v.TimeCreated) }),
	},
})

// Thing is the record's wire form.
type Thing struct {
	ID      string         `json:"id" readOnly:"true"`
	Version int64          `json:"version" readOnly:"true"`
	Name    string         `json:"name"`
	Count   int64          `json:"count"`
	Size    *Size          `json:"size,omitempty"`
	Tags    []string       `json:"tags,omitempty"`
	Props   map[string]any `json:"props,omitempty"`
}

// ThingInput is the body of create and change.
type ThingInput struct {
	Name  string         `json:"name" minLength:"1" maxLength:"64"`
	Count int64          `json:"count,omitempty"`
	Size  *Size          `json:"size,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	Props map[string]any `json:"props,omitempty"`
	Mail  string         `json:"mail,omitempty" format:"email"`
	Site  string         `json:"site,omitempty" format:"uri"`
	UUID  string         `json:"uuid,omitempty" format:"uuid"`
	Span  string         `json:"span,omitempty" format:"duration"`
	Match string         `json:"match,omitempty" format:"regex"`
}

type created struct {
	Body rest.JSON[ThingInput]
}

// ByID is the path of one record.
type ByID struct {
	ID string `path:"id"`
}

type changed struct {
	ByID
	Body rest.MergePatch[ThingInput]
}

// world is a service of things. Tests set before and after to run code inside operations.
type world struct {
	*testkit.Service
	logs *logBuffer
	dir  string

	before func(context.Context) error // run by create before its transaction
	after  func(context.Context) error // run by create after its transaction
}

// newWorld starts a world. more registers further operations.
func newWorld(t *testing.T, more ...func(*rest.Server, service.Deps)) *world {
	t.Helper()
	return newWorldOn(t, nil, more...)
}

// newWorldOn starts a world on the engine that wrap returns for a new SQLite engine, whose files are in the world's
// dir.
func newWorldOn(t *testing.T, wrap func(docstore.Engine) docstore.Engine,
	more ...func(*rest.Server, service.Deps)) *world {
	t.Helper()
	return newWorldWith(t, wrap, nil, more...)
}

// newWorldWith starts a world whose answers have a budget.
func newWorldWith(t *testing.T, wrap func(docstore.Engine) docstore.Engine, budget *rest.Budget,
	more ...func(*rest.Server, service.Deps)) *world {
	t.Helper()
	w := &world{logs: &logBuffer{}, dir: t.TempDir()}
	nothing := func(context.Context) error { return nil }
	w.before, w.after = nothing, nothing
	spec := service.Spec{Name: "things", Collections: []*docstore.Def{things.Def()},
		New: func(_ context.Context, d service.Deps) (service.App, error) {
			if wrap != nil {
				engine, err := sqlitestore.Open(t.Context(),
					sqlitestore.Options{Path: filepath.Join(w.dir, "things.db"), Log: d.Log})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, engine.Close()) })
				d.Store, err = docstore.Open(t.Context(), wrap(engine), d.Clock,
					append(rest.Collections(), things.Def())...)
				require.NoError(t, err)
			}
			d.Answers = budget
			s := d.Server("Things")
			w.register(s, d)
			for _, register := range more {
				register(s, d)
			}
			return service.App{Handler: s}, nil
		}}
	w.Service = testkit.Start(t, spec, testkit.Options{Log: telemetry.NewLogger(w.logs, -4, telemetry.JSON)})
	return w
}

// client has all scopes of things.
func (w *world) client() *testkit.Client { return w.As("acme", auth.UsersRead, auth.UsersWrite) }

func (w *world) register(s *rest.Server, d service.Deps) {
	rest.Handle(s, rest.Op{
		ID: "create-thing", Method: http.MethodPost, Path: "/v1/things", Scope: auth.UsersWrite,
		Summary: "Create a thing", Errors: []apperr.Kind{apperr.AlreadyExists},
	}, func(ctx context.Context, in *created) (rest.Record[Thing], error) {
		var v thing
		if err := in.Body.Into(&v); err != nil {
			return rest.Record[Thing]{}, err
		}
		if err := w.before(ctx); err != nil {
			return rest.Record[Thing]{}, err
		}
		doc, err := create(ctx, d.Store, v)
		if err == nil {
			err = w.after(ctx)
		}
		return rest.RecordOf[Thing](doc, err)
	})
	rest.Handle(s, rest.Op{ID: "list-things", Method: http.MethodGet, Path: "/v1/things", Scope: auth.UsersRead,
		Summary: "List things"},
		func(ctx context.Context, in *struct{ docstore.Paging }) (rest.List[Thing], error) {
			page, err := things.List(ctx, d.Store, docstore.Filter{}, in.Paging)
			return rest.ListOf[Thing](in.Paging, page, err)
		})
	rest.Handle(s, rest.Op{ID: "get-thing", Method: http.MethodGet, Path: "/v1/things/{id}", Scope: auth.UsersRead,
		Summary: "Get a thing"},
		func(ctx context.Context, in *ByID) (rest.Record[Thing], error) {
			doc, err := things.Find(ctx, d.Store, in.ID)
			return rest.RecordOf[Thing](doc, err)
		})
	rest.Handle(s, rest.Op{ID: "change-thing", Method: http.MethodPatch, Path: "/v1/things/{id}",
		Scope: auth.UsersWrite, Summary: "Change a thing"},
		func(ctx context.Context, in *changed) (rest.Record[Thing], error) {
			doc, err := docstore.Write(ctx, d.Store, func(tx *docstore.Tx) (docstore.Doc[thing], error) {
				v, err := things.Load(ctx, tx, in.ID)
				if err != nil {
					return docstore.Doc[thing]{}, err
				}
				if err := in.Body.Into(v); err != nil {
					return docstore.Doc[thing]{}, err
				}
				return things.Replace(ctx, tx, v)
			})
			return rest.RecordOf[Thing](doc, err)
		})
}

func create(ctx context.Context, store *docstore.Store, v thing) (docstore.Doc[thing], error) {
	id, err := store.NewID(ctx)
	if err != nil {
		return docstore.Doc[thing]{}, err
	}
	return docstore.Write(ctx, store, func(tx *docstore.Tx) (docstore.Doc[thing], error) {
		v := v
		v.ID = id
		return things.Insert(ctx, tx, &v)
	})
}

// count is the number of things.
func (w *world) count() int {
	var list struct {
		Total int `json:"total"`
	}
	w.client().Get("/v1/things").OK(&list)
	return list.Total
}

// requests returns how often an operation was answered with a status, from the metrics.
func (w *world) requests(t *testing.T, operation, code string) float64 {
	t.Helper()
	families, err := w.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "idp_http_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["operation"] == operation && labels["code"] == code {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

// logBuffer keeps the log.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// with returns the lines that contain text.
func (b *logBuffer) with(text string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for line := range strings.Lines(b.b.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
