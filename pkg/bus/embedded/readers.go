package embedded

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// TCP clients live in an account of their own. The services' account gives it the events and the use of one pull
// consumer that the platform makes, and deploy/nats/nats.conf does the same. Rights to subjects in the services'
// account would not do: JetStream answers to whatever subject a request names, and whoever makes a consumer says where
// it delivers to, so a reader could have the server publish a question. What a request from another account names is a
// subject of that account.
const (
	readersAccount = "READERS"
	readerEvents   = "idp.events.>"
	readerNext     = "$JS.API.CONSUMER.MSG.NEXT.IDP_EVENTS.events"
	readerInfo     = "$JS.API.CONSUMER.INFO.IDP_EVENTS.events"
	readerAck      = "$JS.ACK.IDP_EVENTS.events.>"
)

// admitReaders makes the account and lets its user in, where there is to be one.
func (c Config) admitReaders(running *server.Server, guard *guard) error {
	defer close(guard.open)
	if c.Listen == "" {
		return nil
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
