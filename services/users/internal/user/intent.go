package user

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// intent is a change of organization that the organization service is asked for. It is there while this service has not noted the
// outcome; whoever deletes it tells of the change. Its id is the change's.
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

	TimeDue clock.Time `json:"time_due"` // when FinishOrganizationChanges takes it up
}

var intents = docstore.Define(docstore.Schema[intent]{
	Name: "organization_changes", Noun: "change of organization", Part: true,
	Due: func(i *intent) clock.Time { return i.TimeDue },
})

const (
	changeTakes = 10 * time.Second // from the intent to the end of its request, which is left alone so long
	changeRetry = 30 * time.Second
)

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
		if err := intents.Delete(ctx, tx, i); err != nil {
			return questions.Memberships{}, err
		}
		doc, err := users.Find(ctx, tx, i.UserID)
		if apperr.IsNotFound(err) { // deleted meanwhile: user.deleted ends the new membership too
			return answer, nil
		}
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
	_, err := docstore.Write(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) (struct{}, error) {
		return struct{}{}, intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
	return err
}

// FinishOrganizationChanges ends what requests left open because a service died or did not answer. To be called every few seconds; any
// number of replicas may. It returns how many changes it looked at. At the first that can't be settled it stops, since the others hardly
// could, and leaves that one for later.
func (s *Users) FinishOrganizationChanges(ctx context.Context) (int, error) {
	due, err := intents.Due(ctx, s.Store, 100)
	if err != nil {
		return 0, err
	}
	for _, ref := range due {
		if err := s.finish(request.System(ctx, ref.Tenant), ref.ID); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

func (s *Users) finish(ctx context.Context, id string) error {
	doc, err := intents.Find(ctx, s.Store, id)
	if apperr.IsNotFound(err) { // another replica was first
		return nil
	}
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
		return errors.Join(err, s.postpone(ctx, id))
	}
	if !outcome.Applied {
		return s.dropIntent(ctx, id)
	}
	_, err = s.fulfil(ctx, id, outcome.Memberships)
	return err
}

// postpone lets the intents behind one that can't be settled have their turn.
func (s *Users) postpone(ctx context.Context, id string) error {
	_, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (struct{}, error) {
		i, err := intents.Load(ctx, tx, id)
		if apperr.IsNotFound(err) {
			return struct{}{}, nil
		}
		if err != nil {
			return struct{}{}, err
		}
		i.TimeDue = tx.Now.Add(changeRetry)
		_, err = intents.Replace(ctx, tx, i)
		return struct{}{}, err
	})
	return err
}
