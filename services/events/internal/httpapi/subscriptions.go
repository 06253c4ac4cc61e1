package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/events/internal/delivery"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	allSubscriptions = "/v1/event-subscriptions"
	oneSubscription  = allSubscriptions + "/{id}"
)

func (a *api) registerSubscriptions(s *rest.Server) {
	rest.Named[subscription.Delivery](s, "SubscriptionDelivery")
	rest.Handle(s, rest.Op{
		ID: "create-event-subscription", Method: http.MethodPost, Path: allSubscriptions, Scope: auth.EventsWrite,
		Summary: "Subscribe to events", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "The subscription gets the events that are emitted from now on. `event_types` are types such as " +
			"`user.created` or patterns such as `user.*`, `*.deleted` or `*`; `filter` is a CEL expression over the " +
			"whole event, such as `event.data.record.status == \"1\"`. Webhooks are signed according to Standard " +
			"Webhooks; the secret is shown only in this answer. The values of `headers` are secrets, too.",
		RecentSignIn: rest.FreshAlways, Request: exampleSubscriptionInput,
	}, a.createSubscription)
	rest.Handle(s, rest.Op{
		ID: "list-event-subscriptions", Method: http.MethodGet, Path: allSubscriptions, Scope: auth.EventsRead,
		Summary: "List subscriptions",
	}, a.listSubscriptions)
	rest.Handle(s, rest.Op{
		ID: "get-event-subscription", Method: http.MethodGet, Path: oneSubscription, Scope: auth.EventsRead,
		Summary: "Get a subscription",
	}, a.getSubscription)
	rest.Handle(s, rest.Op{
		ID: "replace-event-subscription", Method: http.MethodPut, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Replace a subscription", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc: "`******` in place of a secret keeps the secret; so does a missing `delivery.secret`. With another URL " +
			"all secrets must be given again.",
		Request: exampleSubscriptionInput,
	}, a.replaceSubscription)
	rest.Handle(s, rest.Op{
		ID: "update-event-subscription", Method: http.MethodPatch, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Change a subscription", Errors: []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState},
		Doc:     "JSON merge patch (RFC 7396). It applies to the events from then on.",
		Request: map[string]any{"event_types": []string{"user.*", "node.moved"}},
	}, a.updateSubscription)
	rest.Handle(s, rest.Op{
		ID: "delete-event-subscription", Method: http.MethodDelete, Path: oneSubscription, Scope: auth.EventsWrite,
		Summary: "Delete a subscription",
	}, rest.Delete(a.Subscriptions.Delete))
	a.registerStates(s)
}

func (a *api) registerStates(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "pause-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/pause",
		Scope: auth.EventsWrite, Summary: "Pause a subscription", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "It keeps its place in the stream; events wait there for as long as the stream keeps them.",
	}, state(a.Subscriptions.Pause))
	rest.Handle(s, rest.Op{
		ID: "resume-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/resume",
		Scope: auth.EventsWrite, Summary: "Resume a subscription",
		Doc: "A paused, failing or disabled subscription continues where it stopped. Events that had used up their " +
			"tries get all tries again.",
	}, state(a.Subscriptions.Resume))
	rest.Handle(s, rest.Op{
		ID: "reset-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/reset",
		Scope: auth.EventsWrite, Summary: "Reset a subscription",
		Doc: "Clears failures and continues from `to`: `now`, a time, or the id of an event, which is then the " +
			"first. An earlier `to` replays events, as far back as the stream keeps them. With `rotate_secret` the " +
			"answer shows a new secret; for 24 hours webhooks are signed with the former one, too; without `to`, the " +
			"subscription then keeps its place and all that waits. A paused subscription stays paused.",
		RecentSignIn: rest.FreshIf("rotate_secret"),
		Request:      map[string]any{"to": "2026-01-31T09:30:00.000Z", "rotate_secret": false},
	}, a.resetSubscription)
	rest.Handle(s, rest.Op{
		ID: "test-event-subscription", Method: http.MethodPost, Path: oneSubscription + "/test",
		Scope: auth.EventsWrite, Summary: "Test a subscription", NoReplay: true,
		Doc: "Sends one event of the type `idp.subscription.test` at once, whatever the state. A dry run sends " +
			"nothing.",
	}, a.testSubscription)
}

func (a *api) createSubscription(
	ctx context.Context, in *rest.Creation[EventSubscriptionInput],
) (rest.Record[NewEventSubscription], error) {
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

func (a *api) listSubscriptions(ctx context.Context, in *subscription.Filter) (rest.List[EventSubscription], error) {
	page, err := a.Subscriptions.List(ctx, *in)
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

func (a *api) replaceSubscription(
	ctx context.Context, in *rest.Replacement[EventSubscriptionInput],
) (rest.Record[EventSubscription], error) {
	return recordOf(a.Subscriptions.Update(ctx, in.ID, func(p *subscription.Profile) error {
		*p = subscription.Profile{}
		return in.Body.Into(p)
	}))
}

func (a *api) updateSubscription(
	ctx context.Context, in *rest.Change[EventSubscriptionInput],
) (rest.Record[EventSubscription], error) {
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

// EventSubscription is a subscription with what is shown of its progress.
type EventSubscription struct {
	subscription.Subscription
	subscription.Shown
}

// NewEventSubscription is a subscription that has just got a secret.
type NewEventSubscription struct {
	EventSubscription
	Delivery NewSubscriptionDelivery `json:"delivery" doc:"How events are sent, with the new secret"`
}

// NewSubscriptionDelivery shows a new secret.
type NewSubscriptionDelivery struct {
	subscription.Delivery
	Secret string `json:"secret,omitempty" format:"password" doc:"Signs webhooks, or is the NATS user's password; shown only in this answer" example:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
}

// EventSubscriptionInput is a subscription to create, or the members of one to change.
type EventSubscriptionInput struct {
	rest.MembersOf[EventSubscription]
	Name       string   `json:"name"`
	EventTypes []string `json:"event_types"`
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
