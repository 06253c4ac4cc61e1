package user

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// MayEnter says whether a user may sign in who has proven by another provider who they are. reason is empty if they
// may; scoped says that they have a scope of this API. Wrong passwords of strangers refuse nobody. The error is
// apperr.NotFound, or Unavailable.
func (s *Users) MayEnter(ctx context.Context, id string) (doc Doc, reason string, scoped bool, err error) {
	if doc, err = s.Get(ctx, id); err != nil {
		return doc, "", false, err
	}
	u, err := doc.Value()
	if err != nil {
		return doc, "", false, err
	}
	if reason = refusalWhenKnown(u); reason != "" {
		return doc, reason, false, nil
	}
	has, err := questions.ScopesOfUser.Ask(ctx, s.Bus, questions.HolderOfScopes{UserID: id})
	return doc, "", len(has.Scopes) > 0, err
}

// OfVerifiedEmail returns the id of the one user who has a verified address; "" if there is none, or several have it.
func (s *Users) OfVerifiedEmail(ctx context.Context, email string) (string, error) {
	doc, err := s.byLogin(ctx, s.Store, email)
	if err != nil {
		return "", apperr.Ignore(err, apperr.NotFound)
	}
	u, err := doc.Value()
	if err != nil || !u.provenEmail(email) {
		return "", err
	}
	return u.ID, nil
}

// CheckLinked refuses to link an identity to a user who cannot sign in, or, if email is not empty, has another address
// or has not verified it. It is called in the transaction that links. The error is apperr.NotFound or InvalidState.
func (s *Users) CheckLinked(ctx context.Context, tx *docstore.Tx, id, email string) error {
	u, err := s.load(ctx, tx, id)
	if err != nil {
		return err
	}
	if reason := refusalWhenKnown(u); reason != "" {
		return errCannotSignIn(reason)
	}
	if email != "" && !u.provenEmail(email) {
		return apperr.New(apperr.InvalidState, "the user has another email address")
	}
	return nil
}

// HasPassword reports whether a user has a password, for a transaction. The error is apperr.NotFound.
func (s *Users) HasPassword(ctx context.Context, tx *docstore.Tx, id string) (bool, error) {
	u, err := s.load(ctx, tx, id)
	if err != nil {
		return false, err
	}
	return u.PasswordSet, nil
}

// provenEmail reports whether an address is the user's alone, and verified. Other signs that look the same are those of
// another mailbox.
func (u *User) provenEmail(email string) bool {
	same := asciiLower(dnsname.EmailKey(u.Email)) == asciiLower(dnsname.EmailKey(email))
	return u.Email != "" && u.EmailVerified && same && !slices.Contains(u.sharedKeys(), loginKey(email))
}

func asciiLower(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
