// Package subscription is the domain of subscriptions: which events go where, and the state of their delivery.
package subscription

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// The states of a subscription. Only an active one is delivered to; the others keep their place in the stream.
const (
	Active   = "active"
	Paused   = "paused"   // by a client
	Failing  = "failing"  // an event used up its tries
	Disabled = "disabled" // the receiver answered 410
)

// The types of delivery.
const (
	Webhook = "webhook"
	NATS    = "nats"
)

// Subscription is a subscription record. It has the same JSON form in events and in the store; in the API it also has
// the members of its Progress.
type Subscription struct {
	docstore.Meta
	Profile
	State string `json:"state" readOnly:"true" enum:"active,paused,failing,disabled" doc:"failing: an event used up its tries; disabled: the receiver answered 410"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Name       string   `json:"name" doc:"1…128 characters; unique" example:"HR sync"`
	EventTypes []string `json:"event_types" doc:"1…50 types or patterns, such as user.* and *.deleted" example:"[\"user.*\",\"node.moved\"]"`
	Filter     string   `json:"filter" doc:"CEL over the variable event, at most 4096 bytes; empty selects all"`
	Delivery   Delivery `json:"delivery" doc:"How events are sent"`
	Status     string   `json:"status" enum:"1,0" doc:"1 while it is active"`
}

// Delivery says where events go.
type Delivery struct {
	Type           string                  `json:"type" enum:"webhook,nats" doc:"webhook: a POST for each event (Standard Webhooks); nats: a subject of its own"`
	URL            string                  `json:"url,omitempty" doc:"For type webhook: http or https" example:"https://hr.acme.test/events"`
	Headers        map[string]*secret.Text `json:"headers,omitempty" doc:"****** for each value"`
	Secret         secret.Text             `json:"secret,omitzero" doc:"Signs webhooks, or is the NATS user's password; ****** if there is one"`
	PreviousSecret secret.Text             `json:"previous_secret,omitzero" doc:"****** if there is one"`
	PreviousUntil  clock.Time              `json:"previous_until,omitzero" doc:"Until when webhooks are signed with the previous secret, too"`

	// The platform sets these.
	Subject string `json:"subject,omitempty" doc:"For type nats: where the events are published"`
	User    string `json:"user,omitempty" doc:"For type nats: the NATS user that may read them; secret is its password"`
}

const (
	byName    = "name"
	byState   = "state"
	byCreated = "time_created"
)

// EventSource is the path of subscriptions in their events.
const EventSource = "/event-subscriptions"

var subscriptions = outbox.Define("event_subscription", EventSource, docstore.Schema[Subscription]{
	Name: "subscriptions", Noun: "subscription", Sortable: []string{byCreated, byName},
	Indexes: slices.Concat([]docstore.Index[Subscription]{
		docstore.Unique(docstore.ByText(byName, func(s *Subscription) string { return s.Name }), "name"),
		docstore.ByText(byState, func(s *Subscription) string { return s.State }),
		docstore.ByNumber(byCreated, func(s *Subscription) docstore.Value { return docstore.Moment(s.TimeCreated) }),
	}, textindex.KeywordIndexes(func(s *Subscription) []string { return []string{s.Name} })),
	Sealed: func(s *Subscription) []docstore.Sealed {
		d := &s.Delivery
		route := docstore.Route{"delivery.type": d.Type, "delivery.url": d.URL}
		members := []docstore.Sealed{
			docstore.Seal("secret", &d.Secret, route).At("delivery.secret"),
			docstore.Seal("previous_secret", &d.PreviousSecret, route).At("delivery.secret"),
		}
		for name, value := range d.Headers {
			members = append(members, docstore.Seal(headerMember(name), value, route).At("delivery.headers."+name))
		}
		return members
	},
})

func headerMember(name string) string { return "header." + name }

// Progress is how far the delivery to a subscription has come. The replica that delivers writes it.
type Progress struct {
	docstore.Meta // the id is the subscription's

	// Owner is the replica that delivers; "" if none does. Writes of other replicas are refused.
	Owner string `json:"owner"`
	// Generation grows when a client sets the place. Deliveries of an earlier one are no longer
	// recorded.
	Generation int64 `json:"generation"`

	// Epoch and Place: all events up to there are delivered, do not match, or have a row of their own.
	// Event is the id of the event at Place, if it is known: the stream may lose its newest events in a power cut.
	Epoch string `json:"epoch"`
	Place uint64 `json:"place"`
	Event string `json:"event,omitempty"`

	Delivered int64  `json:"delivered"`
	Failed    int64  `json:"failed"`  // attempts
	Pending   int64  `json:"pending"` // events that wait for another attempt, or for an earlier event of their record
	LastError string `json:"last_error"`
	Logged    int64  `json:"logged"` // deliveries that the log has had

	// Dropped counts the events that a subscriber over NATS had not read when its queue was shortened, since DroppedAt.
	Dropped   int64      `json:"dropped,omitzero"`
	DroppedAt clock.Time `json:"dropped_at,omitzero"`
}

// ProgressOf is the collection of Progress.
var ProgressOf = docstore.Define(docstore.Schema[Progress]{Name: "progress", Noun: "progress", NoIfMatch: true})

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{subscriptions.Def(), ProgressOf.Def()} }

// Doc is a subscription as read or written.
type Doc = docstore.Doc[Subscription]

// View is a subscription as the API shows it.
type View struct {
	JSON []byte
	Tag  string
}

// Stored returns the JSON and the ETag, so that pkg/rest can answer with it.
func (v View) Stored() (body []byte, tag string, err error) { return v.JSON, v.Tag, nil }

// Shown has the members of the Progress that the API shows.
type Shown struct {
	Cursor    string `json:"cursor" readOnly:"true" doc:"The place in the feed up to which events are delivered, except those that wait" example:"tsp8xk.4711"`
	LastError string `json:"last_error" readOnly:"true" doc:"Why the last attempt failed; empty: it did not"`
	Counters  struct {
		Delivered int64 `json:"delivered" doc:"Events that the receiver took"`
		Failed    int64 `json:"failed" doc:"Attempts that failed"`
		Pending   int64 `json:"pending" doc:"Events that wait for another attempt, or for an earlier event of their record"`
		Dropped   int64 `json:"dropped" doc:"Events over NATS that were dropped unread since the last reset, because the tenant has used up its share of the storage"`
	} `json:"counters" readOnly:"true" doc:"Since it was created"`
}

// view joins a subscription with its progress.
func view(doc Doc, p *Progress) (View, error) {
	body, err := doc.JSON()
	if err != nil {
		return View{}, err
	}
	shown := Shown{Cursor: cursor(p), LastError: p.LastError}
	count := &shown.Counters
	count.Delivered, count.Failed, count.Pending, count.Dropped = p.Delivered, p.Failed, p.Pending, p.Dropped
	more, err := json.Marshal(shown)
	if err != nil {
		return View{}, err
	}
	joined := append(append(append([]byte{}, body[:len(body)-1]...), ','), more[1:]...)
	return View{joined, doc.Tag() + "-" + strconv.FormatInt(max(0, p.Version-1), 10)}, nil
}
