package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/webhook"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

const (
	// webhookTimeout is how long a receiver may take for its answer.
	webhookTimeout = 15 * time.Second
	natsTimeout    = 5 * time.Second
	maxAnswer      = 16 << 10 // bytes of an answer that are read, so that the connection can be used again
)

// Message is an event to send: of the stream, or a test.
type Message struct {
	ID          string
	TraceParent string
	Payload     []byte

	// Occasion tells a replay or another delivery on request from a repeated try.
	Occasion string
}

// Result is the result of one try.
type Result struct {
	Delivered bool
	Gone      bool   // the receiver wants no more events
	Skipped   bool   // the subscription, which was changed, no longer selects the event
	Lost      bool   // the stream no longer has the event
	Away      bool   // the platform could not try; this does not count as a try
	Code      int    // the status code of the receiver's answer; 0 without one
	Error     string // why it was not delivered; without the URL, whose path may contain a secret
	Took      time.Duration

	RetryAfter time.Duration // the least pause that the receiver asks for
}

// Sender sends to receivers.
type Sender struct {
	client *http.Client
	bus    *bus.Bus
	clock  clock.Clock
}

// NewSender makes a sender. client decides which addresses may be reached.
func NewSender(client *http.Client, b *bus.Bus, clk clock.Clock) *Sender {
	patient := *client
	patient.Timeout = webhookTimeout
	return &Sender{&patient, b, clk}
}

// Declare makes the stream's durable consumer for the events of a subscription. Its NATS user may use but not make it.
func (s *Sender) Declare(ctx context.Context, to *subscription.Subscription) error {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	return s.bus.DeclareQueue(ctx, to.TenantID, to.ID)
}

// Forget removes the consumer and the events of a deleted subscription, if there are any.
func (s *Sender) Forget(ctx context.Context, ref docstore.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsTimeout)
	defer cancel()
	s.bus.ForgetQueue(ctx, ref.Tenant, ref.ID)
}

// Send tries once to deliver a message.
func (s *Sender) Send(ctx context.Context, to *subscription.Subscription, with subscription.Secrets,
	m Message) Result {
	began := time.Now()
	send := s.webhook
	if to.Delivery.Type == subscription.NATS {
		send = s.publish
	}
	r := send(ctx, to, with, m)
	r.Took = time.Since(began)
	return r
}

func (s *Sender) publish(ctx context.Context, to *subscription.Subscription, _ subscription.Secrets,
	m Message) Result {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	err := s.bus.PublishToQueue(ctx, to.TenantID, to.ID, m.Occasion, m.ID, m.Payload)
	if err != nil {
		return Result{Away: true, Error: err.Error()}
	}
	return Result{Delivered: true}
}

func (s *Sender) webhook(ctx context.Context, to *subscription.Subscription, with subscription.Secrets,
	m Message) Result {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Delivery.URL, bytes.NewReader(m.Payload))
	if err != nil {
		return Result{Error: "the URL cannot be used"}
	}
	for name, value := range with.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", "idplatform-webhooks")
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	if m.TraceParent != "" {
		r.Header.Set("Traceparent", m.TraceParent)
	}
	secrets := []string{with.Current}
	if with.Previous != "" && s.clock.Now().Before(to.Delivery.PreviousUntil) {
		secrets = append(secrets, with.Previous)
	}
	webhook.Sign(r.Header, m.ID, s.clock.Now().Std(), m.Payload, secrets...)
	resp, err := s.client.Do(r)
	if err != nil { // the receiver is not to blame for other receivers at its host
		return Result{Error: outbound.Explain(err), Away: errors.Is(err, outbound.ErrBusy)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only so that the connection can be used again
	code := resp.StatusCode
	result := Result{
		Code: code, Delivered: code/100 == 2, Gone: code == http.StatusGone,
		RetryAfter: outbound.RetryAfter(resp, s.clock.Now().Std()),
	}
	switch {
	case resp.StatusCode/100 == 3:
		result.Error = "the receiver answered with a redirect, which is not followed"
	case !result.Delivered:
		result.Error = fmt.Sprintf("the receiver answered %d", resp.StatusCode)
	}
	return result
}
