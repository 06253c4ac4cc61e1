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

// admitReaders creates the account and its user, if one is configured.
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
