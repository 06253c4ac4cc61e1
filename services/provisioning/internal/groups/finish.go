package groups

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
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
	i, err := s.takeOver(ctx, id)
	if err != nil || i == nil {
		return err
	}
	ctx = intents.AsRequest(ctx, i)
	if err := s.finish(ctx, i); err != nil {
		return errors.Join(err, s.makeDue(context.WithoutCancel(ctx), id))
	}
	return nil
}

// takeOver keeps others from finishing an intent for the time intents.Takes. The intent is nil if it has ended.
func (s *Groups) takeOver(ctx context.Context, id string) (*intent, error) {
	return docstore.Write(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) (*intent, error) {
		i, err := intents.Open(ctx, tx, id)
		if err != nil || i == nil {
			return nil, err
		}
		if tx.Now.Before(i.TimeDue) {
			return nil, apperr.New(apperr.Unavailable, "the change is being finished")
		}
		i.TimeDue, i.Resumed = tx.Now.Add(intents.Takes), true
		_, err = intents.Replace(ctx, tx, i)
		return i, err
	})
}

func (s *Groups) finish(ctx context.Context, i *intent) error {
	g := &directory.Group{Meta: docstore.Meta{ID: i.Change.NodeID}, ConnectionID: i.ConnectionID}
	if !i.NodeDone {
		link := directory.Link{ConnectionID: i.ConnectionID, ExternalID: i.ExternalID, Gone: i.Gone, Event: i.Event}
		var state questions.NodeState
		if i.Change.Action != "" {
			var made bool
			var err error
			if state, made, err = s.settle(ctx, i.ID); err != nil {
				return err
			}
			if !made || len(state.Node) == 0 {
				return intents.Drop(ctx, s.Store, i.ID)
			}
		}
		var err error
		g, err = s.complete(ctx, i.ID, i.Change.NodeID, state, link)
		if apperr.IsNotFound(err) { // the node is no group any more
			return intents.Drop(ctx, s.Store, i.ID)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.finishMembers(ctx, i.ID, g, i.Add, i.Remove)
	return err
}

// makeDue lets Finish go on with an intent at once. One that was dropped is none.
func (s *Groups) makeDue(ctx context.Context, id string) error {
	return docstore.Do(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) error {
		i, err := intents.Open(ctx, tx, id)
		if err != nil || i == nil {
			return err
		}
		i.TimeDue = tx.Now
		_, err = intents.Replace(ctx, tx, i)
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
		if err := s.Finish(ctx, i.ID); change.IsUnclear(err) {
			return apperr.Away("an earlier change of the group", err)
		}
	}
	return nil
}
