package user

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// OrganizationChange asks for a move from one tree node to another. FromNodeID may be empty: then it is an addition.
type OrganizationChange struct {
	UserID     string `json:"user_id"`
	ObjectCode string `json:"object_code"`
	FromNodeID string `json:"from_node_id,omitempty"`
	ToNodeID   string `json:"to_node_id"`
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Memberships is the answer: the user's memberships as they now stand, as the organization service tells them.
type Memberships struct {
	Memberships json.RawMessage `json:"memberships"`
}

// ChangeOrganization has the organization service move the user, all or nothing. apperr.NotFound, InvalidState (resigned),
// Unavailable where that service does not answer, and its own refusals.
func (s *Users) ChangeOrganization(ctx context.Context, change OrganizationChange) (Memberships, error) {
	// All that can be refused here is refused before the other service is asked: what it did is not undone.
	if _, err := docstore.Write(docstore.Aside(ctx), s.Store, func(tx *docstore.Tx) (struct{}, error) {
		u, err := s.load(ctx, tx, change.UserID)
		if err == nil && u.Status == Resigned {
			err = errResigned
		}
		return struct{}{}, err
	}); err != nil {
		return Memberships{}, err
	}
	change.DryRun = docstore.IsDryRun(ctx)
	answer, err := bus.Ask[Memberships](ctx, s.Bus, "organization", "change-membership", change)
	if err != nil {
		return Memberships{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Memberships, error) {
		doc, err := users.Find(ctx, tx, change.UserID)
		if apperr.IsNotFound(err) { // deleted meanwhile: user.deleted ends the new membership too
			return answer, nil
		}
		if err != nil {
			return Memberships{}, err
		}
		return answer, emit(ctx, tx, "organization_changed", &doc, map[string]any{
			"object_code": change.ObjectCode, "from_node_id": change.FromNodeID, "to_node_id": change.ToNodeID,
		})
	})
}
