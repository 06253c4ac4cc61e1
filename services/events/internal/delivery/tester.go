package delivery

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// Tester sends test events.
type Tester struct {
	Store  *docstore.Store
	Subs   *subscription.Subscriptions
	Sender *Sender
}

// TestResult is the result of sending a test event.
type TestResult struct {
	Delivered    bool   `json:"delivered" doc:"Whether the receiver took it" example:"true"`
	ResponseCode int    `json:"response_code" doc:"0 without an answer" example:"200"`
	DurationMS   int64  `json:"duration_ms" doc:"How long it took to answer" example:"41"`
	Error        string `json:"error" doc:"Why not"`
}

// Test sends a test event once, whatever the subscription's state. A dry run sends nothing. The error is
// apperr.NotFound.
func (t *Tester) Test(ctx context.Context, id string) (TestResult, error) {
	sub, err := t.Subs.Find(ctx, id)
	if err == nil {
		err = docstore.CheckExpected(ctx, id, sub.Version)
	}
	if err != nil || docstore.IsDryRun(ctx) {
		return TestResult{}, err
	}
	secrets, err := subscription.Reveal(ctx, t.Store, sub)
	if err != nil {
		return TestResult{}, err
	}
	m, err := testEvent(ctx, t.Store, id)
	if err != nil {
		return TestResult{}, err
	}
	r := t.Sender.Send(ctx, sub, secrets, m)
	return TestResult{r.Delivered, r.Code, r.Took.Milliseconds(), r.Error}, nil
}

// testEvent makes an event that is not in the stream.
func testEvent(ctx context.Context, store *docstore.Store, id string) (Message, error) {
	eventID, err := uuid.NewV7()
	if err != nil {
		return Message{}, err
	}
	info := request.From(ctx)
	payload, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": eventID.String(), "source": subscription.EventSource,
		"type": "idp.subscription.test", "subject": id, "time": store.Now(), "datacontenttype": "application/json",
		"tenantid": info.Tenant, "actor": info.Actor, "requestid": info.ID, "sequence": "1",
		"data": map[string]any{"record": map[string]any{"id": id}},
	})
	return Message{ID: eventID.String(), Payload: payload}, err
}
