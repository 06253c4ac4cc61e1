package user

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// intent is a change of organization that the organization service is asked to make. The transaction that ends it sends
// the events of the change.
type intent struct {
	change.Intent
	UserID     string   `json:"user_id"`
	UserIDs    []string `json:"user_ids,omitempty"` // instead, if it is of several users
	ObjectCode string   `json:"object_code"`
	FromNodeID string   `json:"from_node_id"`
	ToNodeID   string   `json:"to_node_id"`
}

var intents = change.Define(docstore.Schema[intent]{
	Name: "organization_changes", Noun: "change of organization",
}, 10*time.Second, func(i *intent) *change.Intent { return &i.Intent })

// users are the ids of the users whom the change is of.
func (i *intent) users() []string {
	if len(i.UserIDs) > 0 {
		return i.UserIDs
	}
	return []string{i.UserID}
}

// completeMove ends an intent whose change was made, and sends an event for each user. It does nothing if another
// replica has done so.
func completeMove[R any](ctx context.Context, s *Users, id string, answer R) (R, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (none R, _ error) {
		i, err := intents.End(ctx, tx, id)
		if err != nil || i == nil {
			return answer, err
		}
		// LoadMany ignores If-Match, which the request has checked before the change
		found, err := users.LoadMany(ctx, tx, i.users())
		if err != nil {
			return none, err
		}
		for _, u := range found { // not those deleted meanwhile: user.deleted ends the new membership, too
			if err := i.tell(ctx, tx, u); err != nil {
				return none, err
			}
		}
		return answer, nil
	})
}

// tell adds the event about one of the users.
func (i *intent) tell(ctx context.Context, tx *docstore.Tx, u *User) error {
	if err := applyDueTo(ctx, tx, u); err != nil {
		return err
	}
	_, err := users.As("organization_changed").With("object_code", i.ObjectCode).
		With("from_node_id", i.FromNodeID).With("to_node_id", i.ToNodeID).Revise(ctx, tx, u)
	return err
}

// DueOrganizationChanges lists changes that requests have left open because a service died or did not answer.
func DueOrganizationChanges(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// FinishOrganizationChange ends a change that a request has left open. The error is apperr.NotFound if another replica
// was first, and Unavailable if the outcome is still unknown.
func (s *Users) FinishOrganizationChange(ctx context.Context, id string) error {
	ctx, _, err := intents.Resume(ctx, s.Store, id)
	if err != nil {
		return err
	}
	has, made, err := s.settleMove(ctx, id)
	switch {
	case err != nil:
		return err
	case !made:
		return intents.Drop(ctx, s.Store, id)
	}
	_, err = completeMove(ctx, s, id, has)
	return err
}

func (s *Users) settleMove(ctx context.Context, id string) (questions.Memberships, bool, error) {
	outcome, err := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	return outcome.Memberships, outcome.Applied, err
}
