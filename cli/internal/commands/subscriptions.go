package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var subscriptionView = output.View{
	Columns: append(columns("id", "name", "state"), eitherColumn("EVENTS", "event_types"),
		eitherColumn("TO", "delivery.url", "delivery.subject"), eitherColumn("WAITING", "counters.pending")),
	Wide: append(columns("filter"), eitherColumn("DELIVERED", "counters.delivered"),
		eitherColumn("FAILED", "counters.failed"), eitherColumn("LAST ERROR", "last_error"),
		timeColumn("CREATED", "time_created"), timeColumn("MODIFIED", "time_modified")),
	Name: "name",
}

var deliveryView = output.View{
	Columns: append(columns("event_id"), output.Column{Title: "TYPE", Of: func(o output.Object) string {
		return strings.TrimPrefix(o.Text("event_type"), "idp.")
	}}, eitherColumn("STATUS", "status"), eitherColumn("TRIES", "tries"), eitherColumn("CODE", "response_code"),
		eitherColumn("ERROR", "error")),
	Wide: []output.Column{
		timeColumn("TIME", "time"), timeColumn("NEXT TRY", "next_try"), eitherColumn("MS", "duration_ms"),
		eitherColumn("CURSOR", "cursor"),
	},
	Name: "event_id",
}

var subscriptionKind = kind{
	noun: "subscription",
	list: "list-event-subscriptions", get: "get-event-subscription", name: "name",
}

// subscriptions makes the commands for subscriptions to events.
func subscriptions(a *App) *cobra.Command {
	subscription, words := firstOf(subscriptionKind.id), a.words(subscriptionKind.known())
	change := func(use, short, id, example string) *cobra.Command {
		return a.operation(operation{
			use: use, short: short, operation: id, view: subscriptionView, arguments: 1, path: subscription,
			complete: words, example: example,
		})
	}
	pause := change("pause SUBSCRIPTION", "Let events wait until it is resumed", "pause-event-subscription",
		"  idp subscriptions pause HR")
	pause.Aliases = []string{"disable"}
	resume := change("resume SUBSCRIPTION", "Go on where a subscription stopped", "resume-event-subscription",
		"  idp subscriptions resume HR")
	resume.Aliases = []string{"enable"}
	return group("subscriptions", "Subscriptions: events that are sent to a webhook or over NATS",
		a.operation(operation{
			use: "list", short: "List subscriptions", operation: "list-event-subscriptions", view: subscriptionView,
			example: "  idp subscriptions list\n  idp subscriptions list --state failing -o wide",
		}),
		change("get SUBSCRIPTION", "Show a subscription", "get-event-subscription", "  idp subscriptions get HR"),
		a.writeSubscription(operation{
			use: "create NAME", short: "Create a subscription", operation: "create-event-subscription",
			path: noPath, body: argumentAs("name"), without: []string{"name"},
			once: &once{"Subscription", []string{"delivery.secret"}, nil},
			example: "  idp subscriptions create HR --url https://hr.acme.test/hook --type 'user.*,membership.*' " +
				"--secrets-to hr.secret\n  idp subscriptions create HR --nats --type 'node.*'",
		}),
		a.writeSubscription(operation{
			use: "update SUBSCRIPTION", short: "Change members of a subscription",
			operation: "update-event-subscription", path: subscription, complete: words,
			example: "  idp subscriptions update HR --type 'user.*' --dry-run\n" +
				"  idp subscriptions update HR --url https://hr.acme.test/v2 -F delivery.secret=@hr.secret",
		}),
		pause, resume,
		a.resetSubscription(),
		a.operation(operation{
			use: "rotate SUBSCRIPTION", short: "Make a new secret; the former one signs, too, for 24 hours",
			operation: "reset-event-subscription", view: subscriptionView, arguments: 1, path: subscription,
			complete: words, without: everyMember("reset-event-subscription"),
			body: func(_ context.Context, _ *session.Session, _ []string, body members) error {
				body["rotate_secret"] = true
				return nil
			},
			once:    &once{"Subscription", []string{"delivery.secret"}, nil},
			example: "  idp subscriptions rotate HR --secrets-to hr.secret",
		}),
		a.operation(operation{
			use: "test SUBSCRIPTION", short: "Send a test event", operation: "test-event-subscription", arguments: 1,
			path: subscription, complete: words, answer: delivered, example: "  idp subscriptions test HR",
		}),
		change("delete SUBSCRIPTION", "Delete a subscription", "delete-event-subscription",
			"  idp subscriptions delete HR --yes"),
		deliveries(a),
	)
}

