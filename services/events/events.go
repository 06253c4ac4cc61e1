// Package events is the events service: subscriptions and their delivery, the feed of events, and the audit log. It
// exports only what a program needs to run it.
package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/audit"
	"github.com/idplatform/idplatform/services/events/internal/callout"
	"github.com/idplatform/idplatform/services/events/internal/catalogue"
	"github.com/idplatform/idplatform/services/events/internal/deadletter"
	"github.com/idplatform/idplatform/services/events/internal/delivery"
	"github.com/idplatform/idplatform/services/events/internal/httpapi"
	"github.com/idplatform/idplatform/services/events/internal/storage"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
	"github.com/idplatform/idplatform/services/questions"
)

// Config holds the service's own settings.
type Config struct {
	Audit   AuditConfig   `mapstructure:"audit"`
	Webhook WebhookConfig `mapstructure:"webhook"`
	Callout CalloutConfig `mapstructure:"callout"`

	TenantMIB int `mapstructure:"events_tenant_mib" doc:"A tenant's share of the storage of NATS, for its events, again for the queues of its subscriptions over NATS, and for its dead letters; what is over it is dropped, oldest first; 0: no limit"`
}

// CalloutConfig is about a NATS server that asks this service for the users of subscriptions (auth callout).
type CalloutConfig struct {
	Seed    secret.String `mapstructure:"seed" doc:"Seed of the account key whose public half is the auth_callout issuer in the NATS server's configuration; empty: requests of NATS servers are not answered"`
	Account string        `mapstructure:"account" doc:"The NATS account of the users of subscriptions"`
}

// AuditConfig is about the audit log.
type AuditConfig struct {
	Keep   time.Duration `mapstructure:"keep" doc:"How long audit log entries are kept; 0: forever"`
	Export string        `mapstructure:"export" doc:"Where the audit log's entries of all tenants go as well, as OCSF events: file:///path, or a syslog receiver tcp://host:port or tls://host:port; empty: nowhere"`
}

// WebhookConfig is about deliveries to webhooks.
type WebhookConfig struct {
	RetryDelays []string `mapstructure:"retry_delays" doc:"Pauses before the second and later tries, such as 5s; a subscription whose event fails after the last is failing"`
}

// DefaultConfig keeps the audit log for a year, and tries to deliver an event for three days.
func DefaultConfig() Config {
	return Config{
		Audit:     AuditConfig{Keep: 365 * 24 * time.Hour},
		Webhook:   WebhookConfig{[]string{"5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "24h"}},
		Callout:   CalloutConfig{Account: "SUBSCRIBERS"},
		TenantMIB: 2048,
	}
}

// schedule parses RetryDelays.
func (c WebhookConfig) schedule() ([]time.Duration, error) {
	pauses := make([]time.Duration, len(c.RetryDelays))
	for i, text := range c.RetryDelays {
		var err error
		if pauses[i], err = time.ParseDuration(text); err != nil || pauses[i] <= 0 {
			return nil, errors.New("webhook.retry_delays must be positive durations, such as 5s or 30m")
		}
	}
	return pauses, nil
}

// Spec describes the service with a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{
		Name:        "events",
		Collections: slices.Concat(subscription.Collections(), delivery.Collections(), audit.Collections()),
		New:         c.new, EventMemory: Memory,
	}
}

// Memory is how many bytes of the newest events the service keeps in memory. Readers near the end of the stream read
// those.
const Memory = 16 << 20

