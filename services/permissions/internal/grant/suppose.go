package grant

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// Supposed are changes that are not made.
type Supposed struct {
	Grant    []Proposal   `json:"grant"`
	Revoke   []string     `json:"revoke"` // rules
	Moves    []Move       `json:"moves"`  // one after the other
	Statuses []NodeStatus `json:"statuses"`
}

// Proposal is a rule for an identity.
type Proposal struct {
	Identity Identity    `json:"identity"`
	Rule     RuleProfile `json:"rule"`
}

// Move puts a node below another one of its tree.
type Move struct {
	NodeID   string `json:"node_id"`
	ParentID string `json:"parent_id"`
}

// NodeStatus enables a node, or disables it.
type NodeStatus struct {
	NodeID string `json:"node_id"`
	Status string `json:"status"` // "1" or "0"
}

// Suppose makes a hypothesis of changes to a state of the context's tenant. The rules are checked as Grant checks them,
// and against the store; the rest against the state. apperr.InvalidParameters, InvalidState (see MaxConditions).
func (s *Grants) Suppose(ctx context.Context, state *engine.State, changes Supposed) (*engine.Hypothesis, error) {
	h := state.Suppose()
	var faults apperr.Faults
	for i := range changes.Grant {
		at := faults.Within(apperr.Item("grant", i))
		changes.Grant[i].Identity.check(at.Within("identity"))
		changes.Grant[i].Rule.check(at.Within("rule"))
	}
	for i, id := range changes.Revoke {
		faults.Check(h.Revoke(id), apperr.Item("revoke", i), "is not the id of a rule")
	}
	for i, move := range changes.Moves {
		move.check(h, faults.Within(apperr.Item("moves", i)))
	}
	for i, status := range changes.Statuses {
		found := h.Switch(status.NodeID, status.Status == "0")
		faults.Check(found, apperr.Below(apperr.Item("statuses", i), "node_id"), "is not the id of a node")
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return h, s.propose(ctx, h, changes.Grant)
}

func (m *Move) check(h *engine.Hypothesis, faults *apperr.Faults) {
	const at = "parent_id"
	switch err := h.Move(m.NodeID, m.ParentID); {
	case errors.Is(err, engine.ErrNoNode):
		faults.Add("node_id", "is not the id of a node")
	case errors.Is(err, engine.ErrBelow):
		faults.Add(at, "must not be the node itself or one below it")
	case err != nil:
		faults.Add(at, "is not a node of this tree")
	}
}

// propose adds rules to a hypothesis.
func (s *Grants) propose(ctx context.Context, h *engine.Hypothesis, proposals []Proposal) error {
	profiles := make([]RuleProfile, len(proposals))
	for i := range proposals {
		profiles[i] = proposals[i].Rule
	}
	if len(profiles) == 0 {
		return nil
	}
	if err := s.checkConditions(ctx, profiles...); err != nil {
		return err
	}
	resolved, err := docstore.Write(docstore.WithDryRun(ctx), s.Store, func(tx *docstore.Tx) ([]RuleProfile, error) {
		resolved := slices.Clone(profiles)
		return resolved, resolve(ctx, tx, resolved, func(i int) string {
			return apperr.Below(apperr.Item("grant", i), "rule")
		})
	})
	if err != nil {
		return err
	}
	for i := range resolved {
		who := proposals[i].Identity
		h.Grant(engine.Identity{Type: who.Type, ID: who.IdentityID}, who.Name, *resolved[i].Engine())
	}
	return nil
}
