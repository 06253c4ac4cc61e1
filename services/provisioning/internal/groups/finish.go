package groups

import (
	"context"
	"errors"

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

// Finish ends an intent that a request has left open. The error is a refusal of some of its members, or
// apperr.Unavailable if it is for later or another call of Finish is at work.
func (s *Groups) Finish(ctx context.Context, id string) error {
	i, err := s.take(ctx, id)
	if err != nil || i == nil {
		return err
	}
	ctx = request.With(ctx, request.Info{ID: i.RequestID, Tenant: i.TenantID, Actor: i.Actor,
		PayloadOrigin: i.PayloadOrigin})
	if err := s.finish(ctx, i); err != nil {
		return errors.Join(err, s.release(context.WithoutCancel(ctx), id))
	}
	return nil
}

// take keeps others from finishing an intent for the time changeTakes. The intent is nil if it has ended.
func (s *Groups) take(ctx context.Context, id string) (*intent, error) {
	return docstore.Write(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) (*intent, error) {
		found, err := intents.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		i := found[0]
		if tx.Now.Before(i.TimeDue) {
			return nil, apperr.New(apperr.Unavailable, "the change is being finished")
		}
		i.TimeDue, i.Resumed = tx.Now.Add(changeTakes), true
		_, err = intents.Replace(ctx, tx, i)
		return i, err
	})
}

func (s *Groups) finish(ctx context.Context, i *intent) error {
	g := &directory.Group{Meta: docstore.Meta{ID: i.Change.NodeID}, ConnectionID: i.ConnectionID}
	if !i.NodeDone {
		link := directory.Link{ConnectionID: i.ConnectionID, ExternalID: i.ExternalID, Gone: i.Gone, Event: i.Event}
		var outcome questions.ChangeOutcome
		var err error
		if i.Change.Action != "" {
			if outcome, err = questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: i.ID}); err != nil {
				return err
			}
			if !outcome.Applied || len(outcome.Node) == 0 {
				return s.drop(ctx, i.ID)
			}
		}
		g, err = s.fulfil(ctx, i.ID, i.Change.NodeID, outcome.NodeState, link)
		if apperr.IsNotFound(err) { // the node is no group any more
			return s.drop(ctx, i.ID)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.finishMembers(ctx, i.ID, g, i.Add, i.Remove)
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
		if s.Store.Now().Before(i.TimeDue) && !i.Resumed {
			continue
		}
		if err := s.Finish(ctx, i.ID); unclear(err) {
			return apperr.Away("an earlier change of the group", err)
		}
	}
	return nil
}