func (c Config) new(_ context.Context, d service.Deps) (service.App, error) {
	if c.Audit.Keep < 0 {
		return service.App{}, errors.New("audit.keep must not be negative")
	}
	if c.TenantMIB < 0 {
		return service.App{}, errors.New("events_tenant_mib must not be negative")
	}
	schedule, err := c.Webhook.schedule()
	if err != nil {
		return service.App{}, err
	}
	target, err := c.Audit.target()
	if err != nil {
		return service.App{}, err
	}
	events := d.Stream
	sender := delivery.NewSender(d.Outbound, d.Bus, d.Clock)
	subs := subscription.New(d.Store, events, delivery.Rows{})
	engine := delivery.New(delivery.Config{
		Store: d.Store, Stream: events, Group: d.Group, Sender: sender, Clock: d.Clock, Log: d.Log, Metrics: d.Metrics,
		Schedule: schedule,
	})
	log := &audit.Log{Store: d.Store, Stream: events, Keep: c.Audit.Keep}
	readers := []*stream.Reader{audit.NewWriter(d.Store, events, d.Group, d.Metrics)}
	exporter := audit.NewExporter(d.Store, events, d.Group, d.Metrics, target) // its metric is there in any case
	if target != nil {
		readers = append(readers, exporter)
	}

	server := d.Server("events")
	httpapi.Register(server, httpapi.Parts{
		Subscriptions: subs, Deliveries: &delivery.Log{Store: d.Store, Subs: subs},
		Tester: &delivery.Tester{Store: d.Store, Subs: subs, Sender: sender}, Stream: events, Audit: log,
		DeadLetters: &deadletter.Letters{Store: d.Store, Bus: d.Bus},
	})
	return service.App{
		Handler: server,
		Answer:  func(b *bus.Bus) error { return answer(b, subs, c.Callout) },
		Ready: func() error {
			_, _, err := events.End()
			return err
		},
		Readers: readers,
		Tasks: append(c.keepShares(d),
			service.Lasting("deliver", engine.Run),
			service.Task{Name: "forget audit log entries", Every: time.Minute, Do: log.Forget},
		),
	}, nil
}

// target is where audit log entries are handed on to; nil: nowhere.
func (c AuditConfig) target() (audit.Target, error) {
	if c.Export == "" {
		return nil, nil
	}
	target, err := audit.ParseTarget(c.Export)
	if err != nil {
		return nil, fmt.Errorf("audit.export %w", err)
	}
	return target, nil
}

// keepShares are the tasks that keep the tenants within their shares of the storage of NATS.
func (c Config) keepShares(d service.Deps) []service.Task {
	if c.TenantMIB == 0 {
		return nil
	}
	keeper := storage.New(storage.Config{
		Share: int64(c.TenantMIB) << 20, Bus: d.Bus, Store: d.Store, Stream: d.Stream, Group: d.Group, Log: d.Log,
		Metrics: d.Metrics,
	})
	return []service.Task{
		service.Lasting("keep tenants' shares of the events", keeper.Events),
		service.Lasting("keep tenants' shares of the queues", keeper.Queues),
		service.Lasting("keep tenants' shares of the dead letters", keeper.DeadLetters),
	}
}

// answer registers the answers to other services' questions and, if it is configured, to a NATS server's auth callout.
func answer(b *bus.Bus, subs *subscription.Subscriptions, c CalloutConfig) error {
	err := questions.IsSubscriber.Answer(b,
		func(ctx context.Context, q questions.Subscriber) (questions.Admission, error) {
			is, err := subs.IsPassword(ctx, q.ID, q.Password)
			return questions.Admission{Admitted: is}, err
		})
	if err != nil {
		return err
	}
	err = questions.UnknownEventTypes.Answer(b,
		func(_ context.Context, q questions.EventTypes) (questions.EventTypes, error) {
			return questions.EventTypes{Types: slices.DeleteFunc(q.Types, catalogue.Exists)}, nil
		})
	if err != nil || c.Seed.IsZero() {
		return err
	}
	return callout.Answer(b.JetStream().Conn(), c.Seed, c.Account, callout.Session, subs.IsPassword)
}

// DeadLetters is the command that shows, replays or removes dead letters on the machine.
func DeadLetters(ctx context.Context, b *bus.Bus, words []string, out io.Writer) error {
	return deadletter.Command(ctx, b, words, out)
}
