package member

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// outcome is the outcome of a change that another service has asked for.
type outcome struct {
	change.Outcome
	UserID string `json:"user_id"` // "" if it is of several users
	// Of a change that is not one of memberships: the tree, or the node.
	ObjectCode string `json:"object_code,omitempty"`
	NodeID     string `json:"node_id,omitempty"`
}

var changes = change.DefineOutcomes(docstore.Schema[outcome]{Name: "membership_changes", Noun: "change"},
	func(o *outcome) *change.Outcome { return &o.Outcome })

// Apply makes a change, once. The error is apperr.InvalidParameters (no such tree, node or membership) or InvalidState
// (a dynamic node, or a change that was given up), or one of tree.MayJoin's.
func (s *Members) Apply(ctx context.Context, c questions.MembershipChange) (questions.Memberships, error) {
	if err := s.mayHandOver(ctx, c.Held, c.FromNodeID, c.ToNodeID); err != nil {
		return questions.Memberships{}, err
	}
	if c.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	ids, err := s.Store.NewIDs(ctx, 1)
	if err != nil {
		return questions.Memberships{}, err
	}
	ctx = ofNodes(ctx, c.FromNodeID, c.ToNodeID)
	return again(func() (questions.Memberships, error) {
		return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.Memberships, error) {
			if err := once(ctx, tx, c.ID, c.UserID, func() error { return apply(ctx, tx, c, ids) }); err != nil {
				return questions.Memberships{}, err
			}
			return memberships(ctx, tx, c.UserID)
		})
	})
}

// mayHandOver is tree.MayJoin for a change that may give the scopes held.
func (s *Members) mayHandOver(ctx context.Context, held *questions.Scopes, from, to string) error {
	if held == nil || from == to {
		return nil
	}
	return tree.MayJoinWith(ctx, s.Store, s.Bus, held.Set(), to)
}

// once makes a change of memberships that was not made yet. The error is apperr.InvalidState for one that was given up.
func once(ctx context.Context, tx *docstore.Tx, id, userID string, apply func() error) error {
	return changes.Once(ctx, tx, id, outcome{UserID: userID}, apply)
}

// Settle reports whether a change was made. If it was not, it is refused from then on.
func (s *Members) Settle(ctx context.Context, changeID string) (questions.ChangeOutcome, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.ChangeOutcome, error) {
		done, err := changes.Settle(ctx, tx, changeID)
		if err != nil || done == nil {
			return questions.ChangeOutcome{Memberships: questions.Memberships{Memberships: []json.RawMessage{}}}, err
		}
		outcome := questions.ChangeOutcome{Applied: true}
		if outcome.Memberships, err = memberships(ctx, tx, done.UserID); err != nil || done.NodeID == "" {
			return outcome, err
		}
		outcome.Node, outcome.Sequence, err = tree.State(ctx, tx, done.NodeID)
		return outcome, err
	})
}

// apply makes a change that was not made yet. The new membership has the profile of the old one.
func apply(ctx context.Context, tx *docstore.Tx, c questions.MembershipChange, ids []string) error {
	if err := checkNodes(ctx, tx, c); err != nil {
		return err
	}
	there, err := members.LoadWhere(ctx, tx, docstore.In(byPlace, docstore.Text(place(c.FromNodeID, c.UserID)),
		docstore.Text(place(c.ToNodeID, c.UserID))), "", 2)
	if err != nil {
		return err
	}
	var old, already *Membership
	for _, m := range there {
		if m.NodeID == c.ToNodeID {
			already = m
		} else {
			old = m
		}
	}
	if c.FromNodeID == c.ToNodeID {
		old = already
	}
	if c.FromNodeID != "" && old == nil {
		return apperr.Invalid("from_node_id", "is not a node of which the user is a member")
	}
	if c.FromNodeID == c.ToNodeID {
		return nil
	}
	draft := Draft{NodeID: c.ToNodeID, UserID: c.UserID, Profile: Profile{IsPrimary: "0", Role: "member"}}
	if old != nil {
		draft.Profile = old.Profile
		if err := endByHand(ctx, tx, []*Membership{old}); err != nil {
			return err
		}
	}
	if already != nil {
		return nil
	}
	_, err = insert(ctx, tx, ids, []Draft{draft}, whole)
	return apperr.Relocate(err, func(member string) string {
		if member == "node_id" {
			return "to_node_id"
		}
		return member
	})
}

// checkNodes refuses a change whose nodes are not of its tree, or whose new node is dynamic.
func checkNodes(ctx context.Context, tx *docstore.Tx, c questions.MembershipChange) error {
	if _, err := tree.ObjectByCode(ctx, tx, c.ObjectCode); apperr.IsNotFound(err) {
		return apperr.Invalid("object_code", "is not a core object's code")
	} else if err != nil {
		return err
	}
	nodes, err := tree.Find(ctx, tx, c.FromNodeID, c.ToNodeID)
	if err != nil {
		return err
	}
	var faults apperr.Faults
	from, to := nodes[c.FromNodeID], nodes[c.ToNodeID]
	faults.Check(to != nil && to.ObjectCode == c.ObjectCode, "to_node_id", "is not a node of this tree")
	if c.FromNodeID != "" {
		faults.Check(from != nil && from.ObjectCode == c.ObjectCode, "from_node_id", "is not a node of this tree")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	return takesMembers(to)
}

func memberships(ctx context.Context, r docstore.Reader, userID string) (questions.Memberships, error) {
	shown, err := ofUser(ctx, r, userID)
	has := questions.Memberships{Memberships: make([]json.RawMessage, len(shown))}
	for i := range shown {
		has.Memberships[i] = shown[i].JSON
	}
	return has, err
}

// DueChanges lists outcomes that are no longer needed.
func DueChanges(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return changes.Due(ctx, s, limit)
}

// Forget deletes an outcome that is no longer needed.
func (s *Members) Forget(ctx context.Context, id string) error {
	return changes.Forget(ctx, s.Store, id)
}
