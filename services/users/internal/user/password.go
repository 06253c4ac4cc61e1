package user

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/users/internal/password"
)

// ResetPassword gives the user a new password, which must be changed at the next sign-in. If it is empty, one is
// generated, and only then the answer contains it. The error is apperr.NotFound, InvalidParameters (too weak, or used
// before), RateLimited (too many resets that changed nothing), or one of MayTakeOver.
func (s *Users) ResetPassword(ctx context.Context, id, newPassword string) (PasswordReset, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return PasswordReset{}, err
	}
	u, err := doc.Value()
	if err == nil {
		err = MayTakeOver(ctx, s.Bus, id)
	}
	if err != nil {
		return PasswordReset{}, err
	}
	answer := PasswordReset{}
	if newPassword == "" {
		answer.Password = password.Generate(u.Username)
		newPassword = answer.Password
	} else if err := checkNewPassword(newPassword, u); err != nil {
		return PasswordReset{}, err
	} else if err := s.countResetTry(docstore.Guarding(ctx), id); err != nil {
		return PasswordReset{}, err
	}
	hash, err := s.newHashOf(ctx, u, newPassword)
	if err != nil {
		return PasswordReset{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (PasswordReset, error) {
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return PasswordReset{}, err
		}
		return answer, s.setPassword(ctx, tx, u, hash, true)
	})
}

// PasswordReset is the answer to a reset. It has a Password only if that was generated.
type PasswordReset struct {
	Password string `json:"password,omitempty" format:"password" doc:"The new password if it was made up; shown once"`
}

// PasswordResets is the answer to a batch reset.
type PasswordResets struct {
	Items []UserPassword `json:"items" doc:"In the order of the request"`
}

// UserPassword is a user's new password.
type UserPassword struct {
	ID       string `json:"id" doc:"The id of the user"`
	Password string `json:"password" format:"password" doc:"The new password; shown once"`
}

// ResetPasswords generates new passwords for all users or none. An unknown user, or one that is given twice, is a fault
// at ids[i]. The error is apperr.InvalidParameters, or one of MayTakeOver.
func (s *Users) ResetPasswords(ctx context.Context, ids []string) (PasswordResets, error) {
	found, err := users.FindMany(ctx, s.Store, ids)
	if err != nil {
		return PasswordResets{}, err
	}
	usernames := map[string]string{}
	for i := range found {
		u, err := found[i].Value()
		if err != nil {
			return PasswordResets{}, err
		}
		usernames[u.ID] = u.Username
	}
	var faults apperr.Faults
	for i, id := range ids {
		location := apperr.Item("ids", i)
		faults.Check(usernames[id] != "", location, "is not a user")
		// its first password would never be valid
		faults.Check(!slices.Contains(ids[:i], id), location, "is given twice")
	}
	if err := faults.Err(); err != nil {
		return PasswordResets{}, err
	}
	refusals, err := s.mayTakeOver(ctx, ids)
	if err != nil {
		return PasswordResets{}, err
	}
	for _, refusal := range refusals {
		if refusal != nil {
			return PasswordResets{}, refusal
		}
	}
	answer := PasswordResets{Items: make([]UserPassword, len(ids))}
	hashes := make([]string, len(ids))
	group, hashing := errgroup.WithContext(ctx)
	group.SetLimit(s.Hasher.Concurrency())
	for i, id := range ids {
		answer.Items[i] = UserPassword{id, password.Generate(usernames[id])}
		group.Go(func() (err error) {
			hashes[i], err = s.Hasher.Hash(hashing, answer.Items[i].Password)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return PasswordResets{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (PasswordResets, error) {
		if err := readAhead(ctx, tx, ids); err != nil {
			return PasswordResets{}, err
		}
		for i, id := range ids {
			u, err := s.load(ctx, tx, id)
			if err == nil {
				err = s.setPassword(ctx, tx, u, hashes[i], true)
			}
			if apperr.IsNotFound(err) { // deleted meanwhile
				err = apperr.Invalid(apperr.Item("ids", i), "is not a user")
			}
			if err != nil {
				return PasswordResets{}, err
			}
		}
		return answer, nil
	})
}

// ChangePassword is for users who know their old password. A wrong one counts as a failed login, in a dry run, too, and
// is a fault at old_password. The error is apperr.NotFound, InvalidParameters or InvalidState (a user who could not
// sign in with any password).
func (s *Users) ChangePassword(ctx context.Context, id, oldPassword, newPassword string) error {
	if _, err := s.signable(ctx, id, refusal); err != nil {
		return err
	}
	a, err := findAccount(ctx, s.Store, id)
	if err != nil {
		return err
	}
	ok, _, err := s.verify(ctx, a.Password, oldPassword)
	if err != nil {
		return err
	}
	if !ok {
		reason, err := s.countFailure(docstore.Guarding(ctx), id, "")
		if err != nil {
			return err
		}
		if reason != "" {
			return errCannotSignIn(reason)
		}
		return apperr.Invalid("old_password", "is wrong")
	}
	// A user who was locked while the password was being checked must not learn that it was right.
	u, err := s.signable(ctx, id, refusal)
	if err != nil {
		return err
	}
	if err := checkNewPassword(newPassword, u); err != nil {
		return err
	}
	hash, err := s.newHashOf(ctx, u, newPassword)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		if now, err := findAccount(ctx, tx, id); err != nil {
			return err
		} else if now.Password != a.Password {
			return apperr.New(apperr.VersionMismatch, "the password was changed meanwhile")
		}
		u, err := s.load(ctx, tx, id)
		if err != nil {
			return err
		}
		if reason := refusal(u); reason != "" {
			return errCannotSignIn(reason)
		}
		return s.setPassword(ctx, tx, u, hash, false)
	})
}

// signable returns a user who may sign in. The error is apperr.NotFound or InvalidState.
func (s *Users) signable(ctx context.Context, id string, refusal func(*User) string) (*User, error) {
	doc, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	u, err := doc.Value()
	if err != nil {
		return nil, err
	}
	if reason := refusal(u); reason != "" {
		return nil, errCannotSignIn(reason)
	}
	return u, nil
}

func errCannotSignIn(reason string) error {
	return apperr.New(apperr.InvalidState, "the user is %s", reason)
}

// countResetTry counts a password that is about to be compared with the user's passwords. A reset that changes nothing,
// because it is a dry run or its If-Match fails, still tells whether the password is one of them. A reset that changes
// something restarts the count. The error is apperr.RateLimited.
func (s *Users) countResetTry(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		return editAccount(ctx, tx, id, func(a *account) error {
			a.ResetTries = s.Lockout.recent(a.ResetTries, tx.Now)
			if len(a.ResetTries) >= s.Lockout.Failures {
				e := apperr.New(apperr.RateLimited, "too many resets of this password changed nothing")
				e.RetryAfter = a.ResetTries[0].Add(s.Lockout.Within).Sub(tx.Now)
				return e
			}
			a.ResetTries = append(a.ResetTries, tx.Now)
			return nil
		})
	})
}

