package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Lock refuses the user's sign-ins until a time, or until Unlock if until is zero. Locking a locked user updates both
// reason and until. The error is apperr.NotFound, InvalidParameters (until in the past) or InvalidState (resigned).
func (s *Users) Lock(ctx context.Context, id, reason string, until clock.Time) (Doc, error) {
	if err := s.checkLock(reason, until); err != nil {
		return Doc{}, err
	}
	return s.transition(ctx, id, locking(reason, until))
}

// Unlock lets the user sign in again. Unlocking an unlocked user changes nothing.
func (s *Users) Unlock(ctx context.Context, id string) (Doc, error) {
	return s.transition(ctx, id, unlocking)
}

// LockMany locks all users or none. An unknown or resigned user is a fault at ids[i].
func (s *Users) LockMany(ctx context.Context, ids []string, reason string, until clock.Time) (Batch, error) {
	if err := s.checkLock(reason, until); err != nil {
		return Batch{}, err
	}
	return s.transitions(ctx, ids, locking(reason, until))
}

// UnlockMany unlocks all users or none.
func (s *Users) UnlockMany(ctx context.Context, ids []string) (Batch, error) {
	return s.transitions(ctx, ids, unlocking)
}

// Batch is the answer to an operation on many users.
type Batch struct {
	IDs []string `json:"ids" doc:"Of the users that were changed" example:"[\"1048577\"]"`
}

func (s *Users) checkLock(reason string, until clock.Time) error {
	var faults apperr.Faults
	faults.Text("reason", reason, maxReason)
	faults.Check(reason != questions.LockedByFailures, "reason",
		"must not be that of a lock by wrong passwords: such a lock ends no sessions")
	faults.Check(until.IsZero() || until.After(s.Store.Now()), "until", "must be in the future")
	return faults.Err()
}

// step changes a loaded user and stores it.
type step func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error)

func locking(reason string, until clock.Time) step {
	return func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if u.Status == Resigned {
			return Doc{}, errResigned
		}
		u.lock(reason, until)
		return users.As("locked").Replace(ctx, tx, u)
	}
}

func unlocking(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
	if u.Locked {
		if err := clearFailures(ctx, tx, u.ID); err != nil {
			return Doc{}, err
		}
	}
	u.unlock()
	return users.As("unlocked").Replace(ctx, tx, u)
}

func (s *Users) transition(ctx context.Context, id string, do step) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		return do(ctx, tx, u)
	})
}

func (s *Users) transitions(ctx context.Context, ids []string, do step) (Batch, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Batch, error) {
		if err := readAhead(ctx, tx, ids); err != nil {
			return Batch{}, err
		}
		var faults apperr.Faults
		for i, id := range ids {
			u, err := s.load(ctx, tx, id)
			if err == nil {
				_, err = do(ctx, tx, u)
			}
			switch apperr.KindOf(err) {
			case "":
			case apperr.NotFound:
				faults.Add(apperr.Item("ids", i), "is not a user")
			case apperr.InvalidState:
				faults.Add(apperr.Item("ids", i), "is a user who has resigned")
			default:
				return Batch{}, err
			}
		}
		return Batch{ids}, faults.Err()
	})
}
