package account

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
)

const atOnce = 500 // the most sub-accounts that one transaction deletes

// HaveSeveral counts the users who have several sub-accounts of an application.
func HaveSeveral(ctx context.Context, tx *docstore.Tx, appID string) (int64, error) {
	return holders.Count(ctx, tx, docstore.Eq(bySeveral, docstore.Text(appID)))
}

// DeleteOf deletes sub-accounts of an application in the transaction that deletes the application. If there are many,
// Finish deletes the rest.
func DeleteOf(ctx context.Context, tx *docstore.Tx, appID string) error {
	more, err := deleteSome(ctx, tx, ofApplication(appID))
	if err == nil && more {
		_, err = remainders.Insert(ctx, tx, &remainder{docstore.Meta{ID: appID}})
	}
	return err
}

// deleteSome deletes sub-accounts of a deleted application or user, and reports whether there may be more.
func deleteSome(ctx context.Context, tx *docstore.Tx, all docstore.Filter) (more bool, err error) {
	loaded, err := accounts.LoadWhere(ctx, tx, all, "", atOnce)
	if err != nil {
		return false, err
	}
	var held []string
	for _, a := range loaded {
		if _, err := accounts.Delete(ctx, tx, a); err != nil {
			return false, err
		}
		held = append(held, holderID(a.AppID, a.UserID))
	}
	return len(loaded) == atOnce, holders.DeleteWhere(ctx, tx, docstore.ID(held...), nil)
}

// DueRemainders lists deleted applications that still have sub-accounts.
func DueRemainders(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return remainders.Due(ctx, s, limit)
}

// Finish deletes the rest of a deleted application's sub-accounts.
func (s *Accounts) Finish(ctx context.Context, appID string) error {
	for more := true; more; {
		var err error
		more, err = docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (bool, error) {
			r, err := remainders.Load(ctx, tx, appID)
			if err != nil {
				return false, err
			}
			more, err := deleteSome(ctx, tx, ofApplication(appID))
			if err == nil && !more {
				_, err = remainders.Delete(ctx, tx, r)
			}
			return more, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// OnUser handles an event of the users service: the sub-accounts of a user who leaves are deleted.
func (s *Accounts) OnUser(ctx context.Context, e stream.Event) error {
	gone := !strings.HasSuffix(e.Type, ".reinstated")
	if counts, err := s.note(ctx, e, gone); err != nil || !counts || !gone {
		return err
	}
	for more := true; more; {
		var err error
		more, err = docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (bool, error) {
			return deleteSome(ctx, tx, docstore.Eq(byUser, docstore.Text(e.Subject)))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// note records an event about a user who leaves or returns. It returns false if a later event was recorded before.
func (s *Accounts) note(ctx context.Context, e stream.Event, gone bool) (bool, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (bool, error) {
		known, err := departures.LoadMany(ctx, tx, []string{e.Subject})
		if err != nil {
			return false, err
		}
		if len(known) == 0 {
			_, err := departures.Insert(ctx, tx, &departure{docstore.Meta{ID: e.Subject}, e.Sequence, gone})
			return true, err
		}
		d := known[0]
		if d.Sequence > e.Sequence {
			return false, nil
		}
		d.Sequence, d.Gone = e.Sequence, gone
		_, err = departures.Replace(ctx, tx, d)
		return true, err
	})
}

// isGone reports whether the user is recorded as gone.
func isGone(ctx context.Context, tx *docstore.Tx, userID string) (bool, error) {
	doc, err := departures.Find(ctx, tx, userID)
	if apperr.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d, err := doc.Value()
	return err == nil && d.Gone, err
}
