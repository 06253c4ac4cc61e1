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
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/events/internal/delivery"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	allSubscriptions = "/v1/event-subscriptions"
	oneSubscription  = allSubscriptions + "/{id}"
)

func (a *api) registerSubscriptions(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-event-subscription", Method: http.MethodPost, Path: allSubscriptions, Scope: auth.EventsWrite,
		Summary: "Subscribe to events", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "The subscription gets the events that are emitted from now on. `event_types` are types such as " +
			"`user.created` or patterns such as `user.*`, `*.deleted` or `*`; `filter` is a CEL expression over the " +
			"whole event, such as `event.data.record.status == \"1\"`. Webhooks are signed according to Standard " +
			"Webhooks; the secret is shown only in this answer. The values of `headers` are secrets, too.",
		Fresh: rest.FreshAlways, Request: exampleSubscriptionInput, Response: exampleSubscription,
	}, a.createSubscription)
	rest.Handle(s, rest.Op{
		ID: "list-event-subscriptions", Method: http.MethodGet, Path: allSubscriptions, Scope: auth.EventsRead,
		Summary:  "List subscriptions",
		Response: map[string]any{"items": []any{exampleSubscription}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listSubscriptions)
	rest.Handle(s, rest.Op{
		ID: "get-event-subscription", Method: http.MethodGet, Path: oneSubscription, Scope: auth.EventsRead,
		Summary: "Get a subscription", Response: exampleSubscription,
	}, a.getSubscription)
	rest.Handle(s, rest.Op{
		ID: "replace-event-subscription", Method: http.MethodPut, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Replace a subscription", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "`******` in place of a secret keeps the secret; so does a missing `delivery.secret`. With another URL " +
			"all secrets must be given again.",
		Request: exampleSubscriptionInput, Response: exampleSubscription,
	}, a.replaceSubscription)
	rest.Handle(s, rest.Op{
		ID: "update-event-subscription", Method: http.MethodPatch, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Change a subscription", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc:     "JSON merge patch (RFC 7396). It applies to the events from then on.",
		Request: map[string]any{"event_types": []string{"user.*", "node.moved"}}, Response: exampleSubscription,
	}, a.updateSubscription)
	rest.Handle(s, rest.Op{
		ID: "delete-event-subscription", Method: http.MethodDelete, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Delete a subscription", Response: map[string]any{"id": "1048577"},
	}, rest.Delete(a.Subscriptions.Delete))
	a.registerStates(s)
}

func (a *api) registerStates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "pause-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/pause",
		Scope: auth.EventsWrite, Summary: "Pause a subscription", Errors: []apperr.Kind{apperr.InvalidState},
		Doc:      "It keeps its place in the stream; events wait there for as long as the stream keeps them.",
		Response: exampleSubscription,
	}, state(a.Subscriptions.Pause))
	rest.Handle(s, rest.Op{
		ID: "resume-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/resume",
		Scope: auth.EventsWrite, Summary: "Resume a subscription",
		Doc: "A paused, failing or disabled subscription continues where it stopped. Events that had used up their " +
			"tries get all tries again.",
		Response: exampleSubscription,
	}, state(a.Subscriptions.Resume))
	rest.Handle(s, rest.Op{
		ID: "reset-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/reset",
		Scope: auth.EventsWrite, Summary: "Reset a subscription",
		Doc: "Clears failures and continues from `to`: `now`, a time, or the id of an event, which is then the " +
			"first. An earlier `to` replays events, as far back as the stream keeps them. With `rotate_secret` the " +
			"answer shows a new secret; for 24 hours webhooks are signed with the former one, too; without `to`, the " +
			"subscription then keeps its place and all that waits. A paused subscription stays paused.",
		Fresh:    rest.FreshIf("rotate_secret"),
		Request:  map[string]any{"to": "2026-01-31T09:30:00.000Z", "rotate_secret": false},
		Response: exampleSubscription,
	}, a.resetSubscription)
	rest.Handle(s, rest.Op{
		ID: "test-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/test",
		Scope: auth.EventsWrite, Summary: "Test a subscription", Momentary: true,
		Doc: "Sends one event of the type `idp.subscription.test` at once, whatever the state. A dry run sends " +
			"nothing.",
		Response: delivery.TestResult{Delivered: true, ResponseCode: 200, DurationMS: 41},
	}, a.testSubscription)
}

