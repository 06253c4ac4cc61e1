package token

import (
	"context"
	"errors"
	"net/netip"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Failures are the failed authentications of a client, and the record of the event that tells of one. The id is the
// application's.
type Failures struct {
	docstore.Meta
	ClientID string     `json:"client_id"`
	Count    int64      `json:"count"` // of all times
	TimeLast clock.Time `json:"time_last"`
	Method   string     `json:"method"` // of the last one: client_secret_basic
	Reason   reason     `json:"reason"`
	Address  string     `json:"address"`
}

// reason is why a client is refused, as the event says it.
type reason string

func (r reason) Error() string { return string(r) }

const (
	wrongSecret    reason = "wrong_secret"
	badAssertion   reason = "bad_assertion"
	disabledClient reason = "disabled"
)

var failures = docstore.Define(docstore.Schema[Failures]{
	Name: "client_failures", Noun: "record of failures", Part: true,
})

var clientKind = outbox.Kind{Entity: "client", Source: "/oauth2/clients"}

// strange refuses a client that nobody knows. There is no tenant that could be told.
func (t *Tokens) strange(address netip.Addr) error {
	if wait := t.limits.addresses.take(network(address)); wait > 0 {
		return tooMany("too many failed authentications", wait)
	}
	return errUnproven.Because(errors.New("no such client"))
}

// failed refuses a client, counts that and tells of it, in a dry run too: unless there were too many failures of the
// client or from the address of late.
func (t *Tokens) failed(
	ctx context.Context, c application.Client, method string, address netip.Addr, refusal error,
) error {
	wait := t.limits.addresses.take(network(address))
	if wait == 0 {
		wait = t.limits.failures.take(c.ClientID)
	}
	if wait > 0 {
		return tooMany("too many failed authentications", wait)
	}
	why, _ := errors.AsType[reason](refusal)
	info := request.From(ctx)
	info.Tenant, info.Actor = c.Tenant, c.ClientID
	ctx = docstore.Guarding(request.With(ctx, info))
	err := docstore.Do(ctx, t.Store, func(tx *docstore.Tx) error {
		return count(ctx, tx, Failures{
			Meta: docstore.Meta{ID: c.AppID}, ClientID: c.ClientID, TimeLast: tx.Now,
			Method: method, Reason: why, Address: address.String(),
		})
	})
	if err != nil {
		return err
	}
	return refusal
}

func count(ctx context.Context, tx *docstore.Tx, last Failures) error {
	known, err := failures.LoadMany(ctx, tx, []string{last.ID})
	if err != nil {
		return err
	}
	last.Count = 1
	var doc docstore.Doc[Failures]
	if len(known) == 0 {
		doc, err = failures.Insert(ctx, tx, &last)
	} else {
		last.Count, last.Meta = known[0].Count+1, known[0].Meta
		doc, err = failures.Replace(ctx, tx, &last)
	}
	if err != nil {
		return err
	}
	return outbox.Tell(ctx, tx, clientKind, "authentication_failed", &doc, nil)
}

// Forget removes what is kept of a deleted application.
func Forget(ctx context.Context, tx *docstore.Tx, appID string) error {
	return failures.DeleteWhere(ctx, tx, docstore.ID(appID), nil)
}
