package questions

import "github.com/idplatform/idplatform/pkg/bus"

// Subscriber is the NATS user of a subscription, as a client that connects claims to be.
type Subscriber struct {
	ID       string `json:"id"` // the subscription's
	Password string `json:"password"`
}

// Admission says whether the password is the subscription's.
type Admission struct {
	Admitted bool `json:"admitted"`
}

// IsSubscriber asks whether a client may connect as the NATS user of a subscription. Without an answer, it may not.
var IsSubscriber = bus.Question[Subscriber, Admission]{Service: "events", Name: "is-subscriber"}

// EventTypes are types of events, such as user.created, or patterns of them, such as user.*, *.deleted and *.
type EventTypes struct {
	Types []string `json:"types"`
}

// UnknownEventTypes asks which types and patterns select no type of the catalogue. Without an answer, all are taken for
// known.
var UnknownEventTypes = bus.Question[EventTypes, EventTypes]{Service: "events", Name: "unknown-event-types"}