func (a *api) createSubscription(ctx context.Context,
	in *struct {
		Body rest.JSON[EventSubscriptionInput]
	}) (rest.Record[NewEventSubscription], error) {
	var draft subscription.Profile
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[NewEventSubscription]{}, err
	}
	v, err := a.Subscriptions.Create(ctx, draft)
	return rest.Record[NewEventSubscription]{JSON: v.JSON, Tag: v.Tag}, err
}

// recordOf makes a body from the result of a domain call.
func recordOf(v subscription.View, err error) (rest.Record[EventSubscription], error) {
	return rest.Record[EventSubscription]{JSON: v.JSON, Tag: v.Tag}, err
}

type listSubscriptionsInput struct {
	Name  string `query:"name" maxLength:"256"`
	State string `query:"state" enum:"active,paused,failing,disabled"`
	textindex.Search
	docstore.Paging
}

func (a *api) listSubscriptions(ctx context.Context,
	in *listSubscriptionsInput) (rest.List[EventSubscription], error) {
	filter := subscription.Filter{Name: in.Name, State: in.State, Keyword: in.Keyword}
	page, err := a.Subscriptions.List(ctx, filter, in.Paging)
	list := rest.List[EventSubscription]{
		Items: make([][]byte, len(page.Views)), Total: page.Total, More: page.More, Num: in.Num, Size: in.Size,
		Next: page.Next,
	}
	for i, v := range page.Views {
		list.Items[i] = v.JSON
	}
	return list, err
}

func (a *api) getSubscription(ctx context.Context, in *rest.ByID) (rest.Record[EventSubscription], error) {
	return recordOf(a.Subscriptions.Get(ctx, in.ID))
}

type replaceSubscriptionInput struct {
	rest.ByID
	Body rest.JSON[EventSubscriptionInput]
}

func (a *api) replaceSubscription(ctx context.Context,
	in *replaceSubscriptionInput) (rest.Record[EventSubscription], error) {
	return recordOf(a.Subscriptions.Update(ctx, in.ID, func(p *subscription.Profile) error {
		*p = subscription.Profile{}
		return in.Body.Into(p)
	}))
}

type updateSubscriptionInput struct {
	rest.ByID
	Body rest.MergePatch[EventSubscriptionInput]
}

func (a *api) updateSubscription(ctx context.Context,
	in *updateSubscriptionInput) (rest.Record[EventSubscription], error) {
	return recordOf(a.Subscriptions.Update(ctx, in.ID, func(p *subscription.Profile) error { return in.Body.Into(p) }))
}

func state(change func(context.Context, string) (subscription.View, error)) func(context.Context,
	*rest.ByID) (rest.Record[EventSubscription], error) {
	return func(ctx context.Context, in *rest.ByID) (rest.Record[EventSubscription], error) {
		return recordOf(change(ctx, in.ID))
	}
}

type resetSubscriptionInput struct {
	rest.ByID
	Body struct {
		To           string `json:"to,omitempty" maxLength:"64" doc:"now, a time, or an event's id; now if it is missing, unless rotate_secret is true"`
		RotateSecret bool   `json:"rotate_secret,omitempty" doc:"true makes a new secret; the former one signs, too, for 24 hours"`
	}
}

func (a *api) resetSubscription(ctx context.Context,
	in *resetSubscriptionInput) (rest.Record[NewEventSubscription], error) {
	v, err := a.Subscriptions.Reset(ctx, in.ID, in.Body.To, in.Body.RotateSecret)
	return rest.Record[NewEventSubscription]{JSON: v.JSON, Tag: v.Tag}, err
}

func (a *api) testSubscription(ctx context.Context, in *rest.ByID) (delivery.TestResult, error) {
	return a.Tester.Test(ctx, in.ID)
}

// EventSubscription describes subscription.View for the OpenAPI document.
type EventSubscription struct {
	rest.Meta
	Name       string               `json:"name" doc:"1…128 characters; unique" example:"HR sync"`
	EventTypes []string             `json:"event_types" doc:"1…50 types or patterns, such as user.* and *.deleted" example:"[\"user.*\",\"node.moved\"]"`
	Filter     string               `json:"filter" doc:"CEL over the variable event; empty selects all"`
	Delivery   SubscriptionDelivery `json:"delivery" doc:"How events are sent"`
	Status     string               `json:"status" enum:"1,0" doc:"1 while it is active"`
	State      string               `json:"state" readOnly:"true" enum:"active,paused,failing,disabled" doc:"failing: an event used up its tries; disabled: the receiver answered 410"`
	Cursor     string               `json:"cursor" readOnly:"true" doc:"The place in the feed up to which events are delivered, except those that wait"`
	LastError  string               `json:"last_error" readOnly:"true" doc:"Why the last attempt failed; empty: it did not"`
	Counters   struct {
		Delivered int64 `json:"delivered" doc:"Events that the receiver took"`
		Failed    int64 `json:"failed" doc:"Attempts that failed"`
		Pending   int64 `json:"pending" doc:"Events that wait for another attempt, or for an earlier event of their record"`
		Dropped   int64 `json:"dropped" doc:"Events over NATS that were dropped unread since the last reset, because the tenant has used up its share of the storage"`
	} `json:"counters" readOnly:"true" doc:"Since it was created"`
}

