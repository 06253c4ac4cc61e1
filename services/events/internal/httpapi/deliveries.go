package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/events/internal/delivery"
)

func (a *api) registerDeliveries(s *rest.Server) {
	rest.Named[delivery.Delivery](s, "EventDelivery")
	rest.Handle(s, rest.Op{
		ID: "list-subscribed-events", Method: http.MethodGet, Path: oneSubscription + "/events", Scope: auth.EventsRead,
		Summary: "List deliveries",
		Doc: "Newest event first: all that wait, and at least the last thousand that have ended. A `held` delivery " +
			"waits for an earlier event of the same record.",
	}, a.listDeliveries)
	rest.Handle(s, rest.Op{
		ID: "redeliver-event", Method: http.MethodPost, Path: oneSubscription + "/events/{event_id}/redeliver",
		Scope: auth.EventsWrite, Summary: "Deliver an event again", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The event must be in the list of deliveries; it gets all tries again. Refused if the subscription is " +
			"not active, or the stream no longer has the event.",
	}, a.redeliver)
}

func (a *api) listDeliveries(ctx context.Context, in *delivery.Filter) (rest.List[delivery.Delivery], error) {
	page, err := a.Deliveries.List(ctx, *in)
	if err != nil {
		return rest.List[delivery.Delivery]{}, err
	}
	list := rest.List[delivery.Delivery]{Total: page.Total, Num: in.Num, Size: in.Size, Next: page.Next}
	if !in.Count.Or(true) {
		list.Total = -1
	}
	for _, d := range page.Deliveries {
		item, err := json.Marshal(d.Shown())
		if err != nil {
			return rest.List[delivery.Delivery]{}, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

type redeliverInput struct {
	rest.ByID
	EventID string `path:"event_id" maxLength:"64" doc:"The event's id"`
}

func (a *api) redeliver(ctx context.Context, in *redeliverInput) (delivery.Delivery, error) {
	return a.Deliveries.Redeliver(ctx, in.ID, in.EventID)
}
