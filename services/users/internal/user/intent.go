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

// intent is a change of organization that the organization service is asked for. It is there while this service has
// not noted the outcome; whoever deletes it tells of the change. Its id is the change's.
type intent struct {
	docstore.Meta
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id"`
	ToNodeID   string `json:"to_node_id"`

	// Of the request, for the event.
	RequestID     string `json:"request_id"`
	Actor         string `json:"actor"`
	PayloadOrigin string `json:"payload_origin"`

	TimeDue clock.Time `json:"time_due"` // when FinishOrganizationChange takes it up
}

var intents = docstore.Define(docstore.Schema[intent]{
	Name: "organization_changes", Noun: "change of organization", Part: true,
	Due: func(i *intent) clock.Time { return i.TimeDue },
})

// changeTakes is from the intent to the end of its request, which is left alone so long.
const changeTakes = 10 * time.Second

func newIntent(change questions.MembershipChange, asked request.Info, now clock.Time) *intent {
	return &intent{
		Meta: docstore.Meta{ID: change.ID}, UserID: change.UserID,
		ObjectCode: change.ObjectCode, FromNodeID: change.FromNodeID, ToNodeID: change.ToNodeID,
		RequestID: asked.ID, Actor: asked.Actor, PayloadOrigin: asked.PayloadOrigin,
		TimeDue: now.Add(changeTakes),
	}
}

// fulfil ends an intent whose change was made, with the event. Where another has done so it does nothing.
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
		found, err := users.LoadMany(ctx, tx, []string{i.UserID}) // the If-Match was for what is done already
		if err != nil {
			return questions.Memberships{}, err
		}
		if len(found) == 0 { // deleted meanwhile: user.deleted ends the new membership too
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

// dropIntent ends an intent whose change was not made.
func (s *Users) dropIntent(ctx context.Context, id string) error {
	err := docstore.Do(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) error {
		return intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
	return err
}

// DueOrganizationChanges lists changes that requests have left open because a service died or did not answer.
func DueOrganizationChanges(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// FinishOrganizationChange ends such a change. apperr.NotFound if another replica was first, Unavailable if its
// outcome can't be asked for.
func (s *Users) FinishOrganizationChange(ctx context.Context, id string) error {
	doc, err := intents.Find(ctx, s.Store, id)
	if err != nil {
		return err
	}
	i, err := doc.Value()
	if err != nil {
		return err
	}
	ctx = request.With(ctx, request.Info{ID: i.RequestID, Tenant: i.TenantID, Actor: i.Actor, PayloadOrigin: i.PayloadOrigin})
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
