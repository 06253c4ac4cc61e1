package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Resignation says when and why a user leaves, and who takes over.
type Resignation struct {
	EffectiveTime clock.Time // zero or in the past means at once
	Reason        string
	SuccessorID   string
}

// Resign makes the user resign, at once or when EffectiveTime comes. A scheduled resignation can be rescheduled. From
// then on sign-ins are refused, and user.resigned ends what the user has in other services. The error is
// apperr.NotFound, InvalidParameters (successor) or InvalidState (already resigned).
func (s *Users) Resign(ctx context.Context, id string, r Resignation) (Doc, error) {
	var faults apperr.Faults
	faults.Text("reason", r.Reason, maxReason)
	faults.Check(r.SuccessorID != id, "successor_id", "must be another user")
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	return s.transition(ctx, id, func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if u.Status == Resigned {
			return Doc{}, errResigned
		}
		if r.SuccessorID != "" {
			if err := checkSuccessor(ctx, tx, r.SuccessorID); err != nil {
				return Doc{}, err
			}
		}
		if err := editAccount(ctx, tx, id, func(a *account) error {
			a.Reason, a.Successor = r.Reason, r.SuccessorID
			return nil
		}); err != nil {
			return Doc{}, err
		}
		u.TimeResigned = r.EffectiveTime
		if u.TimeResigned.IsZero() {
			u.TimeResigned = tx.Now
		}
		if u.TimeResigned.After(tx.Now) {
			return users.Replace(ctx, tx, u)
		}
		u.Status = Resigned
		doc, err := users.Collection.Replace(ctx, tx, u)
		if err != nil {
			return Doc{}, err
		}
		return doc, tellResigned(ctx, tx, &doc)
	})
}

func checkSuccessor(ctx context.Context, tx *docstore.Tx, id string) error {
	doc, err := users.Find(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return apperr.Invalid("successor_id", "is not a user")
	}
	if err != nil {
		return err
	}
	if u, err := doc.Value(); err != nil {
		return err
	} else if u.Status == Resigned {
		return apperr.Invalid("successor_id", "has resigned")
	}
	return nil
}

// tellResigned tells the event of a resignation that has taken effect.
func tellResigned(ctx context.Context, tx *docstore.Tx, doc *Doc) error {
	a, err := findAccount(ctx, tx, doc.ID)
	if err != nil {
		return err
	}
	return users.With("reason", a.Reason).With("successor_id", a.Successor).Tell(ctx, tx, "resigned", doc)
}

// Reinstate takes back a resignation, effective or scheduled. The error is apperr.NotFound, or InvalidState if there is
// neither.
func (s *Users) Reinstate(ctx context.Context, id string) (Doc, error) {
	return s.transition(ctx, id, func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if u.TimeResigned.IsZero() {
			return Doc{}, apperr.New(apperr.InvalidState, "the user has not resigned")
		}
		if u.Status == Resigned {
			u.Status = Active
		}
		u.TimeResigned = clock.Time{}
		return users.As("reinstated").Replace(ctx, tx, u)
	})
}
