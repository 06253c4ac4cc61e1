package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
)

func (a *api) registerDeliveries(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "list-subscribed-events", Method: http.MethodGet, Path: oneSubscription + "/events", Scope: auth.EventsRead,
		Summary: "List deliveries",
		Doc: "Newest event first: all that wait, and at least the last thousand that have ended. A `held` delivery " +
			"waits for an earlier event of the same record.",
		Response: map[string]any{"items": []any{exampleDelivery}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listDeliveries)
	rest.Handle(s, rest.Op{
		ID: "redeliver-event", Method: http.MethodPost, Path: oneSubscription + "/events/{event_id}/redeliver",
		Scope: auth.EventsWrite, Summary: "Deliver an event again", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "The event must be in the list of deliveries; it gets all tries again. Refused if the subscription is " +
			"not active, or the stream no longer has the event.",
		Response: exampleDelivery,
	}, a.redeliver)
}

type listDeliveriesInput struct {
	rest.ByID
	Status string `query:"status" enum:"delivered,retrying,held,failed"`
	docstore.Paging
}

func (a *api) listDeliveries(ctx context.Context, in *listDeliveriesInput) (rest.List[EventDelivery], error) {
	page, err := a.Deliveries.List(ctx, in.ID, in.Status, in.Paging)
	if err != nil {
		return rest.List[EventDelivery]{}, err
	}
	list := rest.List[EventDelivery]{Total: page.Total, Num: in.Num, Size: in.Size, Next: page.Next}
	if !in.Count.Or(true) {
		list.Total = -1
	}
	for _, d := range page.Deliveries {
		item, err := json.Marshal(d.Shown())
		if err != nil {
			return rest.List[EventDelivery]{}, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

type redeliverInput struct {
	rest.ByID
	EventID string `path:"event_id" maxLength:"64" doc:"The event's id"`
}

func (a *api) redeliver(ctx context.Context, in *redeliverInput) (rest.Raw[EventDelivery], error) {
	d, err := a.Deliveries.Redeliver(ctx, in.ID, in.EventID)
	if err != nil {
		return rest.Raw[EventDelivery]{}, err
	}
	body, err := json.Marshal(d)
	return rest.Raw[EventDelivery]{JSON: body}, err
}

// EventDelivery describes delivery.Shown for the OpenAPI document.
type EventDelivery struct {
	EventID      string     `json:"event_id" doc:"The event" example:"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"`
	EventType    string     `json:"event_type" doc:"Its type" example:"idp.user.created"`
	Status       string     `json:"status" enum:"delivered,retrying,held,failed" doc:"How it stands"`
	Tries        int        `json:"tries" doc:"How often it was sent"`
	ResponseCode int        `json:"response_code" doc:"Of the last try; 0 without an answer"`
	Error        string     `json:"error" doc:"Why the last try failed"`
	DurationMS   int64      `json:"duration_ms" doc:"Of the last try"`
	Time         *time.Time `json:"time" nullable:"true" doc:"Of the last try"`
	NextTry      *time.Time `json:"next_try" nullable:"true" doc:"When it is sent again; absent: it is not"`
	Cursor       string     `json:"cursor" doc:"The event's place in the feed"`
}

var exampleDelivery = json.RawMessage(`{"event_id":"019c1f3e-8a2b-7c4d-9e5f-0123456789ab",` +
	`"event_type":"idp.user.created","status":"delivered","tries":1,"response_code":200,"error":"","duration_ms":41,` +
	`"time":"2026-01-31T09:30:00.000Z","next_try":null,"cursor":"tsp8xk.4711"}`)