func checkNewPassword(newPassword string, u *User) error {
	var faults apperr.Faults
	checkPassword(&faults, "new_password", newPassword, u.Username)
	return faults.Err()
}

// newHashOf hashes a new password of a user, unless it was used before.
func (s *Users) newHashOf(ctx context.Context, u *User, newPassword string) (string, error) {
	a, err := findAccount(ctx, s.Store, u.ID)
	if err != nil {
		return "", err
	}
	return s.newHash(ctx, append([]string{a.Password}, a.OldPasswords...), "new_password", newPassword)
}

// newHash hashes a new password, unless it is a former one. The error is apperr.InvalidParameters at the location.
func (s *Users) newHash(ctx context.Context, former []string, location, newPassword string) (string, error) {
	for _, old := range former {
		if old == "" {
			continue
		}
		used, _, err := s.Hasher.Verify(ctx, old, newPassword)
		if err != nil {
			return "", err
		}
		if used {
			return "", apperr.Invalid(location, "must not be one of the last %d passwords", keptPasswords)
		}
	}
	return s.Hasher.Hash(ctx, newPassword)
}

func (s *Users) setPassword(ctx context.Context, tx *docstore.Tx, u *User, hash string, mustChange bool) error {
	if err := editAccount(ctx, tx, u.ID, func(a *account) error {
		a.setPassword(hash)
		return nil
	}); err != nil {
		return err
	}
	_, err := passwordSet(ctx, tx, u, mustChange)
	return err
}

func passwordSet(ctx context.Context, tx *docstore.Tx, u *User, mustChange bool) (Doc, error) {
	u.PasswordSet, u.MustChangePassword, u.TimePasswordChanged = true, mustChange, tx.Now
	return users.As("password_changed").Touch(ctx, tx, u)
}

func checkPassword(faults *apperr.Faults, location, newPassword, username string) {
	for _, reason := range password.Check(newPassword, username) {
		faults.Add(location, "%s", reason)
	}
}
