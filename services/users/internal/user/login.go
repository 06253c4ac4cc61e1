package user

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Verification is the answer to a login. It has a Reason if it is not Verified, and the other members if it is.
type Verification struct {
	Verified           bool   `json:"verified" doc:"Whether the password is right and the user may sign in"`
	Reason             string `json:"reason,omitempty" doc:"Why not: invalid_credentials, or, if the password was right, locked, disabled, resigned, invalid_otp or otp_blocked (too many codes were wrong)"`
	UserID             string `json:"user_id,omitempty" doc:"Whose it is"`
	MustChangePassword *bool  `json:"must_change_password,omitempty" doc:"Whether a new password is due first"`
	MFARequired        *bool  `json:"mfa_required,omitempty" doc:"Whether a second factor is due. With app_id: whether the application demands one of this user that was not given yet, perhaps of a user who has to set one up first. Without it: whether the user has one"`
	// Methods are omitted if there are none.
	Methods []string `json:"methods,omitempty" enum:"otp,webauthn" doc:"The types of the user's second factors; with app_id, those of which one is due" example:"[\"otp\"]"`
}

// Credentials are what somebody has given to a program of the tenant.
type Credentials struct {
	LoginName string `json:"login_name" maxLength:"256" doc:"Username, email or mobile" example:"li.wei"`
	Password  string `json:"password" writeOnly:"true" maxLength:"1024" doc:"As the person typed it"`
	AppID     string `json:"app_id,omitempty" maxLength:"64" doc:"The application that the person wants to enter: mfa_required then says whether that demands a second factor" example:"1048577"`
	OTP       string `json:"otp,omitempty" writeOnly:"true" maxLength:"64" doc:"A code of the user's authenticator app. It is looked at once the password is right, and works once"`
}

// The reasons of a refusal.
const (
	invalidCredentials = "invalid_credentials"
	locked             = "locked"
	disabled           = "disabled"
	resigned           = "resigned"
)

// refusal is the reason why a user may not sign in; "" if they may.
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

// refusalWhenKnown is refusal for a known browser: the wrong passwords of strangers do not lock it.
func refusalWhenKnown(u *User) string {
	if reason := refusal(u); reason != locked || u.LockReason != questions.LockedByFailures {
		return reason
	}
	return ""
}

// knownBrowser is the id of the browser if the user has signed in with it before; "" otherwise.
func knownBrowser(b questions.Browser, userID string) string {
	if slices.Contains(b.KnownTo, userID) {
		return b.ID
	}
	return ""
}

// VerifyLogin checks a login name (username, email or mobile) and its password, and a code of an authenticator app if
// one is given. A refusal is an answer, not an error. It gives the true reason only if the password is right, and takes
// as long for an unknown name. A wrong password is counted in a dry run, too. The error is apperr.InvalidParameters (no
// such application), or Unavailable.
func (s *Users) VerifyLogin(ctx context.Context, given Credentials) (Verification, error) {
	login, err := s.SignIn(ctx, given.LoginName, given.Password, questions.Browser{})
	if err != nil || !login.Verified {
		return login.Verification, err
	}
	v := login.Verification
	if given.AppID != "" || given.OTP != "" {
		return s.secondStep(ctx, login, given)
	}
	v.Methods, err = s.factorTypes(ctx, v.UserID)
	required := len(v.Methods) > 0
	v.MFARequired = &required
	return v, err
}

// secondStep finds out what is due after a right password.
func (s *Users) secondStep(ctx context.Context, login Login, given Credentials) (Verification, error) {
	v := login.Verification
	record, err := login.Doc.JSON()
	if err != nil {
		return Verification{}, err
	}
	due, err := questions.WhatIsDue.Ask(ctx, s.Bus, questions.SecondStep{
		UserID: v.UserID, AppID: given.AppID, Code: given.OTP, User: record,
	})
	if apperr.IsNotFound(err) {
		err = apperr.Invalid("app_id", "must be an application that is enabled")
	}
	if err != nil {
		return Verification{}, err
	}
	if due.Refused != "" {
		return Verification{Reason: due.Refused}, nil
	}
	v.MFARequired, v.Methods = &due.Required, due.Methods
	return v, nil
}

// Login is a Verification and, if it is Verified, the user's record with this login.
type Login struct {
	Verification
	Doc Doc
}

