package subscription

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
)

// EachActive calls fn for every active subscription of all tenants.
func EachActive(ctx context.Context, store *docstore.Store, fn func(ctx context.Context, s *Subscription) error) error {
	active := docstore.Eq(byState, docstore.Text(Active))
	return subscriptions.EachTenant(ctx, store, func(ctx context.Context) error {
		return subscriptions.Each(ctx, store, active, func(doc Doc) error {
			s, err := doc.Value()
			if err != nil {
				return err
			}
			return fn(ctx, s)
		})
	})
}

// Load returns a subscription in a transaction, with its revision. The error is apperr.NotFound.
func Load(ctx context.Context, tx *docstore.Tx, id string) (s *Subscription, revision int64, err error) {
	doc, err := subscriptions.Find(ctx, tx, id)
	if err != nil {
		return nil, 0, err
	}
	s, err = doc.Value()
	return s, doc.Revision(), err
}

// Secrets are what a subscription's webhooks are sent with. They must reach no log, event or answer.
type Secrets struct {
	Current, Previous string
	Headers           map[string]string
}

// Reveal returns the secrets of a subscription of the context's tenant.
func Reveal(ctx context.Context, store *docstore.Store, s *Subscription) (Secrets, error) {
	var failed error
	reveal := func(member string) string {
		value, err := subscriptions.Reveal(ctx, store, s.ID, member)
		if err != nil && failed == nil {
			failed = err
		}
		return value.Reveal()
	}
	found := Secrets{Current: reveal("secret"), Previous: reveal("previous_secret"), Headers: map[string]string{}}
	for name := range s.Delivery.Headers {
		found.Headers[name] = reveal(headerMember(name))
	}
	return found, failed
}

// IsPassword reports whether a text is the password of the NATS user of a subscription of the context's tenant, which
// may connect while the subscription is not paused.
func (s *Subscriptions) IsPassword(ctx context.Context, id, password string) (bool, error) {
	sub, err := s.Find(ctx, id)
	if apperr.IsNotFound(err) || err == nil && (sub.Delivery.Type != NATS || sub.State == Paused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	secrets, err := Reveal(ctx, s.store, sub)
	if err != nil {
		return false, err
	}
	return secrets.Current != "" && secret.Equal(password, secrets.Current), nil
}

// Stop ends the delivery to an active subscription, with the reason. p is its progress, which the transaction has
// loaded.
func Stop(ctx context.Context, tx *docstore.Tx, p *Progress, state, reason string) error {
	s, err := subscriptions.Load(ctx, tx, p.ID)
	if apperr.IsNotFound(err) {
		return nil
	}
	if err != nil || s.State != Active {
		return err
	}
	s.enter(state)
	p.LastError = reason
	_, err = subscriptions.As(state).Replace(ctx, tx, s)
	return err
}

// NoteDropped says in the state of a subscription of the context's tenant that events were dropped which its subscriber
// over NATS had not read.
func NoteDropped(ctx context.Context, store *docstore.Store, id string, events uint64) error {
	err := docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		p, err := ProgressOf.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if p.Dropped == 0 {
			p.DroppedAt = tx.Now
		}
		p.Dropped += int64(events) //nolint:gosec // far from the end
		p.LastError = fmt.Sprintf(
			"%d events were dropped unread since %s: the tenant has used up its share of the storage",
			p.Dropped, p.DroppedAt)
		_, err = ProgressOf.Replace(ctx, tx, p)
		return err
	})
	return apperr.Ignore(err, apperr.NotFound)
}

// TellRedelivered tells that an event goes to a subscription again, and returns the subscription as it is then. The
// error is apperr.NotFound.
func TellRedelivered(ctx context.Context, tx *docstore.Tx, id, event string) (Doc, error) {
	s, err := subscriptions.Load(ctx, tx, id)
	if err != nil {
		return Doc{}, err
	}
	return subscriptions.As("redelivered").With("event", event).Revise(ctx, tx, s)
}

// Event returns the event of the context's tenant with an id at a cursor, nil if it is no longer kept. The error is
// apperr.Unavailable.
func (s *Subscriptions) Event(ctx context.Context, cursor, id string) (*stream.Event, error) {
	return s.stream.Find(ctx, request.Tenant(ctx), cursor, id)
}
