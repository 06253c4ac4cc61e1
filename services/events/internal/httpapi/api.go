// Package httpapi contains the operations of the events service: JSON forms and their conversion to the domain's, one
// file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/audit"
	"github.com/idplatform/idplatform/services/events/internal/deadletter"
	"github.com/idplatform/idplatform/services/events/internal/delivery"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// Parts are the use cases.
type Parts struct {
	Subscriptions *subscription.Subscriptions
	Deliveries    *delivery.Log
	Tester        *delivery.Tester
	Stream        *stream.Log
	Audit         *audit.Log
	DeadLetters   *deadletter.Letters
}

type api struct{ Parts }

// Register adds all operations to the server.
func Register(s *rest.Server, parts Parts) {
	a := &api{parts}
	rest.DescribedAs[jsontext.Value, any](s) // any JSON; json.RawMessage is an object
	a.registerSubscriptions(s.Tagged("Event subscriptions", "Who gets which events, and where."))
	a.registerDeliveries(s.Tagged("Event deliveries", "The deliveries of a subscription's events, and their results."))
	a.registerEvents(s.Tagged("Events", "The feed of a tenant's events, and the event types."))
	a.registerDeadLetters(s.Tagged("Dead letters", "Events that a service could not handle, for operators."))
	a.registerAudit(s.Tagged("Audit log", "Every change and every denied attempt."))
}
