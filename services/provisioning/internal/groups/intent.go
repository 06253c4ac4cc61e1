package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/questions"
)

// viewless is the view of a group of which nobody looks at the members.
var viewless = mapping.GroupView{}

// intent is a change of a group that takes several changes of the organization service. It exists until all are made
// and the link is stored; its id is that of the change of the node.
type intent struct {
	change.Intent
	ConnectionID string               `json:"connection_id"`
	Claim        string               `json:"claim"` // of a group that is being made
	Change       questions.NodeChange `json:"change"`
	NodeDone     bool                 `json:"node_done"` // the node is changed, the link stored; the members are left
	ExternalID   *string              `json:"external_id"`
	Gone         *bool                `json:"gone"`
	Event        string               `json:"event"`
	Add          []string             `json:"add"`
	Remove       []string             `json:"remove"`
	Resumed      bool                 `json:"resumed"` // Finish has taken over: no request is at work with it
}

var intents = change.Define(docstore.Schema[intent]{
	Name: "group_intents", Noun: "intent",
	Indexes: []docstore.Index[intent]{
		docstore.Unique(docstore.ByText("claim", func(i *intent) string { return i.Claim }), "displayName"),
		docstore.ByText(byNode, func(i *intent) string { return i.Change.NodeID }),
	},
}, 25*time.Second, func(i *intent) *change.Intent { return &i.Intent })

const byNode = "node_id"

const (
	perChange = 1000 // members of one questions.MembersChange
	maxOpen   = 20   // changes of a group that failures have interrupted
)

// update is a change of a group. The change has no Action if the node stays as it is.
type update struct {
	call        people.Call
	group       *directory.Group // nil of one that is made or revived
	change      questions.NodeChange
	link        directory.Link
	claim       string
	add, remove []string
}

func (j *update) linkChanges() bool {
	return j.link.ExternalID != nil || j.link.Gone != nil || j.link.Event != ""
}

// execute makes all changes, and stores the link and the copy. The error is a refusal, Unavailable if nothing was
// changed, or OutcomeUnknown: then Finish goes on later.
func (s *Groups) execute(ctx context.Context, j update) (*directory.Group, error) {
	var err error
	if j.change.ID, err = s.Store.NewID(ctx); err != nil {
		return nil, err
	}
	if docstore.IsDryRun(ctx) {
		return s.tryOut(ctx, j)
	}
	n := len(j.add) + len(j.remove)
	if n <= perChange && j.change.Action == "" && !j.linkChanges() && !j.call.Exclusive {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), intents.Takes)
		defer cancel()
		return s.changeMembers(ctx, j.link.ConnectionID, j.change.ID, j.change.NodeID, j.add, j.remove)
	}
	stored := false
	g, err := change.Run(ctx, s.Store, intents, change.Steps[intent, questions.NodeState, *directory.Group]{
		ID: j.change.ID,
		Intent: &intent{
			ConnectionID: j.link.ConnectionID, Claim: j.claim, Change: j.change,
			ExternalID: j.link.ExternalID, Gone: j.link.Gone, Event: j.link.Event, Add: j.add, Remove: j.remove,
		},
		Check: j.check,
		Ask: func(ctx context.Context) (questions.NodeState, error) {
			if stored = true; j.change.Action == "" {
				return questions.NodeState{}, nil
			}
			return questions.ChangeNode.Ask(ctx, s.Bus, j.change)
		},
		Refusal: toSCIMError,
		Settle:  s.settle,
		Complete: func(ctx context.Context, id string, state questions.NodeState) (*directory.Group, error) {
			g, err := s.complete(ctx, id, j.change.NodeID, state, j.link)
			if err != nil {
				return nil, err
			}
			return s.finishMembers(ctx, id, g, j.add, j.remove)
		},
	})
	if err != nil && stored {
		return nil, errors.Join(err, s.makeDue(context.WithoutCancel(ctx), j.change.ID))
	}
	return g, err
}

func (s *Groups) settle(ctx context.Context, id string) (questions.NodeState, bool, error) {
	outcome, err := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
	return outcome.NodeState, outcome.Applied, err
}

// check refuses an externalId that another group has, and a change of a version that is not the latest.
func (j *update) check(ctx context.Context, tx *docstore.Tx) error {
	if id := j.link.ExternalID; id != nil && *id != "" {
		g, err := directory.GroupByExternal(ctx, tx, j.link.ConnectionID, *id)
		if err == nil && g.ID != j.change.NodeID {
			return apperr.Taken("externalId")
		}
		if err != nil && !apperr.IsNotFound(err) {
			return err
		}
	}
	if j.group == nil || !j.call.Exclusive {
		return nil
	}
	return directory.NewTag(ctx, tx, j.group.ID, j.call.Match.Check)
}

// complete stores the link of a node that was changed, and notes in the intent that this is done.
func (s *Groups) complete(
	ctx context.Context, id, nodeID string, state questions.NodeState, link directory.Link,
) (*directory.Group, error) {
	nodeID, err := idOf(nodeID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) (*directory.Group, error) {
		i, err := intents.Open(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		link := link
		if i == nil || i.NodeDone {
			link = directory.Link{ConnectionID: link.ConnectionID}
		} else {
			i.NodeDone, i.Claim, i.Change.NodeID = true, "", nodeID
			if _, err := intents.Replace(ctx, tx, i); err != nil {
				return nil, err
			}
		}
		g, err := directory.PutGroup(ctx, tx, nodeID, state, link)
		if err == nil && g == nil {
			err = apperr.Missing("group")
		}
		return g, err
	})
}

