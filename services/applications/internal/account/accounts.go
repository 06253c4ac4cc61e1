package account

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// Accounts are the use cases.
type Accounts struct {
	Store *docstore.Store
	Bus   *bus.Bus // for questions about users
}

// Create adds a sub-account. A user's first one in an application is the default, and so is a later one with
// is_default. It asks the users service. The error is apperr.NotFound (the application), InvalidParameters (no such
// user), AlreadyExists (the account, or the user if the application allows one each) or Unavailable.
func (s *Accounts) Create(ctx context.Context, appID string, draft Account) (Doc, error) {
	at := func(int) string { return "" }
	return create(ctx, s, appID, []Account{draft}, at, func(docs []Doc) (Doc, error) { return docs[0], nil })
}

// CreateMany is Create for several sub-accounts, all or none. Faults are located at items[n].
func (s *Accounts) CreateMany(ctx context.Context, appID string, drafts []Account) (docstore.Batch, error) {
	at := func(i int) string { return apperr.Item("items", i) }
	return create(ctx, s, appID, drafts, at, docstore.BatchOf[Doc])
}

// create adds sub-accounts. answer turns the stored documents into the result.
func create[R any](
	ctx context.Context, s *Accounts, appID string, drafts []Account, at func(int) string,
	answer func([]Doc) (R, error),
) (R, error) {
	var none R
	if _, err := application.Find(ctx, s.Store, appID); err != nil {
		return none, err
	}
	var faults apperr.Faults
	for i := range drafts {
		drafts[i].check(faults.Within(at(i)))
	}
	if err := faults.Err(); err != nil {
		return none, err
	}
	if err := s.checkUsers(ctx, drafts, at); err != nil {
		return none, err
	}
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return none, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		docs, err := insert(ctx, tx, appID, ids, drafts, at)
		if err != nil {
			return none, err
		}
		return answer(docs)
	})
}

func insert(
	ctx context.Context, tx *docstore.Tx, appID string, ids []string, drafts []Account, at func(int) string,
) ([]Doc, error) {
	app, err := application.Find(ctx, tx, appID)
	if err != nil {
		return nil, err
	}
	if err := readAhead(ctx, tx, appID, drafts); err != nil {
		return nil, err
	}
	added := make([]*Account, len(drafts))
	defaults := map[string]*Account{} // of the new sub-accounts, by user
	for i, draft := range drafts {
		a := &Account{Meta: docstore.Meta{ID: ids[i]}, AppID: appID, UserID: draft.UserID, Profile: draft.Profile}
		first, err := countNew(ctx, tx, app, a, at(i))
		if err != nil {
			return nil, err
		}
		switch {
		case first:
			a.IsDefault = toggle.On
		case a.IsDefault != toggle.On:
			a.IsDefault = toggle.Off
		case defaults[a.UserID] != nil:
			defaults[a.UserID].IsDefault = toggle.Off
		default:
			if err := clearDefault(ctx, tx, appID, a.UserID); err != nil {
				return nil, err
			}
		}
		if added[i] = a; a.IsDefault == toggle.On {
			defaults[a.UserID] = a
		}
	}
	return accounts.InsertMany(ctx, tx, at, added...)
}

// readAhead reads what says whether users may have more sub-accounts.
func readAhead(ctx context.Context, tx *docstore.Tx, appID string, drafts []Account) error {
	if len(drafts) < 2 {
		return nil
	}
	users, held := make([]string, len(drafts)), make([]string, len(drafts))
	for i := range drafts {
		users[i], held[i] = drafts[i].UserID, holderID(appID, drafts[i].UserID)
	}
	if err := departures.ReadAhead(ctx, tx, users...); err != nil {
		return err
	}
	return holders.ReadAhead(ctx, tx, held...)
}

// checkUsers asks whether the drafts' users exist.
func (s *Accounts) checkUsers(ctx context.Context, drafts []Account, at func(int) string) error {
	var ids []string
	for i := range drafts {
		ids = append(ids, drafts[i].UserID)
	}
	slices.Sort(ids)
	answer, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: slices.Compact(ids)})
	if err != nil {
		return err
	}
	var faults apperr.Faults
	for i := range drafts {
		faults.Check(slices.Contains(answer.IDs, drafts[i].UserID), apperr.Below(at(i), "user_id"), "is not a user")
	}
	return faults.Err()
}

// countNew counts a new sub-account, if the user may have it, and reports whether it is the user's first.
func countNew(
	ctx context.Context, tx *docstore.Tx, app *application.Application, a *Account, at string,
) (first bool, err error) {
	gone, err := isGone(ctx, tx, a.UserID)
	if err != nil {
		return false, err
	}
	if gone {
		return false, apperr.Invalid(apperr.Below(at, "user_id"), "is not a user")
	}
	others, err := count(ctx, tx, a.AppID, a.UserID, 1)
	if err == nil && others > 0 && app.MultiAccountEnabled != toggle.On {
		err = apperr.Taken(apperr.Below(at, "user_id"))
	}
	return others == 0, err
}

