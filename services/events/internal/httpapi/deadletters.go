package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/events/internal/deadletter"
)

const (
	deadLetters   = "/v1/dead-letters"
	oneDeadLetter = deadLetters + "/{id}"
)

func (a *api) registerDeadLetters(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-dead-letters", Method: http.MethodGet, Path: deadLetters, Scope: auth.PlatformAdmin,
		Summary: "List dead letters",
		Doc: "Events of all tenants that a service could not handle in ten tries, the oldest first. An `event` that " +
			"would make the page larger than 4 MiB is `null`; get it by its id.",
		Response: map[string]any{"items": []any{exampleDeadLetter}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listDeadLetters)
	rest.Handle(s, rest.Op{
		ID: "get-dead-letter", Method: http.MethodGet, Path: oneDeadLetter, Scope: auth.PlatformAdmin,
		Summary: "Get a dead letter", Response: exampleDeadLetter,
	}, func(ctx context.Context, in *rest.ByID) (rest.Record[DeadLetter], error) {
		return letterOf(a.DeadLetters.Get(ctx, in.ID))
	})
	rest.Handle(s, rest.Op{
		ID: "replay-dead-letter", Method: http.MethodPost, Path: oneDeadLetter + "/replay", Scope: auth.PlatformAdmin,
		Summary: "Replay a dead letter",
		Doc: "Its consumer, and no other, gets the event again, with all tries. It may be older than events that " +
			"the consumer has handled since. If it fails again, it becomes another dead letter.",
		Response: exampleDeadLetter,
	}, func(ctx context.Context, in *rest.ByID) (rest.Record[DeadLetter], error) {
		return letterOf(a.DeadLetters.Replay(ctx, in.ID))
	})
	rest.Handle(s, rest.Op{
		ID: "delete-dead-letter", Method: http.MethodDelete, Path: oneDeadLetter, Scope: auth.PlatformAdmin,
		Summary: "Delete a dead letter", Response: map[string]any{"id": "1795413428655447"},
	}, rest.Delete(a.DeadLetters.Delete))
}

type listDeadLettersInput struct {
	Consumer string `query:"consumer" maxLength:"63" doc:"The consumer's name" example:"permissions-users"`
	TimeFrom string `query:"time_from" maxLength:"40" doc:"RFC 3339 or a date: parked then or later"`
	docstore.Paging
}

func (a *api) listDeadLetters(ctx context.Context, in *listDeadLettersInput) (rest.List[DeadLetter], error) {
	var faults apperr.Faults
	from := rest.ReadTime(&faults, "time_from", in.TimeFrom)
	if err := faults.Err(); err != nil {
		return rest.List[DeadLetter]{}, err
	}
	filter := deadletter.Filter{Consumer: in.Consumer}
	if !from.IsZero() {
		filter.From = from.Std()
	}
	page, err := a.DeadLetters.List(ctx, filter, in.Paging)
	if err != nil {
		return rest.List[DeadLetter]{}, err
	}
	list := rest.List[DeadLetter]{Total: page.Total, Num: in.Num, Size: in.Size, Next: page.Next}
	if !in.Count.Or(true) {
		list.Total = -1
	}
	for _, letter := range page.Letters {
		item, err := json.Marshal(letter)
		if err != nil {
			return rest.List[DeadLetter]{}, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func letterOf(letter deadletter.Letter, err error) (rest.Record[DeadLetter], error) {
	if err != nil {
		return rest.Record[DeadLetter]{}, err
	}
	return rest.PartOf[DeadLetter](letter, strconv.FormatInt(letter.Version, 10))
}

// DeadLetter describes deadletter.Letter for the OpenAPI document.
type DeadLetter struct {
	rest.Meta
	Consumer string         `json:"consumer" doc:"Who could not take it" example:"permissions-users"`
	Error    string         `json:"error" doc:"Why the last try failed"`
	Tries    int            `json:"tries" doc:"0 if it is not an event at all"`
	Event    map[string]any `json:"event" nullable:"true" doc:"The CloudEvent; null if it is no JSON, or too large for the list"`
}

var exampleDeadLetter = json.RawMessage(`{"id":"1795413428655447","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
	`"consumer":"permissions-users","error":"the store does not answer","tries":10,"event":` + string(exampleEvent) + `}`)
