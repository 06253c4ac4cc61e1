package user

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Proven is what a user has shown before they choose a password.
type Proven struct {
	// TimePasswordChanged is that of the password at the time; zero: there was none.
	TimePasswordChanged clock.Time
	// Email is the address that is the user's own; empty: none was proven.
	Email string
}

// RenewPassword sets the password that a user has chosen after they have proven who they are. A proven address becomes
// verified, unless another user had it before. A change that was made already, by its id, is not made again. The error
// is apperr.NotFound, InvalidParameters (at new_password) or InvalidState (a user who cannot sign in, or has another
// password or address since). Wrong passwords of strangers refuse nothing: the old one may have come from a known
// browser.
func (s *Users) RenewPassword(ctx context.Context, id, changeID, newPassword string, proven Proven) (Doc, error) {
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
			if now.Password != a.Password || u.TimePasswordChanged != proven.TimePasswordChanged {
				return apperr.New(apperr.InvalidState, "the password was changed meanwhile")
			}
			if proven.Email != "" && proven.Email != u.Email {
				return apperr.New(apperr.InvalidState, "the email address was changed meanwhile")
			}
			now.setPassword(hash)
			now.LastChange = changeID
			return nil
		}); err != nil {
			return Doc{}, err
		}
		if proven.Email != "" {
			u.EmailVerified = true
			u.unverify()
		}
		return passwordSet(ctx, tx, u, false)
	})
}

// VerifyEmail makes the address of a user a verified one, after they have shown to own it. The error is apperr.NotFound
// or InvalidState (the user cannot sign in, has another address, or another user had it before).
func (s *Users) VerifyEmail(ctx context.Context, id, email string) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		if reason := refusalWhenKnown(u); reason != "" {
			return Doc{}, errCannotSignIn(reason)
		}
		if email == "" || u.Email != email {
			return Doc{}, apperr.New(apperr.InvalidState, "the user has another email address")
		}
		u.EmailVerified = true
		if u.unverify(); !u.EmailVerified {
			return Doc{}, apperr.New(apperr.InvalidState, "another user had the email address before")
		}
		return users.Replace(ctx, tx, u)
	})
}

// Invitable says whether a user can be invited to choose a first password with RenewPassword; reason is empty if they
// can. Who has a scope of this API cannot, for the reason that Recoverable gives. The error is apperr.NotFound, or
// Unavailable.
func (s *Users) Invitable(ctx context.Context, id string) (doc Doc, reason string, err error) {
	if doc, err = s.Get(ctx, id); err != nil {
		return doc, "", err
	}
	u, err := doc.Value()
	if err != nil {
		return doc, "", err
	}
	a, err := findAccount(ctx, s.Store, id)
	if err != nil {
		return doc, "", err
	}
	reason = refusalWhenKnown(u)
	switch {
	case reason != "":
		return doc, reason, nil
	case a.Password != "":
		return doc, questions.HasPassword, nil
	case u.Email == "":
		return doc, questions.HasNoEmail, nil
	}
	has, err := questions.ScopesOfUser.Ask(ctx, s.Bus, questions.HolderOfScopes{UserID: id})
	if len(has.Scopes) > 0 {
		reason = questions.HasScopes
	}
	return doc, reason, err
}

// Recoverable finds the user with a login name if they may set a new password with RenewPassword once it is proven that
// the user's mails are theirs: they may sign in, have a password, an email address that no other user has, and no scope
// of this API. Whoever may change an address or a mail server can read the codes, and must not become an administrator
// by them. Wrong passwords of strangers refuse nothing. The error may be apperr.Unavailable.
func (s *Users) Recoverable(ctx context.Context, loginName string) (doc Doc, found bool, err error) {
	doc, err = s.byLogin(ctx, s.Store, loginName)
	if err != nil {
		return doc, false, apperr.Ignore(err, apperr.NotFound)
	}
	u, err := doc.Value()
	if err != nil {
		return doc, false, err
	}
	if u.Email == "" || slices.Contains(u.sharedKeys(), loginKey(u.Email)) || refusalWhenKnown(u) != "" {
		return doc, false, nil
	}
	a, err := findAccount(ctx, s.Store, u.ID)
	if err != nil || a.Password == "" {
		return doc, false, err
	}
	has, err := questions.ScopesOfUser.Ask(ctx, s.Bus, questions.HolderOfScopes{UserID: u.ID})
	return doc, err == nil && len(has.Scopes) == 0, err
}
