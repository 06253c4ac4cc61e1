package example

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
)

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
	of := rest.Resource[Pager, Profile, docstore.Paging]{
		Server: s, ID: "pager", One: "a pager", Many: "pagers", Path: "/v1/pagers",
		Read: auth.KVRead, Write: auth.KVWrite,
	}
	taken := []apperr.Kind{apperr.AlreadyExists}
	of.Create(rest.Op{Errors: taken}, p.create)
	of.List(rest.Op{}, func(ctx context.Context, asked docstore.Paging) (docstore.Page[Pager], error) {
		return pagers.List(ctx, p.store, docstore.Filter{}, asked)
	})
	of.Get(rest.Op{}, p.get)
	of.Update(rest.Op{Errors: taken}, p.update)
	of.Delete(rest.Op{}, p.delete)
	rest.Handle(s, rest.Op{ // without Scope: open to everybody
		ID: "send-page", Method: http.MethodPost, Path: "/v1/pagers/page", Summary: "Page somebody",
		OAuth: true, NoReplay: true, Errors: []apperr.Kind{apperr.Unauthenticated},
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
