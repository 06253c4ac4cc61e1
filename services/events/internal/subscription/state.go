package subscription

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/webhook"
)

// rotation is how long webhooks are signed with the former secret, too, after a new one was made.
const rotation = 24 * time.Hour

func cursor(p *Progress) string {
	if p.Epoch == "" {
		return ""
	}
	return stream.Cursor(p.Epoch, p.Place, p.Event)
}

func (s *Subscription) enter(state string) {
	s.State, s.Status = state, "0"
	if state == Active {
		s.Status = "1"
	}
}

// Pause ends the delivery and keeps the place in the stream. The error is apperr.NotFound, InvalidState (disabled) or
// VersionMismatch.
func (s *Subscriptions) Pause(ctx context.Context, id string) (View, error) {
	return s.change(ctx, id, "paused", func(_ *docstore.Tx, sub *Subscription, _ *Progress) (string, error) {
		if sub.State == Disabled {
			return "", apperr.New(apperr.InvalidState, "the subscription is disabled; resume or reset it")
		}
		sub.enter(Paused)
		return "", nil
	})
}

// Resume continues the delivery where it stopped, with all tries for the events that had used up theirs. The error is
// apperr.NotFound or VersionMismatch.
func (s *Subscriptions) Resume(ctx context.Context, id string) (View, error) {
	return s.change(ctx, id, "resumed", func(_ *docstore.Tx, sub *Subscription, p *Progress) (string, error) {
		if sub.State != Active {
			p.LastError = ""
		}
		sub.enter(Active)
		return "", nil
	})
}

// Reset clears failures and continues from a place: "now", a time, or the id of an event, which is then the first. With
// rotate, a new secret signs from now on, and for a day the former one, too; without a place, all else then stays as it
// is, so that no event is lost. A paused subscription stays paused. The error is apperr.NotFound, InvalidParameters,
// Unavailable or VersionMismatch.
func (s *Subscriptions) Reset(ctx context.Context, id, to string, rotate bool) (View, error) {
	if _, err := subscriptions.Find(ctx, s.store, id); err != nil {
		return View{}, err
	}
	place, err := s.place(ctx, to)
	if err != nil {
		return View{}, err
	}
	_, epoch, err := s.stream.End()
	if err != nil {
		return View{}, err
	}
	former, err := subscriptions.Reveal(ctx, s.store, id, "secret")
	if err != nil {
		return View{}, err
	}
	made := webhook.NewSecret()
	return s.change(ctx, id, "reset", func(tx *docstore.Tx, sub *Subscription, p *Progress) (string, error) {
		fresh := ""
		if rotate {
			fresh = made
			sub.Delivery.PreviousSecret, sub.Delivery.PreviousUntil = secret.Text{}, clock.Time{}
			if sub.Delivery.Type == Webhook { // a former password ends at once
				sub.Delivery.PreviousSecret = secret.NewText(former.Reveal())
				sub.Delivery.PreviousUntil = tx.Now.Add(rotation)
			}
			sub.Delivery.Secret = secret.NewText(made)
		}
		if rotate && to == "" {
			return fresh, nil
		}
		p.Generation++
		p.Epoch, p.Place, p.Pending, p.LastError = epoch, place, 0, ""
		p.Dropped, p.DroppedAt = 0, clock.Time{}
		p.Event = s.stream.IDAt(place)
		if sub.State != Paused {
			sub.enter(Active)
		}
		return fresh, s.rows.Clear(ctx, tx, id)
	})
}

// place returns the place in the stream for the to of a reset.
func (s *Subscriptions) place(ctx context.Context, to string) (uint64, error) {
	if to == "now" || to == "" {
		place, _, err := s.stream.End()
		return place, err
	}
	if at, err := clock.Parse(to); err == nil {
		return s.stream.At(ctx, request.Tenant(ctx), at.Std())
	}
	if id, err := uuid.Parse(to); err == nil {
		return s.placeOf(ctx, to, id)
	}
	return 0, apperr.Invalid("to", "must be now, a time, or the id of an event that is still kept")
}

// early is more than the clocks of services differ by.
const early = time.Minute

// placeOf finds an event from the time in its id (RFC 9562 §5.7), and returns the place before it.
func (s *Subscriptions) placeOf(ctx context.Context, text string, id uuid.UUID) (uint64, error) {
	unknown := apperr.Invalid("to", "must be the id of an event that is still kept")
	if id.Version() != 7 {
		return 0, unknown
	}
	seconds, nanos := id.Time().UnixTime()
	after, err := s.stream.At(ctx, request.Tenant(ctx), time.Unix(seconds, nanos).Add(-early))
	if err != nil {
		return 0, err
	}
	for {
		events, next, err := s.stream.Read(ctx, request.Tenant(ctx), after, 500)
		if gone := (*stream.GoneError)(nil); errors.As(err, &gone) {
			after = gone.First - 1
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, e := range events {
			if e.ID == text {
				return e.Place - 1, nil
			}
		}
		if n := len(events); next == after || n > 0 && madeLater(events[n-1].ID, id) {
			return 0, unknown
		}
		after = next
	}
}

// madeLater reports whether an event is so much younger than another that this one must come before it.
func madeLater(event string, than uuid.UUID) bool {
	id, err := uuid.Parse(event)
	if err != nil || id.Version() != 7 {
		return false
	}
	seconds, _ := id.Time().UnixTime()
	before, _ := than.Time().UnixTime()
	return time.Duration(seconds-before)*time.Second > early
}
