package user

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Verification is the answer to a login. Reason is there unless Verified, the other members if it is.
type Verification struct {
	Verified           bool   `json:"verified"`
	Reason             string `json:"reason,omitempty"`
	UserID             string `json:"user_id,omitempty"`
	MustChangePassword *bool  `json:"must_change_password,omitempty"`
	MFARequired        *bool  `json:"mfa_required,omitempty"`
}

// The reasons.
const (
	invalidCredentials = "invalid_credentials"
	locked             = "locked"
	disabled           = "disabled"
	resigned           = "resigned"
)

// refusal is why a user may not sign in; "" if they may.
func refusal(u *User) string {
	switch {
	case u.Status == Resigned:
		return resigned
	case u.Status == Disabled:
		return disabled
	case u.Locked:
		return locked
	}
	return ""
}

// VerifyLogin checks a login name (username, email or mobile) and its password. A refusal is an answer, not an error;
// it tells the true reason only to those who know the password, and takes as long for a name that nobody has. A wrong
// password is counted in a dry run too.
func (s *Users) VerifyLogin(ctx context.Context, loginName, secret string) (Verification, error) {
	refused := Verification{Reason: invalidCredentials}
	doc, err := s.byLogin(ctx, s.Store, loginName)
	if apperr.IsNotFound(err) {
		return refused, s.refuseNobody(ctx, secret)
	}
	if err != nil {
		return Verification{}, err
	}
	u, err := doc.Value()
	if err != nil {
		return Verification{}, err
	}
	a, err := findAccount(ctx, s.Store, u.ID)
	if err != nil {
		return Verification{}, err
	}
	ok, rehash, err := s.verify(ctx, a.Password, secret)
	if err != nil {
		return Verification{}, err
	}
	if !ok || s.exhausted(u, a, s.Store.Now()) {
		_, err := s.countFailure(docstore.Guarding(ctx), doc.ID)
		return refused, err
	}
	hash := ""
	if rehash {
		if hash, err = s.Hasher.Hash(ctx, secret); err != nil {
			return Verification{}, err
		}
	}
	v, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Verification, error) {
		return s.signIn(ctx, tx, doc.ID, a.Password, hash)
	})
	if err == nil && v.Reason == invalidCredentials { // as after a wrong password, so that nobody can tell them apart
		_, err = s.countFailure(docstore.Guarding(ctx), doc.ID)
	}
	return v, err
}

// signIn notes a login with the right password, if the user may sign in. Who may not hears the reason, unless there
// were too many wrong passwords: then the right one can't be found by guessing on while the user is locked.
func (s *Users) signIn(ctx context.Context, tx *docstore.Tx, id, verified, rehashed string) (Verification, error) {
	u, err := s.load(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return Verification{Reason: invalidCredentials}, nil
	}
	if err != nil {
		return Verification{}, err
	}
	a, err := findAccount(ctx, tx, id)
	if err != nil {
		return Verification{}, err
	}
	if a.Password != verified || s.exhausted(u, a, tx.Now) { // changed since it was read, or guessed on
		return Verification{Reason: invalidCredentials}, nil
	}
	if reason := refusal(u); reason != "" {
		return Verification{Reason: reason}, nil
	}
	if len(a.FailedLogins) > 0 || rehashed != "" {
		if err := editAccount(ctx, tx, id, func(a *account) error {
			a.FailedLogins = nil
			if rehashed != "" {
				a.Password = rehashed
			}
			return nil
		}); err != nil {
			return Verification{}, err
		}
	}
	u.TimeLastLogin = tx.Now
	if _, err := touch(ctx, tx, u, "login_verified"); err != nil {
		return Verification{}, err
	}
	mfa := false // no second factor is kept in this service
	return Verification{Verified: true, UserID: id, MustChangePassword: &u.MustChangePassword, MFARequired: &mfa}, nil
}

// exhausted reports whether a locked user met as many wrong passwords as lock one. Then the right password is
// answered like a wrong one: else it could be found by guessing on while the user is locked.
func (s *Users) exhausted(u *User, a *account, now clock.Time) bool {
	return u.Locked && len(a.failures(now, s.Lockout)) >= s.Lockout.Failures
}

// countFailure notes a wrong password and locks the user after too many. It returns why the user could not have
// signed in with the right one. Of a locked user no more than the limit is counted, so that guessing on does not
// prolong anything.
func (s *Users) countFailure(ctx context.Context, id string) (reason string, err error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (string, error) {
		u, err := s.load(ctx, tx, id)
		if apperr.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		reason := refusal(u)
		tooMany := false
		if err := editAccount(ctx, tx, id, func(a *account) error {
			tooMany = a.fail(tx.Now, s.Lockout) && !u.Locked
			if tooMany {
				a.FailedLogins = nil // the count starts anew
			}
			return nil
		}); err != nil {
			return "", err
		}
		doc, err := users.Revise(ctx, tx, u)
		if err != nil {
			return "", err
		}
		if err := emit(ctx, tx, "login_failed", &doc, nil); err != nil || !tooMany {
			return reason, err
		}
		u.lock("too many failed logins", tx.Now.Add(s.Lockout.For))
		_, err = replace(ctx, tx, u, "locked", nil)
		return reason, err
	})
}

// refuseNobody does for a name that nobody has what a wrong password costs: the same reads, hash and writes, in the
// same order. What a store needs for them shows in the time of an answer as much as a hash does.
func (s *Users) refuseNobody(ctx context.Context, secret string) error {
	id := fmt.Sprintf("nobody-%d", rand.N(nobodies))
	if _, err := findAccount(ctx, s.Store, id); err != nil {
		return err
	}
	if _, _, err := s.verify(ctx, "", secret); err != nil {
		return err
	}
	return s.countNobody(docstore.Guarding(ctx), id)
}

// nobodies are the accounts of nobody, so many that logins under names that nobody has don't wait for each other.
const nobodies = 64

// countNobody is countFailure for an account of nobody. Two more accounts stand in for the user's record and the event.
func (s *Users) countNobody(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		standIns, err := accounts.LoadMany(ctx, tx, []string{id + "-user", id + "-event"})
		if err != nil {
			return err
		}
		if err := editAccount(ctx, tx, id, func(a *account) error {
			a.FailedLogins = []clock.Time{tx.Now}
			return nil
		}); err != nil {
			return err
		}
		for _, a := range standIns {
			if _, err := accounts.Revise(ctx, tx, a); err != nil {
				return err
			}
		}
		if len(standIns) > 0 {
			return nil
		}
		for _, name := range []string{id + "-user", id + "-event"} { // the first time
			if _, err := accounts.Insert(ctx, tx, &account{Meta: docstore.Meta{ID: name}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// verify takes as long without a hash as with one.
func (s *Users) verify(ctx context.Context, hash, secret string) (ok, rehash bool, err error) {
	if hash == "" {
		return false, false, s.Hasher.Dummy(ctx, secret)
	}
	return s.Hasher.Verify(ctx, hash, secret)
}
