package user

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// OrganizationChange asks for a move from one tree node to another. FromNodeID may be empty: then it is an addition. ID and DryRun are
// ChangeOrganization's to set.
type OrganizationChange struct {
	ID         string `json:"change_id"` // the organization service makes a change of one id once
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id,omitempty"`
	ToNodeID   string `json:"to_node_id"`
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Memberships is the answer: the user's memberships as they now stand, as the organization service tells them.
type Memberships struct {
	Memberships json.RawMessage `json:"memberships"`
}

// ChangeOrganization has the organization service move the user and tells of it, both or neither, whichever service dies when: an intent
// is stored before the question and goes with the event. apperr.NotFound, InvalidState (resigned), the other service's refusals, and
// Unavailable where it does not answer: then nothing was changed, or FinishOrganizationChanges tells what was.
func (s *Users) ChangeOrganization(ctx context.Context, change OrganizationChange) (Memberships, error) {
	var err error
	if change.ID, err = s.Store.NewID(ctx); err != nil {
		return Memberships{}, err
	}
	change.DryRun = docstore.IsDryRun(ctx)
	// All that can be refused here is refused before the other service is asked: what it did is not undone.
	if _, err := docstore.Write(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) (struct{}, error) {
		u, err := s.load(ctx, tx, change.UserID)
		if err != nil {
			return struct{}{}, err
		}
		if u.Status == Resigned {
			return struct{}{}, errResigned
		}
		_, err = intents.Insert(ctx, tx, newIntent(change, request.From(ctx), tx.Now))
		return struct{}{}, err
	}); err != nil {
		return Memberships{}, err
	}
	if change.DryRun {
		return s.askForChange(ctx, change)
	}
	// From here on it makes no difference whether the client waits: what it hears, or would, is what happens.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
	defer cancel()
	answer, err := s.askForChange(ctx, change)
	if unclear(err) && !bus.Unheard(err) {
		outcome, unsettled := s.settleChange(ctx, change.ID)
		if unsettled != nil {
			return Memberships{}, errors.Join(err, unsettled) // the intent stays
		}
		if outcome.Applied {
			answer, err = outcome.Memberships, nil
		}
	}
	if err != nil {
		return Memberships{}, errors.Join(err, s.dropIntent(ctx, change.ID))
	}
	return s.fulfil(ctx, change.ID, answer)
}

func (s *Users) askForChange(ctx context.Context, change OrganizationChange) (Memberships, error) {
	return bus.Ask[Memberships](ctx, s.Bus, "organization", "change-membership", change)
}

// unclear reports whether err leaves open if the change was made. Every other one is a refusal.
func unclear(err error) bool {
	kind := apperr.KindOf(err)
	return kind == apperr.Unavailable || kind == apperr.Internal
}

// outcome is what became of a change.
type outcome struct {
	Applied     bool `json:"applied"`
	Memberships      // if it was
}

// settleChange asks for a change's outcome, which is final: a change that was not made by then never will be.
func (s *Users) settleChange(ctx context.Context, id string) (outcome, error) {
	type question struct {
		ID string `json:"change_id"`
	}
	return bus.Ask[outcome](ctx, s.Bus, "organization", "settle-change", question{id})
}
