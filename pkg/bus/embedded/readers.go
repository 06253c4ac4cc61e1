package embedded

import (
	"fmt"
	"time"

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

// Users of subscriptions have another account, with the use of all pull consumers of IDP_SUBSCRIPTIONS. The permissions
// of each user limit it to the subscription's own consumer.
const (
	subscribersAccount = "SUBSCRIBERS"
	subscriberEvents   = "idp.subscriptions.>"
	subscriberNext     = "$JS.API.CONSUMER.MSG.NEXT.IDP_SUBSCRIPTIONS.>"
	subscriberInfo     = "$JS.API.CONSUMER.INFO.IDP_SUBSCRIPTIONS.>"
	subscriberAck      = "$JS.ACK.IDP_SUBSCRIPTIONS.>"
)

// Subscriber returns the subjects that the user of a subscription may publish to and subscribe to. ok is false if user
// and password are not those of a subscription.
type Subscriber func(user, password string) (publish, subscribe []string, ok bool)

// AdmitSubscribers admits users of subscriptions from now on. Before it is called they are refused. It may be called at
// any time.
func (s *Server) AdmitSubscribers(decide Subscriber) { s.subscriber.Store(&decide) }

// share registers an account to which the services' account exports a stream of events and the use of pull consumers:
// the subjects of their next message, their description and their acknowledgements.
func share(running *server.Server, name, events, next, info, ack string) (*server.Account, error) {
	services := running.GlobalAccount()
	account, err := running.RegisterAccount(name)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS: the account %s: %w", name, err)
	}
	only := []*server.Account{account}
	for _, step := range []func() error{
		func() error { return services.AddStreamExport(events, only) },
		func() error { return services.AddServiceExportWithResponse(next, server.Streamed, only) },
		func() error { return services.AddServiceExport(info, only) },
		func() error { return services.AddServiceExport(ack, only) },
		func() error { return account.AddStreamImport(services, events, "") },
		func() error { return account.AddServiceImport(services, next, next) },
		func() error { return account.AddServiceImport(services, info, info) },
		func() error { return account.AddServiceImport(services, ack, ack) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("embedded NATS: the account %s: %w", name, err)
		}
	}
	return account, nil
}

// workersPermissions let a worker receive the work of jobs, and reply once to each message. It is a user of the
// services' account, where the work is sent: it may not publish anything else, so it can neither use JetStream nor make
// the server publish.
func workersPermissions() *server.Permissions {
	return &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{"idp.jobs.>"}},
		Publish:   &server.SubjectPermission{Allow: []string{}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: 10 * time.Second},
	}
}

// admitReaders creates both accounts and the users of readers and workers, if TCP clients are admitted at all.
func (c Config) admitReaders(running *server.Server, guard *guard) error {
	defer close(guard.open)
	if c.Listen == "" {
		return nil
	}
	subscribers, err := share(running, subscribersAccount, subscriberEvents, subscriberNext, subscriberInfo,
		subscriberAck)
	if err != nil {
		return err
	}
	guard.subscribers = subscribers
	if c.Worker != "" {
		guard.worker = &server.User{
			Username: c.Worker, Account: running.GlobalAccount(), Permissions: workersPermissions(),
		}
	}
	readers, err := share(running, readersAccount, readerEvents, readerNext, readerInfo, readerAck)
	if err != nil {
		return err
	}
	guard.reader = &server.User{Username: c.User, Account: readers, Permissions: &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{readerEvents, "_INBOX.>"}},
		Publish:   &server.SubjectPermission{Allow: []string{readerNext, readerInfo, readerAck}},
	}}
	return nil
}
