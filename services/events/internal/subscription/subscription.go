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
	State string `json:"state"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Name       string   `json:"name"`
	EventTypes []string `json:"event_types"`
	Filter     string   `json:"filter"`
	Delivery   Delivery `json:"delivery"`
	Status     string   `json:"status"` // "1" while it is active; the state follows where a client changes it
}

// Delivery says where events go.
type Delivery struct {
	Type    string                  `json:"type"`
	URL     string                  `json:"url,omitempty"`
	Headers map[string]*secret.Text `json:"headers,omitempty"` // their values may be credentials

	// Secret signs webhooks (whsec_ and base64), or is the password of the NATS user. PreviousSecret is valid, too,
	// until PreviousUntil.
	Secret         secret.Text `json:"secret,omitzero"`
	PreviousSecret secret.Text `json:"previous_secret,omitzero"`
	PreviousUntil  clock.Time  `json:"previous_until,omitzero"`

	// For type nats; the platform sets them.
	Subject string `json:"subject,omitempty"`
	User    string `json:"user,omitempty"`
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
var ProgressOf = docstore.Define(docstore.Schema[Progress]{Name: "progress", Noun: "progress", Part: true})

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

type shown struct {
	Cursor    string   `json:"cursor"`
	LastError string   `json:"last_error"`
	Counters  counters `json:"counters"`
}

type counters struct {
	Delivered int64 `json:"delivered"`
	Failed    int64 `json:"failed"`
	Pending   int64 `json:"pending"`
	Dropped   int64 `json:"dropped"`
}

// view joins a subscription with its progress.
func view(doc Doc, p *Progress) (View, error) {
	body, err := doc.JSON()
	if err != nil {
		return View{}, err
	}
	more, err := json.Marshal(shown{
		Cursor: cursor(p), LastError: p.LastError, Counters: counters{p.Delivered, p.Failed, p.Pending, p.Dropped},
	})
	if err != nil {
		return View{}, err
	}
	joined := append(append(append([]byte{}, body[:len(body)-1]...), ','), more[1:]...)
	return View{joined, doc.Tag() + "-" + strconv.FormatInt(max(0, p.Version-1), 10)}, nil
}
