package groups

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/questions"
)

// DueIntents lists intents that requests have left open because a service died or did not answer.
func DueIntents(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return intents.Due(ctx, s, limit)
}

// Finish ends an intent that a request has left open.
func (s *Groups) Finish(ctx context.Context, id string) error {
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
	link := directory.Link{ConnectionID: i.ConnectionID, ExternalID: i.ExternalID, Gone: i.Gone, Event: i.Event}
	if !i.NodeDone && i.Change.Action != "" {
		outcome, err := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
		if err != nil {
			return err
		}
		if !outcome.Applied || len(outcome.Node) == 0 {
			return s.drop(ctx, id)
		}
		if _, err := s.fulfil(ctx, id, i.Change.NodeID, outcome.NodeState, link); err != nil {
			return err
		}
	} else if !i.NodeDone {
		if _, err := s.fulfil(ctx, id, i.Change.NodeID, questions.NodeState{}, link); err != nil {
			return err
		}
	}
	if doc, err = intents.Find(ctx, s.Store, id); err != nil {
		return err
	}
	if i, err = doc.Value(); err != nil {
		return err
	}
	at := &directory.Group{Meta: docstore.Meta{ID: i.Change.NodeID}, ConnectionID: i.ConnectionID}
	_, err = s.finishMembers(ctx, id, at, i.Add, i.Remove)
	return err
}

// release lets Finish go on with an intent at once. One that was dropped is none.
func (s *Groups) release(ctx context.Context, id string) error {
	return docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		found, err := intents.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 {
			return err
		}
		found[0].TimeDue = tx.Now
		_, err = intents.Replace(ctx, tx, found[0])
		return err
	})
}

// finishEarlier finishes the changes of a group that a failure has interrupted: later they would undo what comes now.
// Those of requests that are at work stay, since requests at the same time have no order, and so do those that are
// refused: a group must not become read-only by them.
func (s *Groups) finishEarlier(ctx context.Context, nodeID string) error {
	open, err := intents.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byNode, docstore.Text(nodeID)), Limit: maxOpen,
	})
	if err != nil || docstore.IsDryRun(ctx) {
		return err
	}
	for _, doc := range open.Docs {
		i, err := doc.Value()
		if err != nil {
			return err
		}
		if s.Store.Now().Before(i.TimeDue) {
			continue
		}
		if err := s.Finish(ctx, i.ID); unclear(err) {
			return apperr.Away("an earlier change of the group", err)
		}
	}
	return nil
}
