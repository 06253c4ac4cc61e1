package questions

import "github.com/idplatform/idplatform/pkg/bus"

// Subscriber is what somebody says who wants to be the NATS user of a subscription.
type Subscriber struct {
	ID       string `json:"id"` // the subscription's
	Password string `json:"password"`
}

// Admission says whether that is so.
type Admission struct {
	Admitted bool `json:"admitted"`
}

// IsSubscriber asks whether a NATS user may be let in. Without an answer it is not.
var IsSubscriber = bus.Question[Subscriber, Admission]{Service: "events", Name: "is-subscriber"}