func idOf(nodeID string, state questions.NodeState) (string, error) {
	if nodeID != "" {
		return nodeID, nil
	}
	var record struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(state.Node, &record); err != nil || record.ID == "" {
		return "", fmt.Errorf("the organization service has answered with no node: %w", err)
	}
	return record.ID, nil
}

// finishMembers makes the changes of members that an intent has, and ends it. What the organization service refuses is
// left out, and the first refusal returned.
func (s *Groups) finishMembers(
	ctx context.Context, id string, g *directory.Group, add, remove []string,
) (*directory.Group, error) {
	var refused error
	for len(add)+len(remove) > 0 {
		n := min(perChange, len(add))
		m := min(perChange-n, len(remove))
		now, err := s.changePresent(ctx, g, add[:n], remove[:m])
		if change.IsUnclear(err) {
			return nil, err
		}
		if apperr.IsNotFound(err) { // the node has gone meanwhile
			break
		}
		if err != nil && refused == nil {
			refused = partialError(err)
		}
		if now != nil {
			g = now
		}
		if add, remove = add[n:], remove[m:]; len(add)+len(remove) > 0 {
			if err := s.saveRemaining(ctx, id, add, remove); err != nil {
				return nil, err
			}
		}
	}
	return g, errors.Join(refused, intents.Drop(ctx, s.Store, id))
}

// partialError tells that a refusal is about some of the members only.
func partialError(err error) error {
	e, ours := errors.AsType[*apperr.Error](err)
	if !ours {
		return err
	}
	return apperr.New(e.Kind, "the group is changed, but not all of its members: %s", e.Detail).Because(err)
}

// saveRemaining notes in an intent which members are still to be changed, and that somebody is at work.
func (s *Groups) saveRemaining(ctx context.Context, id string, add, remove []string) error {
	return docstore.Do(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) error {
		i, err := intents.Open(ctx, tx, id)
		if err != nil || i == nil {
			return err
		}
		i.Add, i.Remove, i.TimeDue = add, remove, tx.Now.Add(intents.Takes)
		_, err = intents.Replace(ctx, tx, i)
		return err
	})
}

// changePresent is changeMembers that leaves out users who have gone meanwhile.
func (s *Groups) changePresent(ctx context.Context, g *directory.Group, add, remove []string) (
	*directory.Group, error,
) {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.changeMembers(ctx, g.ConnectionID, id, g.ID, add, remove)
	if apperr.KindOf(err) != apperr.InvalidParameters {
		return now, err
	}
	existing, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: add})
	if err != nil {
		return nil, err
	}
	if id, err = s.Store.NewID(ctx); err != nil {
		return nil, err
	}
	return s.changeMembers(ctx, g.ConnectionID, id, g.ID, existing.IDs, remove)
}

// changeMembers adds and removes members, at most perChange together, and stores them in the copy.
func (s *Groups) changeMembers(
	ctx context.Context, connectionID, id, nodeID string, add, remove []string,
) (*directory.Group, error) {
	done, err := change.Ask(ctx, id, func(ctx context.Context) (questions.MembersChanged, error) {
		return questions.ChangeMembers.Ask(ctx, s.Bus, questions.MembersChange{
			ID: id, NodeID: nodeID, Add: add, Remove: remove,
		})
	}, func(ctx context.Context, id string) (questions.MembersChanged, bool, error) {
		_, made, err := s.settle(ctx, id)
		return questions.MembersChanged{}, made, err // its memberships come by events
	})
	if err != nil {
		return nil, toSCIMError(err)
	}
	if len(done.Unknown) > 0 {
		return nil, unknownMembers(done.Unknown)
	}
	return docstore.Write(docstore.WithoutCommitHook(directory.InMembersTurn(ctx, nodeID)), s.Store,
		func(tx *docstore.Tx) (*directory.Group, error) {
			return directory.PutMembers(ctx, tx, connectionID, nodeID, done.Memberships, done.Ended)
		})
}

// tryOut answers a dry run.
func (s *Groups) tryOut(ctx context.Context, j update) (*directory.Group, error) {
	state := questions.NodeState{}
	if j.change.DryRun = true; j.change.Action != "" {
		var err error
		if state, err = questions.ChangeNode.Ask(ctx, s.Bus, j.change); err != nil {
			return nil, toSCIMError(err)
		}
	}
	nodeID, err := idOf(j.change.NodeID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*directory.Group, error) {
		return directory.PutGroup(ctx, tx, nodeID, state, j.link)
	})
}

// toSCIMError turns a refusal of the organization service into a SCIM error that names the attribute.
func toSCIMError(err error) error {
	if _, typed := errors.AsType[*scim.Error](err); typed {
		return err
	}
	e, ours := errors.AsType[*apperr.Error](err)
	if !ours {
		return err
	}
	if e.Kind == apperr.InvalidParameters {
		return scim.With(scim.InvalidValue, relocated(e))
	}
	return err
}

// relocated names displayName where the organization service names the node's name.
func relocated(e *apperr.Error) *apperr.Error {
	moved, _ := errors.AsType[*apperr.Error](apperr.Relocate(e, func(member string) string {
		if member == "name" {
			return "displayName"
		}
		return member
	}))
	return moved
}
