package tree

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Once makes a change of a node that was not made yet, and stores its outcome; see package change.
type Once func(ctx context.Context, tx *docstore.Tx, changeID, objectCode, nodeID string, apply func() error) error

// ApplyChange makes a change of one node, once. The error is one of Create's, Update's or SetStatus's, HasChildren
// (disabling a node above others), VersionMismatch, or InvalidState for a dynamic node, a pointer or the root.
func (s *Trees) ApplyChange(ctx context.Context, c questions.NodeChange, once Once) (questions.NodeState, error) {
	ctx = AsOwner(ctx)
	if c.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	if c.Action == questions.CreateNode {
		return s.applyNew(ctx, c, once)
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.NodeState, error) {
		err := once(ctx, tx, c.ID, c.ObjectCode, c.NodeID, func() error { return s.apply(ctx, tx, c) })
		if err != nil {
			return questions.NodeState{}, err
		}
		return nodeState(State(ctx, tx, c.NodeID))
	})
}

func nodeState(node json.RawMessage, sequence int64, err error) (questions.NodeState, error) {
	return questions.NodeState{Node: node, Sequence: sequence}, err
}

// applyNew makes a node below the root.
func (s *Trees) applyNew(ctx context.Context, c questions.NodeChange, once Once) (questions.NodeState, error) {
	draft := Draft{}
	if err := profileOf(c.Node, &draft.Profile); err != nil {
		return questions.NodeState{}, err
	}
	created, err := s.createOnce(ctx, c, draft, once)
	return created, err
}

// createOnce is Create, with the note of the change in its transaction.
func (s *Trees) createOnce(
	ctx context.Context, c questions.NodeChange, draft Draft, once Once,
) (questions.NodeState, error) {
	var faults apperr.Faults
	draft.check(&faults)
	if err := faults.Err(); err != nil {
		return questions.NodeState{}, err
	}
	if draft.IsDynamic == "1" || draft.IsPointer == "1" {
		return questions.NodeState{}, apperr.Invalid("node", "must have members of its own")
	}
	ids, err := s.Store.NewIDs(ctx, 1)
	if err != nil {
		return questions.NodeState{}, err
	}
	return docstore.Write(inTurn(ctx, c.ObjectCode), s.Store, func(tx *docstore.Tx) (questions.NodeState, error) {
		made := false
		if err := once(ctx, tx, c.ID, c.ObjectCode, ids[0], func() error {
			made = true
			o, err := countNodes(ctx, tx, c.ObjectCode, 1)
			if apperr.IsNotFound(err) {
				return apperr.Invalid("object_code", "is not a core object's code")
			}
			if err != nil {
				return err
			}
			if c.RootNodeID != "" && c.RootNodeID != o.RootNodeID {
				return apperr.Invalid("object_code", "is the code of another tree by now")
			}
			root, err := nodes.Load(ctx, tx, o.RootNodeID)
			if err != nil {
				return err
			}
			node := draft.node(ctx, ids[0], c.ObjectCode)
			node.place(root)
			root.ChildCount++
			if _, err := s.insert(ctx, tx, []*Node{node}, []int{0}, whole); err != nil {
				return err
			}
			_, err = nodes.Replace(ctx, tx, root)
			return err
		}); err != nil {
			return questions.NodeState{}, err
		}
		if !made { // by an earlier question; SettleChange has its state
			return questions.NodeState{}, apperr.New(apperr.InvalidState, "the change was made already")
		}
		return nodeState(State(ctx, tx, ids[0]))
	})
}

// profileOf sets the members that a change names.
func profileOf(change json.RawMessage, p *Profile) error {
	if len(change) == 0 {
		return nil
	}
	// else it would write into those of the record
	p.SysExtProps, p.FreeExtProps = slices.Clone(p.SysExtProps), slices.Clone(p.FreeExtProps)
	if err := json.Unmarshal(change, p); err != nil {
		return apperr.Invalid("node", "has a member of the wrong type").Because(err)
	}
	return nil
}

// apply makes a change of an existing node.
func (s *Trees) apply(ctx context.Context, tx *docstore.Tx, c questions.NodeChange) error {
	n, err := nodes.Load(ctx, tx, c.NodeID)
	if err != nil {
		return err
	}
	switch {
	case n.ObjectCode != c.ObjectCode:
		return apperr.Missing("tree node")
	case c.Version != 0 && c.Version != n.Version:
		return apperr.New(apperr.VersionMismatch, "the node has changed; its version is now %d", n.Version)
	case n.Depth == 0 || n.Dynamic() || n.IsPointer == "1":
		return apperr.New(apperr.InvalidState, "a root, a dynamic node and a pointer have no members by hand")
	case c.Action == questions.DisableNode && n.ChildCount > 0:
		return apperr.New(apperr.HasChildren, "the node has child nodes: %d", n.ChildCount)
	}
	status := map[string]string{questions.DisableNode: Disabled, questions.EnableNode: Enabled}[c.Action]
	if status == "" && c.Action != questions.UpdateNode {
		return apperr.Invalid("action", "must be create, update, disable or enable")
	}
	if status != "" {
		if _, err := s.setStatus(ctx, tx, n, status); err != nil {
			return err
		}
	}
	proposal := *n
	if err := profileOf(c.Node, &proposal.Profile); err != nil {
		return err
	}
	_, err = s.update(ctx, tx, n, &proposal)
	return err
}
