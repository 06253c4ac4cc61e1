package user

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// ChangeOrganization makes the organization service move the user and publishes an event of it: both or neither, even
// if a service dies. An intent is stored before the question, and is deleted with the event. The error is
// apperr.NotFound, InvalidState (resigned), a refusal of the other service, Unavailable if nobody received the
// question, or OutcomeUnknown if it was received but the outcome is unknown: then FinishOrganizationChange sends the
// event later. ChangeOrganization sets the change's ID and DryRun.
func (s *Users) ChangeOrganization(ctx context.Context, change questions.MembershipChange) (questions.Memberships,
	error) {
	var err error
	if change.ID, err = s.Store.NewID(ctx); err != nil {
		return questions.Memberships{}, err
	}
	change.DryRun = docstore.IsDryRun(ctx)
	// Everything that can be refused here is refused before the question, because the other service's change is not
	// undone.
	if err := docstore.Do(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) error {
		u, err := s.load(ctx, tx, change.UserID)
		if err != nil {
			return err
		}
		if u.Status == Resigned {
			return errResigned
		}
		_, err = intents.Insert(ctx, tx, newIntent(change, request.From(ctx), tx.Now))
		return err
	}); err != nil {
		return questions.Memberships{}, err
	}
	if change.DryRun {
		return questions.ChangeMembership.Ask(ctx, s.Bus, change)
	}
	// From here on the work continues even if the client gives up, because the other service may have made the change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
	defer cancel()
	answer, err := questions.ChangeMembership.Ask(ctx, s.Bus, change)
	if unclear(err) && !bus.Unheard(err) {
		outcome, unsettled := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: change.ID})
		if unsettled != nil {
			return questions.Memberships{}, apperr.Unknown(errors.Join(err, unsettled)) // the intent stays
		}
		if outcome.Applied {
			answer, err = outcome.Memberships, nil
		}
	}
	if err != nil {
		return questions.Memberships{}, errors.Join(err, s.dropIntent(ctx, change.ID))
	}
	if answer, err = s.fulfil(ctx, change.ID, answer); unclear(err) {
		err = apperr.Unknown(err)
	}
	return answer, err
}

// unclear reports whether it is unknown, after err, if the change was made. Every other error is a refusal.
func unclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
}
