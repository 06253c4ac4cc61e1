package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
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
	docstore.Meta
	ConnectionID string               `json:"connection_id"`
	Claim        string               `json:"claim"` // of a group that is being made
	Change       questions.NodeChange `json:"change"`
	NodeDone     bool                 `json:"node_done"` // the node is changed, the link stored; the members are left
	ExternalID   *string              `json:"external_id"`
	Gone         *bool                `json:"gone"`
	Event        string               `json:"event"`
	Add          []string             `json:"add"`
	Remove       []string             `json:"remove"`

	// From the request, for the events.
	RequestID     string `json:"request_id"`
	Actor         string `json:"actor"`
	PayloadOrigin string `json:"payload_origin"`

	TimeDue clock.Time `json:"time_due"` // when Finish may take over
	Resumed bool       `json:"resumed"`  // Finish has taken over: no request is at work with it
}

var intents = docstore.Define(docstore.Schema[intent]{
	Name: "group_intents", Noun: "intent", Part: true, Due: func(i *intent) clock.Time { return i.TimeDue },
	Indexes: []docstore.Index[intent]{
		docstore.Unique(docstore.ByText("claim", func(i *intent) string { return i.Claim }), "displayName"),
		docstore.ByText(byNode, func(i *intent) string { return i.Change.NodeID }),
	},
})

const byNode = "node_id"

const (
	changeTakes = 25 * time.Second // how long a request with an intent is left alone
	perChange   = 1000             // members of one questions.MembersChange
	maxOpen     = 20               // changes of a group that failures have interrupted
)

// job is a change of a group. The change has no Action if the node stays as it is.
type job struct {
	call        people.Call
	group       *directory.Group // nil of one that is made or revived
	change      questions.NodeChange
	link        directory.Link
	claim       string
	add, remove []string
}

func (j *job) linkChanges() bool {
	return j.link.ExternalID != nil || j.link.Gone != nil || j.link.Event != ""
}

// carry makes all changes, and stores the link and the copy. The error is a refusal, Unavailable if nothing was
// changed, or OutcomeUnknown: then Finish goes on later.
func (s *Groups) carry(ctx context.Context, j job) (*directory.Group, error) {
	var err error
	if j.change.ID, err = s.Store.NewID(ctx); err != nil {
		return nil, err
	}
	if docstore.IsDryRun(ctx) {
		return s.tryOut(ctx, j)
	}
	n := len(j.add) + len(j.remove)
	if n <= perChange && j.change.Action == "" && !j.linkChanges() && !j.call.Exclusive {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
		defer cancel()
		return s.changeMembers(ctx, j.link.ConnectionID, j.change.ID, j.change.NodeID, j.add, j.remove)
	}
	if err := s.intend(ctx, j); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTakes)
	defer cancel()
	g, err := s.changeNode(ctx, j)
	if err == nil {
		if g, err = s.finishMembers(ctx, j.change.ID, g, j.add, j.remove); unclear(err) {
			err = apperr.Unknown(err) // the intent stays
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.release(ctx, j.change.ID))
	}
	return g, nil
}

// changeNode changes the node of an intent, and stores the link.
func (s *Groups) changeNode(ctx context.Context, j job) (*directory.Group, error) {
	state := questions.NodeState{}
	if j.change.Action != "" {
		var err error
		if state, err = s.askNode(ctx, j.change); apperr.KindOf(err) == apperr.OutcomeUnknown {
			return nil, err
		}
		if err != nil {
			return nil, errors.Join(toSCIMError(err), s.drop(ctx, j.change.ID))
		}
	}
	g, err := s.fulfil(ctx, j.change.ID, j.change.NodeID, state, j.link)
	if unclear(err) {
		err = apperr.Unknown(err)
	}
	return g, err
}

// askNode makes a change of a node. The error is OutcomeUnknown if it may have been made.
func (s *Groups) askNode(ctx context.Context, c questions.NodeChange) (questions.NodeState, error) {
	state, err := questions.ChangeNode.Ask(ctx, s.Bus, c)
	if !unclear(err) || bus.Unheard(err) {
		return state, err
	}
	outcome, unsettled := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: c.ID})
	if unsettled != nil {
		return state, apperr.Unknown(errors.Join(err, unsettled))
	}
	if outcome.Applied {
		return outcome.NodeState, nil
	}
	return state, err
}

