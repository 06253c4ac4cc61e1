package example

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
)

// PagerRecord describes Pager for the OpenAPI document.
type PagerRecord struct {
	rest.Meta
	Name    string     `json:"name" doc:"What it is called"`
	OwnerID string     `json:"owner_id" doc:"Who carries it"`
	Number  string     `json:"number" readOnly:"true" doc:"What pages are sent to"`
	PIN     string     `json:"pin" doc:"Shown as ******"`
	TimeEnd *time.Time `json:"time_end" nullable:"true" doc:"When the pager is deleted"`
}

// PagerInput is a pager to create, or the members of one to change.
type PagerInput struct {
	rest.MembersOf[PagerRecord]
	Name string `json:"name"`
	PIN  string `json:"pin" writeOnly:"true" doc:"At least 4 characters; ****** keeps the old one"`
}

// PageForm is the form body of a page.
type PageForm struct {
	Number string `json:"number" doc:"The pager's"`
	PIN    string `json:"pin" doc:"The pager's"`
	Text   string `json:"text,omitempty" doc:"What it shows"`
}

// Paged is the answer to a page.
type Paged struct {
	Paged bool `json:"paged" doc:"Whether it was sent"`
}

type watchInput struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"The last event that the client has; later ones follow"`
}

func register(s *rest.Server, p *Pagers, pages *board) {
	rest.Handle(s, rest.Op{
		ID: "create-pager", Method: http.MethodPost, Path: "/v1/pagers", Scope: auth.KVWrite, Summary: "Create a pager",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleInput, Response: exampleRecord,
	}, rest.Create[PagerRecord, PagerInput](p.create))
	rest.Handle(s, rest.Op{
		ID: "list-pagers", Method: http.MethodGet, Path: "/v1/pagers", Scope: auth.KVRead, Summary: "List pagers",
		Response: map[string]any{"items": []any{exampleRecord}, "total": 1, "page_num": 1, "page_size": 20},
	}, func(ctx context.Context, in *struct{ docstore.Paging }) (rest.List[PagerRecord], error) {
		page, err := pagers.List(ctx, p.store, docstore.Filter{}, in.Paging)
		return rest.ListOf[PagerRecord](in.Paging, page, err)
	})
	rest.Handle(s, rest.Op{
		ID: "get-pager", Method: http.MethodGet, Path: "/v1/pagers/{id}", Scope: auth.KVRead, Summary: "Get a pager",
		Response: exampleRecord,
	}, rest.One[PagerRecord](p.get))
	rest.Handle(s, rest.Op{
		ID: "update-pager", Method: http.MethodPatch, Path: "/v1/pagers/{id}", Scope: auth.KVWrite,
		Summary: "Change a pager", Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleInput,
		Response: exampleRecord,
	}, rest.Update[PagerRecord, PagerInput](p.update))
	rest.Handle(s, rest.Op{
		ID: "delete-pager", Method: http.MethodDelete, Path: "/v1/pagers/{id}", Scope: auth.KVWrite,
		Summary: "Delete a pager", Response: rest.Deleted{ID: "1048577"},
	}, rest.Delete(p.delete))
	rest.Handle(s, rest.Op{ // without Scope: open to everybody
		ID: "send-page", Method: http.MethodPost, Path: "/v1/pagers/page", Summary: "Page somebody",
		OAuth: true, Momentary: true, Errors: []apperr.Kind{apperr.Unauthenticated},
		Request: PageForm{Number: "4mrhvkqtwz5c2d7ba3gxyun6ep", PIN: "4711", Text: "Call back"}, Response: Paged{true},
	}, func(ctx context.Context, in *struct{ Form rest.Form[PageForm] }) (Paged, error) {
		form := in.Form.Value
		return Paged{true}, p.page(ctx, form.Number, form.PIN, form.Text)
	})
	rest.Handle(s, rest.Op{
		ID: "watch-pages", Method: http.MethodGet, Path: "/v1/pagers/pages", Scope: auth.KVRead, Summary: "Watch pages",
		Streams: true, ContentTypes: []string{request.EventStreamType},
		Response: "id: 7\nevent: idp.pager.paged\ndata: {\"text\":\"Call back\"}\n\n",
	}, func(_ context.Context, in *watchInput) (rest.Events, error) { return pages.watch(in.LastEventID), nil })
}

var (
	exampleInput  = map[string]any{"name": "On call", "pin": "4711"}
	exampleRecord = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
		`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","name":"On call",` +
		`"owner_id":"","number":"4mrhvkqtwz5c2d7ba3gxyun6ep","pin":"******","time_end":null}`)
)
