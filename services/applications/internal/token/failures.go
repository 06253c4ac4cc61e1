package token

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Failures counts the failed authentications of a client and describes the last one. It is the record of the event
// client.authentication_failed. Its id is the application's.
type Failures struct {
	docstore.Meta
	ClientID string     `json:"client_id"`
	Count    int64      `json:"count"` // since the application was created
	TimeLast clock.Time `json:"time_last"`
	Method   string     `json:"method"` // of the last one, such as client_secret_basic
	Reason   reason     `json:"reason"`
	Address  string     `json:"address"`
}

// reason is why a client is refused, as it appears in the event.
type reason string

func (r reason) Error() string { return string(r) }

const (
	wrongSecret    reason = "wrong_secret"
	badAssertion   reason = "bad_assertion"
	disabledClient reason = "disabled"
)

var failures = outbox.Define("client", "/oauth2/clients", docstore.Schema[Failures]{
	Name: "client_failures", Noun: "record of failures", NoIfMatch: true,
})

// nobody stands in for a client that does not exist. Its refusal takes the same steps as that of a client: the same
// reads, comparison and limits, and a transaction with the same writes. Otherwise the time of an answer, or the number
// of attempts until a 429, would tell which clients exist.
func nobody(clientID string) application.Client {
	return application.Client{
		Tenant: request.Platform, AppID: fmt.Sprintf("%s%d", nobodies, rand.N(standIns)), ClientID: clientID,
		Secrets: []application.ClientSecret{{Hash: noHash}},
	}
}

const (
	nobodies = "nobody-" // prefix of the ids of stand-ins; an application's id is a number
	standIns = 64        // enough that attempts with unknown ids seldom wait for each other
)

// noHash has the length of a hash but is the hash of no secret.
var noHash = strings.Repeat("-", len(application.HashSecret("")))

func isNobody(appID string) bool { return strings.HasPrefix(appID, nobodies) }

// failed refuses a client, counts the failure and emits an event, in a dry run, too. After too many failures of the
// client or from the address it returns RateLimited instead.
func (t *Tokens) failed(
	ctx context.Context, c application.Client, method string, address netip.Addr, refusal error,
) error {
	wait := t.limits.addresses.Take(network(address))
	if wait == 0 {
		wait = t.limits.failures.Take(c.ClientID[:min(len(c.ClientID), maxClientID)])
	}
	if wait > 0 {
		return tooMany("too many failed authentications", wait)
	}
	why, _ := errors.AsType[reason](refusal)
	info := request.From(ctx)
	info.Tenant, info.Actor = c.Tenant, auth.ClientActor(c.ClientID)
	ctx = docstore.Guarding(request.With(ctx, info))
	last := Failures{Meta: docstore.Meta{ID: c.AppID}, ClientID: c.ClientID, Method: method, Reason: why,
		Address: address.String()}
	if isNobody(c.AppID) {
		last = Failures{Meta: last.Meta}
	}
	err := docstore.Do(ctx, t.Store, func(tx *docstore.Tx) error {
		last := last
		last.TimeLast = tx.Now
		return count(ctx, tx, &last)
	})
	if err != nil {
		return err
	}
	return refusal
}

// count stores the last failure and tells the event. A failure of nobody belongs to no tenant; a second document takes
// the place of its event.
func count(ctx context.Context, tx *docstore.Tx, last *Failures) error {
	ids := []string{last.ID}
	if isNobody(last.ID) {
		ids = append(ids, last.ID+"-event")
	}
	known, err := failures.LoadMany(ctx, tx, ids)
	if err != nil {
		return err
	}
	if isNobody(last.ID) {
		return countNobody(ctx, tx, last, ids, known)
	}
	if len(known) == 0 {
		last.Count = 1
		_, err = failures.As("authentication_failed").Insert(ctx, tx, last)
	} else {
		last.Count, last.Meta = known[0].Count+1, known[0].Meta
		_, err = failures.As("authentication_failed").Replace(ctx, tx, last)
	}
	return err
}

func countNobody(ctx context.Context, tx *docstore.Tx, last *Failures, ids []string, known []*Failures) error {
	for _, f := range known {
		f.Count++
		f.TimeLast = last.TimeLast
		if _, err := failures.Collection.Replace(ctx, tx, f); err != nil {
			return err
		}
	}
	if len(known) > 0 {
		return nil
	}
	for _, id := range ids { // at the first use
		f := &Failures{Meta: docstore.Meta{ID: id}, Count: 1, TimeLast: last.TimeLast}
		if _, err := failures.Collection.Insert(ctx, tx, f); err != nil {
			return err
		}
	}
	return nil
}

// Forget deletes the record of a deleted application.
func Forget(ctx context.Context, tx *docstore.Tx, appID string) error {
	return failures.Collection.DeleteWhere(ctx, tx, docstore.ID(appID), nil)
}
