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
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id"`
	ToNodeID   string `json:"to_node_id"`

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

func newIntent(change questions.MembershipChange, asked request.Info, now clock.Time) *intent {
	return &intent{
		Meta: docstore.Meta{ID: change.ID}, UserID: change.UserID,
		ObjectCode: change.ObjectCode, FromNodeID: change.FromNodeID, ToNodeID: change.ToNodeID,
		RequestID: asked.ID, Actor: asked.Actor, PayloadOrigin: asked.PayloadOrigin,
		TimeDue: now.Add(changeTakes),
	}
}

// fulfil ends an intent whose change was made, and sends the event. It does nothing if another replica has done so.
func (s *Users) fulfil(ctx context.Context, id string, answer questions.Memberships) (questions.Memberships, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.Memberships, error) {
		i, err := intents.Load(ctx, tx, id)
		if apperr.IsNotFound(err) {
			return answer, nil
		}
		if err != nil {
			return questions.Memberships{}, err
		}
		if _, err := intents.Delete(ctx, tx, i); err != nil {
			return questions.Memberships{}, err
		}
		// LoadMany ignores If-Match, which the request has checked before the change
		found, err := users.LoadMany(ctx, tx, []string{i.UserID})
		if err != nil {
			return questions.Memberships{}, err
		}
		if len(found) == 0 { // deleted meanwhile: user.deleted ends the new membership, too
			return answer, nil
		}
		if err := settleStored(ctx, tx, found[0]); err != nil {
			return questions.Memberships{}, err
		}
		doc, err := users.Revise(ctx, tx, found[0])
		if err != nil {
			return questions.Memberships{}, err
		}
		return answer, emit(ctx, tx, "organization_changed", &doc, map[string]any{
			"object_code": i.ObjectCode, "from_node_id": i.FromNodeID, "to_node_id": i.ToNodeID,
		})
	})
}

// dropIntent deletes an intent whose change was not made.
func (s *Users) dropIntent(ctx context.Context, id string) error {
	return docstore.Do(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) error {
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
	_, err = s.fulfil(ctx, id, outcome.Memberships)
	return err
}
