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

// ChangeOrganization has the organization service move the user and tells of it, both or neither, whichever service dies when: an intent
// is stored before the question and goes with the event. apperr.NotFound, InvalidState (resigned), the other service's
// refusals, Unavailable where nobody heard the question, and OutcomeUnknown where it was heard and no outcome is told:
// then FinishOrganizationChange tells of it later. The change's ID and DryRun are set here.
func (s *Users) ChangeOrganization(ctx context.Context, change questions.MembershipChange) (questions.Memberships, error) {
	var err error
	if change.ID, err = s.Store.NewID(ctx); err != nil {
		return questions.Memberships{}, err
	}
	change.DryRun = docstore.IsDryRun(ctx)
	// All that can be refused here is refused before the other service is asked: what it did is not undone.
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
	// From here on it makes no difference whether the client waits: what it hears, or would, is what happens.
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

// unclear reports whether err leaves open if the change was made. Every other one is a refusal.
func unclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
}
