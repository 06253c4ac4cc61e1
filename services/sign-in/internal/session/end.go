package session

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// endAtOnce is how many sessions end in one transaction.
const endAtOnce = 50

// end ends a session: its key is gone, the protocols know, an event tells.
func (s *Sessions) end(ctx context.Context, tx *docstore.Tx, session *Session, reason string) error {
	k, err := keys.Load(ctx, tx, session.ID)
	if err != nil {
		return err
	}
	if _, err := keys.Delete(ctx, tx, k); err != nil {
		return err
	}
	if s.Ended != nil {
		if err := s.Ended(ctx, tx, session); err != nil {
			return err
		}
	}
	_, err = sessions.As("ended").With("reason", reason).Delete(ctx, tx, session)
	return err
}

// End ends a session. The error is apperr.NotFound or VersionMismatch.
func (s *Sessions) End(ctx context.Context, id, reason string) (docstore.Deleted, error) {
	return docstore.Deleted{ID: id}, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		session, err := sessions.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		return s.end(ctx, tx, session, reason)
	})
}

// EndInBrowser ends the session of the browser that asks for it. before is part of the transaction, and comes first.
// The error is apperr.NotFound.
func (s *Sessions) EndInBrowser(
	ctx context.Context, id, reason string, before func(context.Context, *docstore.Tx) error,
) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		session, err := sessions.Load(ctx, tx, id)
		if err == nil {
			err = before(ctx, tx)
		}
		if err != nil {
			return err
		}
		return s.end(ctx, tx, session, reason)
	})
}

// EndDue ends sessions whose time is over.
func (s *Sessions) EndDue(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		session, err := sessions.Load(ctx, tx, id)
		if err != nil {
			return apperr.Ignore(err, apperr.NotFound)
		}
		if tx.Now.Before(session.TimeExpires) { // it was used meanwhile
			return nil
		}
		return s.end(ctx, tx, session, Expired)
	})
}

// Due lists the sessions whose time is over.
var Due = sessions.Due

// Selection says which sessions end: those of users, those that have entered an application, or those of people who
// have signed in through a connection.
type Selection struct {
	UserIDs      []string
	AppID        string
	ConnectionID string
}

func (s Selection) where() docstore.Filter {
	if s.ConnectionID != "" {
		return docstore.Eq(byConnection, docstore.Text(s.ConnectionID))
	}
	if s.AppID != "" {
		return docstore.Eq(byApp, docstore.Text(s.AppID))
	}
	values := make([]docstore.Value, len(s.UserIDs))
	for i, id := range s.UserIDs {
		values[i] = docstore.Text(id)
	}
	return docstore.In(byUser, values...)
}

// check reports every fault.
func (s Selection) check() error {
	var faults apperr.Faults
	given := 0
	for _, one := range []bool{len(s.UserIDs) > 0, s.AppID != "", s.ConnectionID != ""} {
		if one {
			given++
		}
	}
	faults.Check(given == 1, "", "must have one of user_ids, app_id and connection_id")
	faults.Check(len(without(s.UserIDs)) == len(s.UserIDs), "user_ids", "must not be empty")
	return faults.Err()
}

// EndAll ends the selected sessions, and returns how many there were. The error is apperr.InvalidParameters.
func (s *Sessions) EndAll(ctx context.Context, which Selection, reason string) (int64, error) {
	if err := which.check(); err != nil {
		return 0, err
	}
	if docstore.IsDryRun(ctx) {
		return sessions.Count(ctx, s.Store, which.where())
	}
	return s.endWhere(ctx, which.where(), reason, func(*Session) bool { return true })
}

// EndOthers ends all sessions of a user but one.
func (s *Sessions) EndOthers(ctx context.Context, userID, but, reason string) error {
	_, err := s.endWhere(ctx, docstore.Eq(byUser, docstore.Text(userID)), reason,
		func(session *Session) bool { return session.ID != but })
	return err
}

// EndBefore ends the sessions of a user that rest on a credential that was set before a time.
func (s *Sessions) EndBefore(ctx context.Context, userID, credential string, set clock.Time, reason string) error {
	_, err := s.endWhere(ctx, docstore.Eq(byUser, docstore.Text(userID)), reason,
		func(session *Session) bool { return proof.RestsOn(session.Shown(), credential, set) })
	return err
}

// EndThrough ends the sessions of people who have signed in through a connection.
func (s *Sessions) EndThrough(ctx context.Context, connectionID string) error {
	_, err := s.EndAll(ctx, Selection{ConnectionID: connectionID}, LinkGone)
	return err
}

// EndUpstream ends the sessions that rest on a session at another provider, which has ended there.
func (s *Sessions) EndUpstream(ctx context.Context, session string) error {
	_, err := s.endWhere(ctx, docstore.Eq(byUpstream, docstore.Text(session)), LoggedOutElsewhere,
		func(one *Session) bool { return slices.Contains(proof.UpstreamSessions(one.Proofs), session) })
	return err
}

// EndLinked ends the sessions of a user that rest on a link to another provider, where the user has signed out: those
// of one session there, and those of which the provider has not told the session. If session is empty, it ends all.
func (s *Sessions) EndLinked(ctx context.Context, userID, credential, session string) error {
	_, err := s.endWhere(ctx, docstore.Eq(byUser, docstore.Text(userID)), LoggedOutElsewhere,
		func(one *Session) bool {
			return slices.ContainsFunc(one.Proofs, func(p proof.Proof) bool {
				return p.Credential == credential &&
					(session == "" || p.UpstreamSession == "" || p.UpstreamSession == session)
			})
		})
	return err
}

// EndOfUser ends all sessions of a user who may not sign in any more.
func (s *Sessions) EndOfUser(ctx context.Context, userID string) error {
	_, err := s.endWhere(ctx, docstore.Eq(byUser, docstore.Text(userID)), UserGone,
		func(*Session) bool { return true })
	return err
}

// endWhere ends sessions, some at a time.
func (s *Sessions) endWhere(ctx context.Context, where docstore.Filter, reason string, also func(*Session) bool,
) (int64, error) {
	var ended int64
	for after := ""; ; {
		page, err := sessions.Page(ctx, s.Store, docstore.Query{Filter: where, Limit: endAtOnce, After: after})
		if err != nil {
			return ended, err
		}
		n, err := s.endPage(ctx, page.Docs, reason, also)
		ended += n
		if err != nil || page.Next == "" {
			return ended, err
		}
		after = page.Next
	}
}

func (s *Sessions) endPage(ctx context.Context, docs []Doc, reason string, also func(*Session) bool) (int64, error) {
	if len(docs) == 0 {
		return 0, nil
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (int64, error) {
		ids := make([]string, len(docs))
		for i := range docs {
			ids[i] = docs[i].ID
		}
		found, err := sessions.LoadMany(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		var n int64
		for _, session := range found {
			if !also(session) {
				continue
			}
			if err := s.end(ctx, tx, session, reason); err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
}
