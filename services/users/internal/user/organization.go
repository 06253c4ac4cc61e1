package user

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/settle"
	"github.com/idplatform/idplatform/services/questions"
)

// ChangeOrganization makes the organization service move the user and publishes an event of it: both or neither, even
// if a service dies. An intent is stored before the question, and is deleted with the event. The error is
// apperr.NotFound, InvalidState (resigned), a refusal of the other service, Unavailable if nobody received the
// question, or OutcomeUnknown if it was received but the outcome is unknown: then FinishOrganizationChange sends the
// event later. ChangeOrganization sets the change's ID, DryRun and Held.
func (s *Users) ChangeOrganization(ctx context.Context, change questions.MembershipChange) (questions.Memberships,
	error) {
	var err error
	if change.ID, err = s.Store.NewID(ctx); err != nil {
		return questions.Memberships{}, err
	}
	change.DryRun, change.Held = docstore.IsDryRun(ctx), held(ctx)
	return handOver(ctx, s, intent{
		Meta: docstore.Meta{ID: change.ID}, UserID: change.UserID,
		ObjectCode: change.ObjectCode, FromNodeID: change.FromNodeID, ToNodeID: change.ToNodeID,
	}, func(tx *docstore.Tx) error {
		u, err := s.load(ctx, tx, change.UserID)
		if err == nil && u.Status == Resigned {
			err = errResigned
		}
		return err
	}, func(ctx context.Context) (questions.Memberships, error) {
		return questions.ChangeMembership.Ask(ctx, s.Bus, change)
	}, func(has questions.Memberships) questions.Memberships { return has })
}

// ChangeOrganizations is ChangeOrganization for several users: all or none. A user who is unknown, has resigned, is
// given twice or is not in the old node is a fault at ids[n]. It sets the change's ID, DryRun and Held.
func (s *Users) ChangeOrganizations(ctx context.Context, change questions.MembershipsChange) (Batch, error) {
	var faults apperr.Faults
	given := map[string]bool{}
	for i, id := range change.UserIDs {
		faults.Check(!given[id], apperr.Item("ids", i), "is given twice")
		given[id] = true
	}
	if err := faults.Err(); err != nil {
		return Batch{}, err
	}
	var err error
	if change.ID, err = s.Store.NewID(ctx); err != nil {
		return Batch{}, err
	}
	change.DryRun, change.Held = docstore.IsDryRun(ctx), held(ctx)
	moved := Batch{change.UserIDs}
	return handOver(ctx, s, intent{
		Meta: docstore.Meta{ID: change.ID}, UserIDs: change.UserIDs,
		ObjectCode: change.ObjectCode, FromNodeID: change.FromNodeID, ToNodeID: change.ToNodeID,
	}, func(tx *docstore.Tx) error {
		return checkMovable(ctx, tx, change.UserIDs)
	}, func(ctx context.Context) (Batch, error) {
		_, err := questions.ChangeMemberships.Ask(ctx, s.Bus, change)
		return moved, err
	}, func(questions.Memberships) Batch { return moved })
}

// held are the scopes of the caller: the users do not get others by rules for their new node.
func held(ctx context.Context) *questions.Scopes {
	caller := auth.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	scopes := questions.ScopesIn(caller.Scopes)
	return &scopes
}

// checkMovable reports a fault for each of the users who cannot be moved.
func checkMovable(ctx context.Context, tx *docstore.Tx, ids []string) error {
	found, err := users.LoadMany(ctx, tx, ids)
	if err != nil {
		return err
	}
	known := map[string]*User{}
	for _, u := range found {
		if err := settleStored(ctx, tx, u); err != nil {
			return err
		}
		known[u.ID] = u
	}
	var faults apperr.Faults
	for i, id := range ids {
		u := known[id]
		faults.Check(u != nil, apperr.Item("ids", i), "is not a user")
		faults.Check(u == nil || u.Status != Resigned, apperr.Item("ids", i), "is a user who has resigned")
	}
	return faults.Err()
}

// handOver lets the organization service make the change of an intent. check refuses what this service can refuse:
// before the question, because the other service's change is not undone. settled is the answer to a change that was
// found to be made without an answer to ask.
func handOver[R any](
	ctx context.Context, s *Users, i intent, check func(*docstore.Tx) error,
	ask func(context.Context) (R, error), settled func(questions.Memberships) R,
) (none R, _ error) {
	run := settle.RunOf(ctx)
	if run.Former != "" && !docstore.IsDryRun(ctx) {
		if answer, made, err := former(ctx, s, run.Former, settled); made || err != nil {
			return answer, err
		}
	}
	if err := docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		if err := check(tx); err != nil {
			return err
		}
		if err := run.Note(ctx, tx, i.ID); err != nil {
			return err
		}
		return i.note(ctx, tx)
	}); err != nil {
		return none, err
	}
	if docstore.IsDryRun(ctx) {
		return ask(ctx)
	}
	// From here on the work continues even if the client gives up, because the other service may have made the change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
	defer cancel()
	answer, err := ask(ctx)
	if unclear(err) && !bus.Unheard(err) {
		outcome, unsettled := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: i.ID})
		if unsettled != nil {
			return none, apperr.Unknown(errors.Join(err, unsettled)) // the intent stays
		}
		if outcome.Applied {
			answer, err = settled(outcome.Memberships), nil
		}
	}
	if err != nil { // it was not made, and never will be
		return none, errors.Join(err, docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
			if err := run.Note(ctx, tx, ""); err != nil {
				return err
			}
			return intents.DeleteWhere(ctx, tx, docstore.ID(i.ID), nil)
		}))
	}
	if answer, err = fulfil(ctx, s, i.ID, answer); unclear(err) {
		err = apperr.Unknown(err)
	}
	return answer, err
}

// former reports whether the change was made that an earlier request with the same Idempotency-Key asked for, and
// returns the answer to it. If it was not, it never will be.
func former[R any](ctx context.Context, s *Users, id string, settled func(questions.Memberships) R) (answer R,
	made bool, err error) {
	outcome, err := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	if err != nil {
		return answer, false, apperr.Unknown(err)
	}
	if !outcome.Applied {
		return answer, false, s.dropIntent(ctx, id)
	}
	if answer, err = fulfil(ctx, s, id, settled(outcome.Memberships)); unclear(err) {
		err = apperr.Unknown(err)
	}
	return answer, true, err
}

// unclear reports whether it is unknown, after err, if the change was made. Every other error is a refusal.
func unclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
}