// count changes the number of a user's sub-accounts and returns the previous number.
func count(ctx context.Context, tx *docstore.Tx, appID, userID string, more int64) (before int64, err error) {
	id := holderID(appID, userID)
	found, err := holders.LoadMany(ctx, tx, []string{id})
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0:
		_, err = holders.Insert(ctx, tx, &holder{Meta: docstore.Meta{ID: id}, AppID: appID, Accounts: more})
		return 0, err
	}
	h := found[0]
	before = h.Accounts
	if h.Accounts += more; h.Accounts == 0 {
		_, err = holders.Delete(ctx, tx, h)
	} else {
		_, err = holders.Replace(ctx, tx, h)
	}
	return before, err
}

// clearDefault makes the user's default sub-account an ordinary one.
func clearDefault(ctx context.Context, tx *docstore.Tx, appID, userID string) error {
	found, err := accounts.LoadWhere(ctx, tx, docstore.Eq(byDefault, docstore.Text(within(appID, userID))), "", 1)
	if err != nil || len(found) == 0 {
		return err
	}
	found[0].IsDefault = toggle.Off
	_, err = accounts.Replace(ctx, tx, found[0])
	return err
}

// Get returns a sub-account. The error is apperr.NotFound, also if it belongs to another application.
func (s *Accounts) Get(ctx context.Context, appID, id string) (Doc, error) {
	doc, err := accounts.Find(ctx, s.Store, id)
	if err != nil {
		return Doc{}, err
	}
	a, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	if a.AppID != appID {
		return Doc{}, apperr.Missing("sub-account")
	}
	if _, err := application.Find(ctx, s.Store, appID); err != nil {
		return Doc{}, err // it is being deleted
	}
	return doc, nil
}

// load returns a sub-account of an application, to be changed.
func load(ctx context.Context, tx *docstore.Tx, appID, id string) (*Account, error) {
	if _, err := application.Find(ctx, tx, appID); err != nil {
		return nil, err
	}
	a, err := accounts.Load(ctx, tx, id)
	if err == nil && a.AppID != appID {
		err = apperr.Missing("sub-account")
	}
	return a, err
}

// Replace replaces the editable members of a sub-account. An absent status or is_default stays as it is. The error is
// apperr.NotFound, InvalidParameters, AlreadyExists or VersionMismatch.
func (s *Accounts) Replace(ctx context.Context, appID, id string, draft Account) (Doc, error) {
	var faults apperr.Faults
	status := draft.Status
	draft.check(&faults)
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		a, err := load(ctx, tx, appID, id)
		if err != nil {
			return Doc{}, err
		}
		is := draft.Profile
		if is.Status = status; status == "" {
			is.Status = a.Status
		}
		if is.IsDefault == "" {
			is.IsDefault = a.IsDefault
		}
		var faults apperr.Faults
		faults.Check(draft.UserID == a.UserID, "user_id", "can't be changed")
		faults.Check(is.Status == a.Status, "status", "is changed by enable and disable only")
		faults.Check(is.IsDefault >= a.IsDefault, "is_default", "ends when another sub-account becomes the default")
		if err := faults.Err(); err != nil {
			return Doc{}, err
		}
		if is.IsDefault > a.IsDefault {
			if err := clearDefault(ctx, tx, appID, a.UserID); err != nil {
				return Doc{}, err
			}
		}
		a.Profile = is
		return accounts.Replace(ctx, tx, a)
	})
}

// Enable lets a sub-account be used. The error is apperr.NotFound or VersionMismatch.
func (s *Accounts) Enable(ctx context.Context, appID, id string) error {
	return s.setStatus(ctx, appID, id, toggle.On, "enabled")
}

// Disable keeps a sub-account from being used. The error is apperr.NotFound or VersionMismatch.
func (s *Accounts) Disable(ctx context.Context, appID, id string) error {
	return s.setStatus(ctx, appID, id, toggle.Off, "disabled")
}

func (s *Accounts) setStatus(ctx context.Context, appID, id, status, action string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, appID, id)
		if err != nil {
			return err
		}
		a.Status = status
		_, err = accounts.As(action).Replace(ctx, tx, a)
		return err
	})
}

// Delete deletes a sub-account. If it was the default, the oldest of the user's others becomes the default. The error
// is apperr.NotFound or VersionMismatch.
func (s *Accounts) Delete(ctx context.Context, appID, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, appID, id)
		if err != nil {
			return err
		}
		return remove(ctx, tx, a)
	})
}

func remove(ctx context.Context, tx *docstore.Tx, a *Account) error {
	if _, err := accounts.Delete(ctx, tx, a); err != nil {
		return err
	}
	before, err := count(ctx, tx, a.AppID, a.UserID, -1)
	if err != nil || before < 2 || a.IsDefault != toggle.On {
		return err
	}
	rest, err := accounts.LoadWhere(ctx, tx, docstore.Eq(byHolder, docstore.Text(within(a.AppID, a.UserID))),
		byTimeCreated, 1)
	if err != nil || len(rest) == 0 {
		return err
	}
	rest[0].IsDefault = toggle.On
	_, err = accounts.Replace(ctx, tx, rest[0])
	return err
}
