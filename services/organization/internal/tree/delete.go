package tree

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Delete deletes a node of the tree that objectCode names; its members and associations end. With refuse, it fails if
// something is granted to the node. The error is apperr.NotFound, HasChildren, InvalidState (a root), InUse (pointers,
// grants), Unavailable or VersionMismatch.
func (s *Trees) Delete(ctx context.Context, id, objectCode string, refuse bool) (docstore.Deleted, error) {
	if refuse {
		n, err := s.find(ctx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if n.ObjectCode != objectCode {
			return docstore.Deleted{}, apperr.Missing("tree node")
		}
		if err := s.checkGrants(ctx, questions.GrantedNode{ObjectCode: objectCode, NodeID: id}); err != nil {
			return docstore.Deleted{}, err
		}
	}
	return docstore.Write(inTurn(ctx, objectCode), s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		n, err := nodes.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		switch {
		case n.ObjectCode != objectCode:
			return docstore.Deleted{}, apperr.Missing("tree node")
		case n.ChildCount > 0:
			return docstore.Deleted{}, apperr.New(apperr.HasChildren, "the node has child nodes: %d", n.ChildCount)
		case n.Depth == 0:
			return docstore.Deleted{}, apperr.New(apperr.InvalidState, "a root is deleted with its core object")
		}
		if _, err := countNodes(ctx, tx, n.ObjectCode, -1); err != nil {
			return docstore.Deleted{}, err
		}
		parent, err := nodes.Load(ctx, tx, n.ParentID)
		if err != nil {
			return docstore.Deleted{}, err
		}
		parent.ChildCount--
		if _, err := nodes.Replace(ctx, tx, parent); err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, s.remove(ctx, tx, n)
	})
}

// remove deletes a loaded node without children.
func (s *Trees) remove(ctx context.Context, tx *docstore.Tx, n *Node) error {
	if err := checkPointedAt(ctx, tx, n.ID); err != nil {
		return err
	}
	doc, err := nodes.Delete(ctx, tx, n)
	if err != nil {
		return err
	}
	if n.Dynamic() {
		if err := discharge(ctx, tx, n); err != nil {
			return err
		}
	}
	if err := s.OnRemove(ctx, tx, n); err != nil {
		return err
	}
	return emit(ctx, tx, "deleted", &doc, nil)
}

// checkGrants returns apperr.InUse if something is granted to the node, and apperr.Unavailable if the question has no
// answer.
func (s *Trees) checkGrants(ctx context.Context, q questions.GrantedNode) error {
	grants, err := questions.GrantsOfNode.Ask(ctx, s.Bus, q)
	if err != nil {
		return err
	}
	return apperr.InUseBy("something is granted to the node", apperr.Use{What: "auth_rules", Count: grants.Count})
}
