package user

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// intent is a change of organization that the organization service is asked to make. It exists until this service has
// recorded the outcome; the transaction that deletes it sends the event of the change. Its id is the change's.
type intent struct {
	docstore.Meta
	UserID     string   `json:"user_id"`
	UserIDs    []string `json:"user_ids,omitempty"` // instead, if it is of several users
	ObjectCode string   `json:"object_code"`
	FromNodeID string   `json:"from_node_id"`
	ToNodeID   string   `json:"to_node_id"`

	// From the request, for the event.
	RequestID     string `json:"request_id"`
	Actor         string `json:"actor"`
	PayloadOrigin string `json:"payload_origin"`

	TimeDue clock.Time `json:"time_due"` // when FinishOrganizationChange may take over
}

var intents = docstore.Define(docstore.Schema[intent]{
	Name: "organization_changes", Noun: "change of organization", Part: true,
	Due: func(i *intent) clock.Time { return i.TimeDue },
})

// changeTakes is how long a request with an intent is left alone.
const changeTakes = 10 * time.Second

// users are the ids of the users whom the change is of.
func (i *intent) users() []string {
	if len(i.UserIDs) > 0 {
		return i.UserIDs
	}
	return []string{i.UserID}
}

// note stores the intent of a request.
func (i intent) note(ctx context.Context, tx *docstore.Tx) error {
	asked := request.From(ctx)
	i.RequestID, i.Actor, i.PayloadOrigin = asked.ID, asked.Actor, asked.PayloadOrigin
	i.TimeDue = tx.Now.Add(changeTakes)
	_, err := intents.Insert(ctx, tx, &i)
	return err
}

// fulfil ends an intent whose change was made, and sends an event for each user. It does nothing if another replica has
// done so.
func fulfil[R any](ctx context.Context, s *Users, id string, answer R) (R, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (none R, _ error) {
		i, err := intents.Load(ctx, tx, id)
		if apperr.IsNotFound(err) {
			return answer, nil
		}
		if err != nil {
			return none, err
		}
		if _, err := intents.Delete(ctx, tx, i); err != nil {
			return none, err
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
	if err := settleStored(ctx, tx, u); err != nil {
		return err
	}
	_, err := users.As("organization_changed").With("object_code", i.ObjectCode).
		With("from_node_id", i.FromNodeID).With("to_node_id", i.ToNodeID).Revise(ctx, tx, u)
	return err
}

// dropIntent deletes an intent whose change was not made.
func (s *Users) dropIntent(ctx context.Context, id string) error {
	return docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		return intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// DueOrganizationChanges lists changes that requests have left open because a service died or did not answer.
func DueOrganizationChanges(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// FinishOrganizationChange ends a change that a request has left open. The error is apperr.NotFound if another replica
// was first, and Unavailable if the outcome is still unknown.
func (s *Users) FinishOrganizationChange(ctx context.Context, id string) error {
	doc, err := intents.Find(ctx, s.Store, id)
	if err != nil {
		return err
	}
	i, err := doc.Value()
	if err != nil {
		return err
	}
	ctx = request.With(ctx, request.Info{ID: i.RequestID, Tenant: i.TenantID, Actor: i.Actor,
		PayloadOrigin: i.PayloadOrigin})
	outcome, err := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	if err != nil {
		return err
	}
	if !outcome.Applied {
		return s.dropIntent(ctx, id)
	}
	_, err = fulfil(ctx, s, id, outcome.Memberships)
	return err
}