// SignIn is VerifyLogin for those who need the record too, and know the browser.
func (s *Users) SignIn(ctx context.Context, loginName, secret string, from questions.Browser) (Login, error) {
	refused := Login{Verification: Verification{Reason: invalidCredentials}}
	doc, err := s.byLogin(ctx, s.Store, loginName)
	if apperr.IsNotFound(err) {
		return refused, s.refuseNobody(ctx, secret)
	}
	if err != nil {
		return Login{}, err
	}
	u, err := doc.Value()
	if err != nil {
		return Login{}, err
	}
	a, err := findAccount(ctx, s.Store, u.ID)
	if err != nil {
		return Login{}, err
	}
	ok, rehash, err := s.verify(ctx, a.Password, secret)
	if err != nil {
		return Login{}, err
	}
	browser := knownBrowser(from, u.ID)
	if !ok || s.exhausted(u, a, browser, s.Store.Now()) {
		_, err := s.countFailure(docstore.Guarding(ctx), doc.ID, browser)
		return refused, err
	}
	hash := ""
	if rehash {
		if hash, err = s.Hasher.Hash(ctx, secret); err != nil {
			return Login{}, err
		}
	}
	v, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Login, error) {
		return s.signIn(ctx, tx, doc.ID, browser, a.Password, hash)
	})
	if err == nil && v.Reason == invalidCredentials { // as after a wrong password, so that nobody can tell them apart
		_, err = s.countFailure(docstore.Guarding(ctx), doc.ID, browser)
	}
	return v, err
}

// signIn notes a login with the right password, if the user may sign in. Otherwise it returns the reason, unless there
// were too many wrong passwords: the right one must not be found by continuing to guess while the user is locked.
func (s *Users) signIn(ctx context.Context, tx *docstore.Tx, id, browser, verified, rehashed string) (Login, error) {
	u, err := s.load(ctx, tx, id)
	if apperr.IsNotFound(err) {
		return Login{Verification: Verification{Reason: invalidCredentials}}, nil
	}
	if err != nil {
		return Login{}, err
	}
	a, err := findAccount(ctx, tx, id)
	if err != nil {
		return Login{}, err
	}
	// the password was changed since it was read, or there were too many guesses
	if a.Password != verified || s.exhausted(u, a, browser, tx.Now) {
		return Login{Verification: Verification{Reason: invalidCredentials}}, nil
	}
	reason := refusal(u)
	if browser != "" {
		reason = refusalWhenKnown(u)
	}
	if reason != "" {
		return Login{Verification: Verification{Reason: reason}}, nil
	}
	if a.hasFailures(browser) || rehashed != "" {
		if err := editAccount(ctx, tx, id, func(a *account) error {
			a.forgetFailures(browser)
			if rehashed != "" {
				a.Password = rehashed
			}
			return nil
		}); err != nil {
			return Login{}, err
		}
	}
	u.TimeLastLogin = tx.Now
	// A login is no change of what the record says of the person: who edits it is not disturbed (If-Match), and
	// applications see no new updated_at (OpenID Connect Core §5.1).
	now, err := users.As("login_verified").Recount(ctx, tx, u)
	if err != nil {
		return Login{}, err
	}
	return Login{Verification{Verified: true, UserID: id, MustChangePassword: &u.MustChangePassword}, now}, nil
}

// exhausted reports whether a user is locked and has had as many wrong passwords as lock a user, or a known browser
// has. The right password is then answered like a wrong one, so that it cannot be found by continuing to guess.
func (s *Users) exhausted(u *User, a *account, browser string, now clock.Time) bool {
	if browser != "" {
		return len(a.failuresFrom(browser, now, s.Lockout)) >= s.Lockout.Failures
	}
	return u.Locked && len(a.failures(now, s.Lockout)) >= s.Lockout.Failures
}

// countFailure notes a wrong password and locks the user after too many. It returns the reason why the user could not
// have signed in with the right one. For a locked user it counts no further than the limit, so that more guesses do not
// prolong the lock. Wrong passwords from a known browser count for it alone, and lock nobody.
func (s *Users) countFailure(ctx context.Context, id, browser string) (reason string, err error) {
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
			if browser != "" {
				a.failFrom(browser, tx.Now, s.Lockout)
				return nil
			}
			tooMany = a.fail(tx.Now, s.Lockout) && !u.Locked
			if tooMany {
				a.FailedLogins = nil // the count starts again
			}
			return nil
		}); err != nil {
			return "", err
		}
		if _, err := users.As("login_failed").Revise(ctx, tx, u); err != nil || !tooMany {
			return reason, err
		}
		u.lock(questions.LockedByFailures, tx.Now.Add(s.Lockout.For))
		_, err = users.As("locked").Replace(ctx, tx, u)
		return reason, err
	})
}

// refuseNobody does for an unknown name what a wrong password costs: the same reads, hash and writes, in the same
// order. Their cost in the store shows in the time of an answer, as the cost of the hash does.
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

// nobodies is the number of accounts for unknown names. They are many, so that logins with unknown names do not wait
// for each other.
const nobodies = 64

// countNobody does what countFailure does, on an account for unknown names. Two more accounts take the place of the
// user's record and the event.
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
