package tree

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// The statuses of nodes. A disabled node keeps its members, and grants them nothing.
const (
	Enabled  = "1"
	Disabled = "0"
)

// SetStatus enables or disables a node and, with recursive, all nodes below it, and returns the node. Each node that
// changes has its event. The error is apperr.NotFound, InvalidParameters (MaxMoved) or VersionMismatch.
func (s *Trees) SetStatus(ctx context.Context, id string, enabled, recursive bool) (Doc, error) {
	status := Disabled
	if enabled {
		status = Enabled
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		n, err := nodes.Load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		doc, err := s.setStatus(ctx, tx, n, status)
		if err != nil || !recursive {
			return doc, err
		}
		_, err = each(ctx, tx, n.Path, MaxMoved+1, func(below *Node) error {
			if below.ID == id {
				return nil
			}
			_, err := s.setStatus(ctx, tx, below, status)
			return err
		})
		return doc, err
	})
}

// setStatus sets the status of a loaded node.
func (s *Trees) setStatus(ctx context.Context, tx *docstore.Tx, n *Node, status string) (Doc, error) {
	if n.Status != status {
		n.Status, n.OperatorID = status, request.From(ctx).Actor
	}
	doc, err := nodes.Replace(ctx, tx, n)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	action := map[string]string{Disabled: "disabled", Enabled: "enabled"}[status]
	return doc, emit(ctx, tx, action, &doc, nil)
}