// SubscriptionDelivery says how a subscription's events are sent.
type SubscriptionDelivery struct {
	Type           string            `json:"type" enum:"webhook,nats" doc:"webhook: a POST for each event (Standard Webhooks); nats: a subject of its own"`
	URL            string            `json:"url,omitempty" doc:"For type webhook: http or https"`
	Headers        map[string]string `json:"headers,omitempty" doc:"****** for each value"`
	Secret         string            `json:"secret,omitempty" doc:"Signs webhooks, or is the NATS user's password; ****** if there is one"`
	PreviousSecret string            `json:"previous_secret,omitempty" doc:"****** if there is one"`
	PreviousUntil  *time.Time        `json:"previous_until,omitempty" doc:"Until when webhooks are signed with the previous secret, too"`
	Subject        string            `json:"subject,omitempty" doc:"For type nats: where the events are published"`
	User           string            `json:"user,omitempty" doc:"For type nats: the NATS user that may read them; secret is its password"`
}

// NewEventSubscription is a subscription that has just got a secret.
type NewEventSubscription struct {
	EventSubscription
	Delivery NewSubscriptionDelivery `json:"delivery" doc:"How events are sent, with the new secret"`
}

// NewSubscriptionDelivery shows a new secret.
type NewSubscriptionDelivery struct {
	SubscriptionDelivery
	Secret string `json:"secret,omitempty" format:"password" doc:"Signs webhooks, or is the NATS user's password; shown only in this answer"`
}

// EventSubscriptionInput is a subscription to create, or the members of one to change.
type EventSubscriptionInput struct {
	rest.MembersOf[EventSubscription]
	Name       string   `json:"name" doc:"1…128 characters; unique"`
	EventTypes []string `json:"event_types" doc:"1…50 types or patterns"`
	Filter     string   `json:"filter,omitempty" doc:"CEL over the variable event, at most 4096 bytes"`
	Delivery   struct {
		Type           string             `json:"type" doc:"webhook or nats"`
		URL            string             `json:"url,omitempty" doc:"http or https, at most 2048 bytes"`
		Headers        map[string]*string `json:"headers,omitempty" writeOnly:"true" doc:"At most 20; not those that the platform or the connection sets"`
		Secret         string             `json:"secret,omitempty" writeOnly:"true" doc:"whsec_ and the base64 of 24…64 bytes; generated if it is missing"`
		PreviousSecret string             `json:"previous_secret,omitempty" readOnly:"true" doc:"Ignored"`
		PreviousUntil  *time.Time         `json:"previous_until,omitempty" readOnly:"true" nullable:"true" doc:"Ignored"`
		Subject        string             `json:"subject,omitempty" readOnly:"true" doc:"Ignored"`
		User           string             `json:"user,omitempty" readOnly:"true" doc:"Ignored"`
	} `json:"delivery" doc:"How events are sent"`
	Status   string         `json:"status,omitempty" doc:"1 if it is missing. A change from 1 to 0 pauses it, one from 0 to 1 resumes it" enum:"1,0"`
	Counters map[string]any `json:"counters,omitempty" readOnly:"true"`
}

var exampleSubscriptionInput = map[string]any{
	"name": "HR sync", "event_types": []any{"user.*"},
	"delivery": map[string]any{"type": "webhook", "url": "https://hr.acme.test/events",
		"headers": map[string]any{"X-Api-Key": "7f3a"}},
}

var exampleSubscription = json.RawMessage(`{"id":"1048577","tenant_id":"acme","version":1,` +
	`"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z","name":"HR sync",` +
	`"event_types":["user.*"],"filter":"","delivery":{"type":"webhook","url":"https://hr.acme.test/events",` +
	`"headers":{"X-Api-Key":"******"},"secret":"******"},"status":"1","state":"active","cursor":"tsp8xk.4711",` +
	`"last_error":"","counters":{"delivered":12,"failed":0,"pending":0,"dropped":0}}`)
