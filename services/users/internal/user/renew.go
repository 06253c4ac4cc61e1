package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// RenewPassword sets the password that a user has chosen after a sign-in, which has proven the old one: that of the
// time proven. A change that was made already, by its id, is not made again. The error is apperr.NotFound,
// InvalidParameters (at new_password) or InvalidState (a user who cannot sign in, or has another password since). Wrong
// passwords of strangers refuse nothing: the old one may have come from a known browser.
func (s *Users) RenewPassword(ctx context.Context, id, changeID, newPassword string, proven clock.Time) (Doc, error) {
	u, err := s.signable(ctx, id, refusalWhenKnown)
	if err != nil {
		return Doc{}, err
	}
	a, err := findAccount(ctx, s.Store, id)
	if err != nil {
		return Doc{}, err
	}
	if a.LastChange == changeID {
		return s.Get(ctx, id)
	}
	if err := checkNewPassword(newPassword, u); err != nil {
		return Doc{}, err
	}
	hash, err := s.newHashOf(ctx, u, newPassword)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		if reason := refusalWhenKnown(u); reason != "" {
			return Doc{}, errCannotSignIn(reason)
		}
		if err := editAccount(ctx, tx, id, func(now *account) error {
			if now.Password != a.Password || u.TimePasswordChanged != proven {
				return apperr.New(apperr.InvalidState, "the password was changed meanwhile")
			}
			now.setPassword(hash)
			now.LastChange = changeID
			return nil
		}); err != nil {
			return Doc{}, err
		}
		return passwordSet(ctx, tx, u, false)
	})
}