// writeSubscription makes a command whose flags make the members that are objects and lists.
func (a *App) writeSubscription(spec operation) *cobra.Command {
	var address string
	var nats bool
	var types []string
	more := spec.body
	spec.view, spec.arguments = subscriptionView, 1
	spec.without = append(spec.without, "delivery", "event_types")
	spec.flags = func(command *cobra.Command) {
		command.Flags().StringVar(&address, "url", "", "the webhook that gets the events")
		command.Flags().BoolVar(&nats, "nats", false, "send the events over NATS instead")
		command.Flags().StringSliceVar(&types, "type", nil, "types of events, joined by commas: user.*, node.moved")
	}
	spec.body = func(ctx context.Context, s *session.Session, args []string, body members) error {
		raw, _ := body["delivery"].(json.RawMessage)
		delivery, isObject := rawMembers(raw)
		if !isObject {
			delivery = members{}
		}
		switch {
		case nats && address != "":
			return failure.Usagef("--url and --nats exclude each other")
		case nats:
			delivery["type"] = "nats"
		case address != "":
			delivery["type"], delivery["url"] = "webhook", address
		}
		if len(delivery) > 0 {
			body["delivery"] = delivery
		}
		if len(types) > 0 {
			body["event_types"] = types
		}
		if more == nil {
			return nil
		}
		return more(ctx, s, args, body)
	}
	return a.operation(spec)
}

func (a *App) resetSubscription() *cobra.Command {
	to := ""
	return a.operation(operation{
		use: "reset SUBSCRIPTION --to PLACE", short: "Go on from another place in the stream",
		operation: "reset-event-subscription", view: subscriptionView, arguments: 1,
		path: firstOf(subscriptionKind.id), complete: a.words(subscriptionKind.known()),
		without: everyMember("reset-event-subscription"),
		flags: func(command *cobra.Command) {
			command.Flags().StringVar(&to, "to", "",
				"now, which drops what waits; 1h, for an hour ago; a time; or the id of an event (required)")
		},
		body: func(_ context.Context, _ *session.Session, _ []string, body members) error {
			if to == "" {
				return failure.Usagef("--to is needed: now, 1h, a time, or the id of an event")
			}
			body["to"] = to
			if at, err := timeOf("--to", to, time.Now()); err == nil {
				body["to"] = at.UTC().Format(time.RFC3339Nano)
			}
			return nil
		},
		example: "  idp subscriptions reset HR --to 1h\n  idp subscriptions reset HR --to now --dry-run",
	})
}

// delivered makes the exit code say whether a test event arrived.
func delivered(_ *session.Session, body []byte) ([]byte, error) {
	var answer struct{ Delivered bool }
	if err := json.Unmarshal(body, &answer); err != nil {
		return body, fmt.Errorf("the answer is not as documented: %w", err)
	}
	if !answer.Delivered {
		return body, failure.ErrNo
	}
	return body, nil
}

// deliveries makes the commands for what a subscription has sent.
func deliveries(a *App) *cobra.Command {
	words := a.words(subscriptionKind.known())
	withEvent := func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
		id, err := subscriptionKind.id(ctx, s, args[0])
		return append([]string{id}, args[1:]...), err
	}
	get := &cobra.Command{
		Use: "get SUBSCRIPTION EVENT", Short: "Show the delivery of an event", Args: exactly(2),
		Long:    "Show the delivery of an event.\n\nScope: events:read",
		Example: "  idp subscriptions deliveries get HR 019c1f3e-8a2b-7c4d-9e5f-0123456789ab", ValidArgsFunction: words,
	}
	get.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		path, err := withEvent(ctx, s, args)
		if err != nil {
			return err
		}
		call := &session.Call{
			Operation: session.Operation("list-subscribed-events"), Path: path[:1], View: deliveryView,
			Query: url.Values{"page_size": {"200"}, "count": {"false"}},
		}
		if s.Curl {
			return s.Run(ctx, call)
		}
		for delivery, err := range s.Each(ctx, call) {
			if err != nil {
				return err
			}
			if delivery.Text("event_id") == args[1] {
				return s.Show(delivery, deliveryView)
			}
		}
		return failure.NotFoundf("%s has no delivery of the event %q: idp subscriptions deliveries list %s lists them",
			args[0], args[1], args[0])
	})
	return group("deliveries", "What a subscription has sent, and what waits",
		a.operation(operation{
			use: "list SUBSCRIPTION", short: "List deliveries, the newest event first",
			operation: "list-subscribed-events", view: deliveryView, arguments: 1, path: withEvent, complete: words,
			example: "  idp subscriptions deliveries list HR --status failed",
		}),
		get,
		a.operation(operation{
			use: "redeliver SUBSCRIPTION EVENT", short: "Send an event again", operation: "redeliver-event",
			view: deliveryView, arguments: 2, path: withEvent, complete: words,
			example: "  idp subscriptions deliveries redeliver HR 019c1f3e-8a2b-7c4d-9e5f-0123456789ab",
		}),
	)
}
