package delivery

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// The statuses of a delivery.
const (
	Delivered = "delivered"
	Retrying  = "retrying" // the last try failed; there is another
	Held      = "held"     // an earlier event of the same record has to be delivered first
	Failed    = "failed"   // it has no tries left
)

// Delivery is the delivery of one event to a subscription.
type Delivery struct {
	EventID      string     `json:"event_id" doc:"The event" example:"019c1f3e-8a2b-7c4d-9e5f-0123456789ab"`
	EventType    string     `json:"event_type" doc:"Its type" example:"idp.user.created"`
	Status       string     `json:"status" enum:"delivered,retrying,held,failed" doc:"How it stands"`
	Tries        int        `json:"tries" doc:"How often it was sent" example:"1"`
	ResponseCode int        `json:"response_code" doc:"Of the last try; 0 without an answer" example:"200"`
	Error        string     `json:"error" doc:"Why the last try failed"`
	DurationMS   int64      `json:"duration_ms" doc:"Of the last try" example:"41"`
	Time         clock.Time `json:"time" nullable:"true" doc:"Of the last try" example:"2026-01-31T09:30:00.000Z"`
	NextTry      clock.Time `json:"next_try" nullable:"true" doc:"When it is sent again; absent: it is not"`
	Cursor       string     `json:"cursor" doc:"The event's place in the feed" example:"tsp8xk.4711"`

	Place uint64 `json:"place,omitzero" hidden:"true"`
	Again int64  `json:"again,omitzero" hidden:"true"` // differs for each delivery on request; 0 for others
}

// Shown is the delivery as clients see it.
func (d Delivery) Shown() Delivery {
	d.Place, d.Again = 0, 0 // the cursor contains the place
	return d
}

// row is a delivery that waits. The subscription's place may already be past its event.
type row struct {
	docstore.Meta        // the id is rowID
	Subscription  string `json:"subscription"`
	Record        string `json:"record"` // events with the same value are delivered in order
	Delivery
}

const (
	bySubscription = "subscription"
	byPlace        = "place"
	byNumber       = "number"
)

var rows = docstore.Define(docstore.Schema[row]{
	Name: "deliveries", Noun: "delivery", NoIfMatch: true,
	Indexes: []docstore.Index[row]{
		docstore.ByText(bySubscription, func(r *row) string { return r.Subscription }),
		docstore.ByNumber(byPlace, func(r *row) docstore.Value {
			return docstore.Number(int64(r.Place)) //nolint:gosec // far from the end
		}),
	},
})

// rowID is the id of the row of an event.
func rowID(subscription, event string) string { return subscription + "." + event }

// block has up to perBlock deliveries that have ended. With a document for each, most writes of a fast subscription
// would be for them.
type block struct {
	docstore.Meta            // the id is blockID
	Subscription  string     `json:"subscription"`
	Deliveries    []Delivery `json:"deliveries"`
}

var blocks = docstore.Define(docstore.Schema[block]{
	Name: "delivery_blocks", Noun: "block of deliveries", NoIfMatch: true,
	Indexes: []docstore.Index[block]{
		docstore.ByText(bySubscription, func(b *block) string { return b.Subscription }),
	},
})

const (
	perBlock   = 100
	keptBlocks = 10 // besides the one that is being filled
)

func blockID(subscription string, number int64) string {
	return fmt.Sprintf("%s.%d", subscription, number)
}

// Collections are those that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{rows.Def(), blocks.Def()} }

// Rows removes deliveries; see subscription.Rows.
type Rows struct{}

// Clear removes the deliveries that wait.
func (Rows) Clear(ctx context.Context, tx *docstore.Tx, subscription string) error {
	return rows.DeleteWhere(ctx, tx, of(subscription), nil)
}

// Forget removes all deliveries.
func (r Rows) Forget(ctx context.Context, tx *docstore.Tx, subscription string) error {
	if err := r.Clear(ctx, tx, subscription); err != nil {
		return err
	}
	return blocks.DeleteWhere(ctx, tx, of(subscription), nil)
}

func of(subscription string) docstore.Filter {
	return docstore.Eq(bySubscription, docstore.Text(subscription))
}

// note adds deliveries that have ended to the log and drops the oldest. logged is how many the log has had so far.
func note(ctx context.Context, tx *docstore.Tx, subscription string, logged int64, ended []Delivery) error {
	for len(ended) > 0 {
		number := logged / perBlock
		n := min(len(ended), perBlock-int(logged%perBlock))
		if err := fill(ctx, tx, subscription, number, ended[:n]); err != nil {
			return err
		}
		ended, logged = ended[n:], logged+int64(n)
		if number < keptBlocks {
			continue
		}
		old := docstore.ID(blockID(subscription, number-keptBlocks))
		if err := blocks.DeleteWhere(ctx, tx, old, nil); err != nil {
			return err
		}
	}
	return nil
}

func fill(ctx context.Context, tx *docstore.Tx, subscription string, number int64, ended []Delivery) error {
	id := blockID(subscription, number)
	found, err := blocks.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		b := &block{Meta: docstore.Meta{ID: id}, Subscription: subscription, Deliveries: ended}
		_, err = blocks.Insert(ctx, tx, b)
		return err
	}
	found[0].Deliveries = append(found[0].Deliveries, ended...)
	_, err = blocks.Replace(ctx, tx, found[0])
	return err
}
