package factor

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// ErrTooMany says that a user has as many factors of a type as can be.
var ErrTooMany = apperr.New(apperr.InvalidState, "the user has %d factors of this type already", MaxFactors)

// ErrShowFirst says that a user has a factor, which was not shown.
var ErrShowFirst = apperr.New(apperr.InvalidState, "the user has a factor, which has to be shown first")

// HasNone returns ErrShowFirst if a user has a factor.
func HasNone(ctx context.Context, tx *docstore.Tx, userID string) error {
	set, err := load(ctx, tx, userID)
	if err == nil && len(set.Secrets) > 0 {
		err = ErrShowFirst
	}
	return err
}

// NewApp is an authenticator app that a person sets up.
type NewApp struct {
	// ID and CodesID are new ids (docstore.Store.NewIDs), for the app and for recovery codes.
	ID, CodesID string
	UserID      string
	Key         AppKey
	Step        int64 // of the code that has shown that the app works; it does not serve again
	Name        string
	From        From
}

// Add adds an authenticator app, in the transaction that stores what follows. With the first factor come recovery
// codes, which are returned here and nowhere else. The error is ErrTooMany.
func (s *Factors) Add(ctx context.Context, tx *docstore.Tx, in NewApp) (proof.Proof, []string, error) {
	one := sealed{ID: in.ID, Type: proof.App, Step: in.Step, Codes: in.Key.Codes}
	codes, err := s.add(ctx, tx, one, in.Key.Key, in.CodesID, &Factor{UserID: in.UserID, Name: Name(in.Name)}, in.From)
	return proof.ByApp(tx.Now, in.ID, tx.Now), codes, err
}

func (s *Factors) add(ctx context.Context, tx *docstore.Tx, one sealed, text, codesID string, f *Factor, from From) (
	codes []string, err error,
) {
	set, err := load(ctx, tx, f.UserID)
	if err != nil {
		return nil, err
	}
	isNew, same := len(set.Secrets) == 0, 0
	for _, other := range set.Secrets {
		if other.Type == one.Type {
			same++
		}
	}
	if same >= MaxFactors {
		return nil, ErrTooMany
	}
	set.ID, one.TimeSet = f.UserID, tx.Now
	one.Sealed = s.Keys.Seal([]byte(text), s.boundTo(ctx, f.UserID, one.ID))
	set.Secrets = append(set.Secrets, one)
	f.Meta, f.Type = docstore.Meta{ID: one.ID}, one.Type
	f.from(from)
	if _, err := factors.Insert(ctx, tx, f); err != nil {
		return nil, err
	}
	if !set.has(proof.RecoveryCode) {
		if codes, err = s.addCodes(ctx, tx, set, codesID, from); err != nil {
			return nil, err
		}
	}
	if isNew {
		_, err = sets.Insert(ctx, tx, set)
	} else {
		_, err = sets.Replace(ctx, tx, set)
	}
	return codes, err
}

// addCodes adds recovery codes to a set that is not stored yet.
func (s *Factors) addCodes(ctx context.Context, tx *docstore.Tx, set *Set, id string, from From) ([]string, error) {
	codes := make([]string, RecoveryCodes)
	for i := range codes {
		codes[i] = message.NewCode(codeSigns)
	}
	one := sealed{ID: id, Type: proof.RecoveryCode, TimeSet: tx.Now}
	var err error
	if one.Sealed, err = s.seal(ctx, set.ID, &one, codes); err != nil {
		return nil, err
	}
	set.Secrets = append(set.Secrets, one)
	f := &Factor{Meta: docstore.Meta{ID: id}, UserID: set.ID, Type: proof.RecoveryCode, CodesLeft: RecoveryCodes}
	f.from(from)
	_, err = factors.Insert(ctx, tx, f)
	for i, code := range codes {
		codes[i] = message.Grouped(code)
	}
	return codes, err
}

// ErrNone says that a user has no second factor.
var ErrNone = apperr.New(apperr.InvalidState, "the user has no second factor")

