package embedded

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// TCP clients have an account of their own. The services' account exports to it the events and the use of one pull
// consumer that the platform makes; deploy/nats/nats.conf does the same. Permissions on subjects in the services'
// account would not be enough: JetStream replies to whatever subject a request names, and the maker of a consumer
// chooses the subject it delivers to, so a reader could make the server publish a question. A subject named in a
// request from another account is a subject of that account.
const (
	readersAccount = "READERS"
	readerEvents   = "idp.events.>"
	readerNext     = "$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.events"
	readerInfo     = "$JS.API.CONSUMER.INFO.IDP_EVENTS.events"
	readerAck      = "$JS.ACK.IDP_EVENTS.events.>"
)

// Users of subscriptions have another account, with the use of the pull consumers of IDP_SUBSCRIPTIONS. Which of them,
// the permissions of each user say.
const (
	subscribersAccount = "SUBSCRIBERS"
	subscriberEvents   = "idp.subscriptions.>"
	subscriberNext     = "$JS.API.CONSUMER.MSG.NEXT.IDP_SUBSCRIPTIONS.>"
	subscriberInfo     = "$JS.API.CONSUMER.INFO.IDP_SUBSCRIPTIONS.>"
	subscriberAck      = "$JS.ACK.IDP_SUBSCRIPTIONS.>"
)

// Subscriber decides about the user of a subscription: which subjects it may publish to and subscribe to.
type Subscriber func(user, password string) (publish, subscribe []string, ok bool)

// AdmitSubscribers lets users of subscriptions in. Before it is called they are refused. It may be called at any time.
func (s *Server) AdmitSubscribers(decide Subscriber) { s.subscriber.Store(&decide) }

func exportSubscriptions(running *server.Server, guard *guard) error {
	services := running.GlobalAccount()
	subscribers, err := running.RegisterAccount(subscribersAccount)
	if err != nil {
		return err
	}
	only := []*server.Account{subscribers}
	for _, step := range []func() error{
		func() error { return services.AddStreamExport(subscriberEvents, only) },
		func() error { return services.AddServiceExportWithResponse(subscriberNext, server.Streamed, only) },
		func() error { return services.AddServiceExport(subscriberInfo, only) },
		func() error { return services.AddServiceExport(subscriberAck, only) },
		func() error { return subscribers.AddStreamImport(services, subscriberEvents, "") },
		func() error { return subscribers.AddServiceImport(services, subscriberNext, subscriberNext) },
		func() error { return subscribers.AddServiceImport(services, subscriberInfo, subscriberInfo) },
		func() error { return subscribers.AddServiceImport(services, subscriberAck, subscriberAck) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	guard.subscribers = subscribers
	return nil
}

// admitReaders creates the account and its user, if one is configured.
func (c Config) admitReaders(running *server.Server, guard *guard) error {
	defer close(guard.open)
	if c.Listen == "" {
		return nil
	}
	if err := exportSubscriptions(running, guard); err != nil {
		return fmt.Errorf("embedded NATS: the subscribers' account: %w", err)
	}
	services := running.GlobalAccount()
	readers, err := running.RegisterAccount(readersAccount)
	if err != nil {
		return fmt.Errorf("embedded NATS: the readers' account: %w", err)
	}
	only := []*server.Account{readers}
	for _, step := range []func() error{
		func() error { return services.AddStreamExport(readerEvents, only) },
		func() error { return services.AddServiceExportWithResponse(readerNext, server.Streamed, only) },
		func() error { return services.AddServiceExport(readerInfo, only) },
		func() error { return services.AddServiceExport(readerAck, only) },
		func() error { return readers.AddStreamImport(services, readerEvents, "") },
		func() error { return readers.AddServiceImport(services, readerNext, readerNext) },
		func() error { return readers.AddServiceImport(services, readerInfo, readerInfo) },
		func() error { return readers.AddServiceImport(services, readerAck, readerAck) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("embedded NATS: the readers' account: %w", err)
		}
	}
	guard.reader = &server.User{Username: c.User, Account: readers, Permissions: &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{readerEvents, "_INBOX.>"}},
		Publish:   &server.SubjectPermission{Allow: []string{readerNext, readerInfo, readerAck}},
	}}
	return nil
}
