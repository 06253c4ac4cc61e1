package user

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// ChangeOrganization makes the organization service move the user and publishes an event of it: both or neither, even
// if a service dies (package change). The error is apperr.NotFound, InvalidState (resigned), a refusal of the other
// service, Unavailable if nobody received the question, or OutcomeUnknown if the outcome is unknown: then
// FinishOrganizationChange sends the event later. ChangeOrganization sets the change's ID, DryRun and Held.
func (s *Users) ChangeOrganization(ctx context.Context, move questions.MembershipChange) (questions.Memberships,
	error) {
	var err error
	if move.ID, err = s.Store.NewID(ctx); err != nil {
		return questions.Memberships{}, err
	}
	move.DryRun, move.Held = docstore.IsDryRun(ctx), held(ctx)
	return handOver(ctx, s, move.ID, intent{
		UserID: move.UserID, ObjectCode: move.ObjectCode, FromNodeID: move.FromNodeID, ToNodeID: move.ToNodeID,
	}, func(ctx context.Context, tx *docstore.Tx) error {
		u, err := s.load(ctx, tx, move.UserID)
		if err == nil && u.Status == Resigned {
			err = errResigned
		}
		return err
	}, func(ctx context.Context) (questions.Memberships, error) {
		return questions.ChangeMembership.Ask(ctx, s.Bus, move)
	}, func(has questions.Memberships) questions.Memberships { return has })
}

// ChangeOrganizations is ChangeOrganization for several users: all or none. A user who is unknown, has resigned, is
// given twice or is not in the old node is a fault at ids[n]. It sets the change's ID, DryRun and Held.
func (s *Users) ChangeOrganizations(ctx context.Context, move questions.MembershipsChange) (Batch, error) {
	var faults apperr.Faults
	given := map[string]bool{}
	for i, id := range move.UserIDs {
		faults.Check(!given[id], apperr.Item("ids", i), "is given twice")
		given[id] = true
	}
	if err := faults.Err(); err != nil {
		return Batch{}, err
	}
	var err error
	if move.ID, err = s.Store.NewID(ctx); err != nil {
		return Batch{}, err
	}
	move.DryRun, move.Held = docstore.IsDryRun(ctx), held(ctx)
	moved := Batch{move.UserIDs}
	return handOver(ctx, s, move.ID, intent{
		UserIDs: move.UserIDs, ObjectCode: move.ObjectCode, FromNodeID: move.FromNodeID, ToNodeID: move.ToNodeID,
	}, func(ctx context.Context, tx *docstore.Tx) error {
		return checkMovable(ctx, tx, move.UserIDs)
	}, func(ctx context.Context) (Batch, error) {
		_, err := questions.ChangeMemberships.Ask(ctx, s.Bus, move)
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
		if err := applyDueTo(ctx, tx, u); err != nil {
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

// handOver lets the organization service make the change of an intent. settled is the answer to a change that was made
// without an answer to ask.
func handOver[A any](
	ctx context.Context, s *Users, id string, i intent, check func(context.Context, *docstore.Tx) error,
	ask func(context.Context) (A, error), settled func(questions.Memberships) A,
) (none A, _ error) {
	if docstore.IsDryRun(ctx) {
		if err := docstore.Do(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) error {
			return check(ctx, tx)
		}); err != nil {
			return none, err
		}
		return ask(ctx)
	}
	return change.Run(ctx, s.Store, intents, change.Steps[intent, A, A]{
		ID: id, Intent: &i, Key: change.KeyOf(ctx), Check: check, Ask: ask,
		Settle: func(ctx context.Context, id string) (A, bool, error) {
			has, made, err := s.settleMove(ctx, id)
			return settled(has), made, err
		},
		Complete: func(ctx context.Context, id string, answer A) (A, error) {
			return completeMove(ctx, s, id, answer)
		},
	})
}