// RenewCodes gives a user new recovery codes; the former ones end. It is part of a transaction; id is a new id. The
// error is ErrNone.
func (s *Factors) RenewCodes(ctx context.Context, tx *docstore.Tx, id, userID string, from From) ([]string, error) {
	set, err := load(ctx, tx, userID)
	if err != nil {
		return nil, err
	}
	if len(set.Secrets) == 0 {
		return nil, ErrNone
	}
	for _, one := range set.Secrets {
		if one.Type == proof.RecoveryCode {
			if err := remove(ctx, tx, set, one.ID); err != nil {
				return nil, err
			}
		}
	}
	codes, err := s.addCodes(ctx, tx, set, id, from)
	if err != nil {
		return nil, err
	}
	_, err = sets.Replace(ctx, tx, set)
	return codes, err
}

// NewCodes is RenewCodes in a transaction of its own.
func (s *Factors) NewCodes(ctx context.Context, userID string, from From) ([]string, error) {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return nil, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) ([]string, error) {
		return s.RenewCodes(ctx, tx, id, userID, from)
	})
}

// remove deletes a factor, and takes its secret out of a set that is stored afterwards.
func remove(ctx context.Context, tx *docstore.Tx, set *Set, id string) error {
	f, err := factors.Load(ctx, tx, id)
	if err != nil {
		return err
	}
	set.Secrets = slices.DeleteFunc(slices.Clone(set.Secrets), func(one sealed) bool { return one.ID == id })
	_, err = factors.Delete(ctx, tx, f)
	return err
}

// ErrLastPasskey says that a passkey is the last one by which its user can sign in.
var ErrLastPasskey = apperr.New(apperr.InvalidState, "the user has no password, and no other passkey")

// Delete deletes a factor; with the last one go the recovery codes. userID, if not empty, is whose it must be. What
// rests on the factor ends by the event. The error is apperr.NotFound or VersionMismatch.
func (s *Factors) Delete(ctx context.Context, id, userID string) (docstore.Deleted, error) {
	return s.delete(ctx, id, userID, func(*Set) error { return nil })
}

// DeleteOther is Delete for a user who has no password: the last passkey of a site stays. The error may be
// ErrLastPasskey.
func (s *Factors) DeleteOther(ctx context.Context, id, userID string, at Site) (docstore.Deleted, error) {
	return s.delete(ctx, id, userID, func(set *Set) error {
		isPasskey := func(one sealed) bool { return one.Type == proof.Passkey && one.Site == at.ID }
		if slices.ContainsFunc(set.Secrets, func(one sealed) bool { return isPasskey(one) && one.ID == id }) &&
			!slices.ContainsFunc(set.Secrets, func(one sealed) bool { return isPasskey(one) && one.ID != id }) {
			return ErrLastPasskey
		}
		return nil
	})
}

func (s *Factors) delete(ctx context.Context, id, userID string, may func(*Set) error) (docstore.Deleted, error) {
	return docstore.Deleted{ID: id}, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		f, err := factors.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if userID != "" && f.UserID != userID {
			return apperr.Missing("factor")
		}
		set, err := load(ctx, tx, f.UserID)
		if err != nil {
			return err
		}
		if err := may(set); err != nil {
			return err
		}
		if _, err := factors.Delete(ctx, tx, f); err != nil {
			return err
		}
		set.Secrets = slices.DeleteFunc(slices.Clone(set.Secrets), func(one sealed) bool { return one.ID == id })
		if len(set.Secrets) == 1 && set.has(proof.RecoveryCode) {
			if err := remove(ctx, tx, set, set.Secrets[0].ID); err != nil {
				return err
			}
		}
		if len(set.Secrets) == 0 {
			_, err = sets.Delete(ctx, tx, set)
		} else {
			_, err = sets.Replace(ctx, tx, set)
		}
		return err
	})
}

// Forget deletes all factors of a user who is deleted.
func Forget(ctx context.Context, tx *docstore.Tx, userID string) error {
	if err := forgetPostponed(ctx, tx, userID); err != nil {
		return err
	}
	found, err := sets.LoadMany(ctx, tx, []string{userID})
	if err != nil || len(found) == 0 {
		return err
	}
	if err := factors.DeleteWhere(ctx, tx, docstore.Eq(byUser, docstore.Text(userID))); err != nil {
		return err
	}
	_, err = sets.Delete(ctx, tx, found[0])
	return err
}
