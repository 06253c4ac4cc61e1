// Package example is a small but complete service, for tests and for authors of new services: it uses everything that
// pkg provides to services. It manages pagers. Anybody who knows the number and PIN of a pager can page it, without a
// credential; callers who may read pagers see the pages as they come.
//
// A real service has the same parts in more folders: this file is its face, pager.go and board.go are domains
// (internal/<noun>), api.go is its internal/httpapi.
package example

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
)

// Spec describes the service.
func Spec() service.Spec {
	return service.Spec{Name: "example", Collections: []*docstore.Def{pagers.Def()}, New: newApp}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	p, pages := &Pagers{store: d.Store, bus: d.Bus}, newBoard()
	server := d.Server("example")
	register(server.Tagged("Pagers", "What people carry to be called by."), p, pages)
	return service.App{
		Handler: server,
		Answer:  func(b *bus.Bus) error { return PagersOf.Answer(b, p.of) },
		Followers: []stream.FollowerConfig{{
			Name: "board", Types: stream.Types{"pager.paged"}, Snapshot: pages.clear, Handle: pages.put,
		}},
		Tasks: []service.Task{d.DueTask(service.DueWork{
			Name: "end pagers", Every: time.Minute, Due: pagers.Due, Do: p.end,
		})},
	}, nil
}

// Questions are declared in services/questions, where both sides find them. These are declared here because pkg imports
// no service.

// Owner identifies a person.
type Owner struct {
	ID string `json:"id"`
}

// PersonExists is a question that this service asks. Without an answer no pager gets an owner.
var PersonExists = bus.Question[Owner, bool]{Service: "people", Name: "person-exists"}

// PagersOf is a question that this service answers: how many pagers a person has.
var PagersOf = bus.Question[Owner, int64]{Service: "example", Name: "pagers-of"}
