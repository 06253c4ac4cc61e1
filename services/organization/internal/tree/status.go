package tree

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// SetStatus enables or disables a node and, with recursive, all nodes below it, and returns the node. Each node that
// changes has its event. The error is apperr.NotFound, InvalidParameters (MaxMoved) or VersionMismatch.
func (s *Trees) SetStatus(ctx context.Context, id string, enabled, recursive bool) (Doc, error) {
	status, action := "0", "disabled"
	if enabled {
		status, action = "1", "enabled"
	}
	set := func(tx *docstore.Tx, n *Node) (Doc, error) {
		if n.Status != status {
			n.Status, n.OperatorID = status, request.From(ctx).Actor
		}
		doc, err := nodes.Replace(ctx, tx, n)
		if err != nil || !doc.Changed() {
			return doc, err
		}
		return doc, emit(ctx, tx, action, &doc, nil)
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		n, err := nodes.Load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		doc, err := set(tx, n)
		if err != nil || !recursive {
			return doc, err
		}
		_, err = each(ctx, tx, n.Path, MaxMoved+1, func(below *Node) error {
			if below.ID == id {
				return nil
			}
			_, err := set(tx, below)
			return err
		})
		return doc, err
	})
}