func (s *Groups) intend(ctx context.Context, j job) error {
	asked := request.From(ctx)
	i := intent{
		Meta: docstore.Meta{ID: j.change.ID}, ConnectionID: j.link.ConnectionID, Claim: j.claim, Change: j.change,
		ExternalID: j.link.ExternalID, Gone: j.link.Gone, Event: j.link.Event, Add: j.add, Remove: j.remove,
		RequestID: asked.ID, Actor: asked.Actor, PayloadOrigin: asked.PayloadOrigin,
	}
	return toSCIMError(docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		one := i
		one.TimeDue = tx.Now.Add(changeTakes)
		if id := j.link.ExternalID; id != nil && *id != "" {
			g, err := directory.GroupByExternal(ctx, tx, j.link.ConnectionID, *id)
			if err == nil && g.ID != j.change.NodeID {
				return apperr.Taken("externalId")
			}
			if err != nil && !apperr.IsNotFound(err) {
				return err
			}
		}
		if j.group != nil && j.call.Exclusive {
			if err := directory.NewTag(ctx, tx, j.group.ID, j.call.Match.Check); err != nil {
				return err
			}
		}
		_, err := intents.Insert(ctx, tx, &one)
		return err
	}))
}

// fulfil stores the link of a node that was changed, and notes in the intent that this is done.
func (s *Groups) fulfil(
	ctx context.Context, id, nodeID string, state questions.NodeState, link directory.Link,
) (*directory.Group, error) {
	nodeID, err := idOf(nodeID, state)
	if err != nil {
		return nil, err
	}
	return docstore.Write(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) (*directory.Group, error) {
		found, err := intents.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return nil, err
		}
		link := link
		if len(found) == 0 || found[0].NodeDone {
			link = directory.Link{ConnectionID: link.ConnectionID}
		} else {
			i := found[0]
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
		if unclear(err) {
			return nil, err
		}
		if apperr.IsNotFound(err) { // the node has gone meanwhile
			break
		}
		if err != nil && refused == nil {
			refused = partly(err)
		}
		if now != nil {
			g = now
		}
		if add, remove = add[n:], remove[m:]; len(add)+len(remove) > 0 {
			if err := s.left(ctx, id, add, remove); err != nil {
				return nil, err
			}
		}
	}
	return g, errors.Join(refused, s.drop(ctx, id))
}

// partly tells that a refusal is about some of the members only.
func partly(err error) error {
	e, ours := errors.AsType[*apperr.Error](err)
	if !ours {
		return err
	}
	return apperr.New(e.Kind, "the group is changed, but not all of its members: %s", e.Detail).Because(err)
}

// left notes in an intent which members are still to be changed, and that somebody is at work.
func (s *Groups) left(ctx context.Context, id string, add, remove []string) error {
	return docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		found, err := intents.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 {
			return err
		}
		found[0].Add, found[0].Remove, found[0].TimeDue = add, remove, tx.Now.Add(changeTakes)
		_, err = intents.Replace(ctx, tx, found[0])
		return err
	})
}

// changePresent is changeMembers that leaves out users who have gone meanwhile.
func (s *Groups) changePresent(ctx context.Context, g *directory.Group, add, remove []string) (
	*directory.Group, error,
) {
	change, err := s.Store.NewID(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.changeMembers(ctx, g.ConnectionID, change, g.ID, add, remove)
	if apperr.KindOf(err) != apperr.InvalidParameters {
		return now, err
	}
	existing, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: add})
	if err != nil {
		return nil, err
	}
	if change, err = s.Store.NewID(ctx); err != nil {
		return nil, err
	}
	return s.changeMembers(ctx, g.ConnectionID, change, g.ID, existing.IDs, remove)
}

// changeMembers adds and removes members, at most perChange together, and stores them in the copy.
func (s *Groups) changeMembers(
	ctx context.Context, connectionID, id, nodeID string, add, remove []string,
) (*directory.Group, error) {
	done, err := questions.ChangeMembers.Ask(ctx, s.Bus, questions.MembersChange{
		ID: id, NodeID: nodeID, Add: add, Remove: remove,
	})
	if unclear(err) && !bus.Unheard(err) {
		outcome, unsettled := questions.SettleChange.Ask(ctx, s.Bus, questions.ChangeID{ID: id})
		if unsettled != nil {
			return nil, apperr.Unknown(errors.Join(err, unsettled))
		}
		if outcome.Applied { // its memberships come by events
			done, err = questions.MembersChanged{}, nil
		}
	}
	if err != nil {
		return nil, toSCIMError(err)
	}
	if len(done.Unknown) > 0 {
		return nil, unknownMembers(done.Unknown)
	}
	return docstore.Write(docstore.OutsideTheAnswer(directory.InMembersTurn(ctx, nodeID)), s.Store,
		func(tx *docstore.Tx) (*directory.Group, error) {
			return directory.PutMembers(ctx, tx, connectionID, nodeID, done.Memberships, done.Ended)
		})
}

// tryOut answers a dry run.
func (s *Groups) tryOut(ctx context.Context, j job) (*directory.Group, error) {
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

func (s *Groups) drop(ctx context.Context, id string) error {
	return docstore.Do(docstore.OutsideTheAnswer(ctx), s.Store, func(tx *docstore.Tx) error {
		return intents.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// unclear reports whether it is unknown, after err, if the change was made. Every other error is a refusal.
func unclear(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Unavailable, apperr.OutcomeUnknown, apperr.Internal:
		return true
	}
	return false
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
