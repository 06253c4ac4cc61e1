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
	rest.Named[deadletter.Letter](s, "DeadLetter")
	rest.Handle(s, rest.Op{
		ID: "list-dead-letters", Method: http.MethodGet, Path: deadLetters, Scope: auth.PlatformAdmin,
		Summary: "List dead letters",
		Doc: "Events of all tenants that a service could not handle in ten tries, the oldest first. An `event` that " +
			"would make the page larger than 4 MiB is `null`; get it by its id.",
	}, a.listDeadLetters)
	rest.Handle(s, rest.Op{
		ID: "get-dead-letter", Method: http.MethodGet, Path: oneDeadLetter, Scope: auth.PlatformAdmin,
		Summary: "Get a dead letter",
	}, func(ctx context.Context, in *rest.ByID) (rest.Record[deadletter.Letter], error) {
		return letterOf(a.DeadLetters.Get(ctx, in.ID))
	})
	rest.Handle(s, rest.Op{
		ID: "replay-dead-letter", Method: http.MethodPost, Path: oneDeadLetter + "/replay", Scope: auth.PlatformAdmin,
		Summary: "Replay a dead letter",
		Doc: "Its consumer, and no other, gets the event again, with all tries. It may be older than events that " +
			"the consumer has handled since. If it fails again, it becomes another dead letter.",
	}, func(ctx context.Context, in *rest.ByID) (rest.Record[deadletter.Letter], error) {
		return letterOf(a.DeadLetters.Replay(ctx, in.ID))
	})
	rest.Handle(s, rest.Op{
		ID: "delete-dead-letter", Method: http.MethodDelete, Path: oneDeadLetter, Scope: auth.PlatformAdmin,
		Summary: "Delete a dead letter",
	}, rest.Delete(a.DeadLetters.Delete))
}

type listDeadLettersInput struct {
	deadletter.Filter
	TimeFrom string `query:"time_from" maxLength:"40" doc:"RFC 3339 or a date: parked then or later"`
	docstore.Paging
}

func (a *api) listDeadLetters(ctx context.Context, in *listDeadLettersInput) (rest.List[deadletter.Letter], error) {
	var faults apperr.Faults
	from := rest.ReadTime(&faults, "time_from", in.TimeFrom)
	if err := faults.Err(); err != nil {
		return rest.List[deadletter.Letter]{}, err
	}
	if !from.IsZero() {
		in.From = from.Std()
	}
	page, err := a.DeadLetters.List(ctx, in.Filter, in.Paging)
	if err != nil {
		return rest.List[deadletter.Letter]{}, err
	}
	list := rest.List[deadletter.Letter]{Total: page.Total, Num: in.Num, Size: in.Size, Next: page.Next}
	if !in.Count.Or(true) {
		list.Total = -1
	}
	for _, letter := range page.Letters {
		item, err := json.Marshal(letter)
		if err != nil {
			return rest.List[deadletter.Letter]{}, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func letterOf(letter deadletter.Letter, err error) (rest.Record[deadletter.Letter], error) {
	if err != nil {
		return rest.Record[deadletter.Letter]{}, err
	}
	return rest.PartOf[deadletter.Letter](letter, strconv.FormatInt(letter.Version, 10))
}
