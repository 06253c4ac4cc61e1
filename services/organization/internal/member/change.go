package member

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

var (
	errDynamic = apperr.New(apperr.InvalidState,
		"the membership follows from the node's condition: it cannot be changed or removed")
	errPointer     = apperr.New(apperr.InvalidState, "the members of a pointer are those of its target")
	errDynamicNode = apperr.New(apperr.InvalidState,
		"the node is dynamic: its members are the users who meet its condition, and none can be added")
)

// Get returns a membership. The error is apperr.NotFound.
func (s *Members) Get(ctx context.Context, id string) (Shown, error) {
	doc, err := members.Find(ctx, s.Store, id)
	if err != nil {
		return Shown{}, err
	}
	return one(ctx, s.Store, doc)
}

func one(ctx context.Context, r docstore.Reader, doc Doc) (Shown, error) {
	shown, err := show(ctx, r, doc)
	if err != nil {
		return Shown{}, err
	}
	if len(shown) == 0 {
		return Shown{}, apperr.Missing("membership")
	}
	return shown[0], nil
}

// Update applies edit to the profile. The error is apperr.NotFound, InvalidParameters, InvalidState (dynamic) or
// VersionMismatch.
func (s *Members) Update(ctx context.Context, id string, edit func(*Membership) error) (Shown, error) {
	return again(func() (Shown, error) {
		return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Shown, error) {
			m, err := members.Load(ctx, tx, id)
			if err != nil {
				return Shown{}, err
			}
			doc, err := update(ctx, tx, m, edit)
			if err != nil {
				return Shown{}, err
			}
			return one(ctx, tx.Peek(), doc)
		})
	})
}

func update(ctx context.Context, tx *docstore.Tx, m *Membership, edit func(*Membership) error) (Doc, error) {
	proposal := *m
	if err := edit(&proposal); err != nil {
		return Doc{}, err
	}
	var faults apperr.Faults
	proposal.check(&faults)
	const stays = "cannot change: add the user to the other node and remove this membership"
	faults.Check(proposal.NodeID == m.NodeID, "node_id", stays)
	faults.Check(proposal.UserID == m.UserID, "user_id", stays)
	faults.Check(m.Dynamic || m.IsPrimary != "1" || proposal.IsPrimary == "1", "is_primary",
		"cannot be taken away: make another membership in this tree the primary one")
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if m.Dynamic && proposal.Profile != m.Profile {
		return Doc{}, errDynamic
	}
	if proposal.IsPrimary == "1" && m.IsPrimary != "1" {
		before, err := members.LoadWhere(ctx, tx, docstore.Eq(byPrimary,
			docstore.Text(primary(m.ObjectCode, m.UserID))), "", 1)
		if err != nil {
			return Doc{}, err
		}
		for _, b := range before {
			if err := demote(ctx, tx, b); err != nil {
				return Doc{}, err
			}
		}
	}
	m.Profile = proposal.Profile
	doc, err := members.Replace(ctx, tx, m)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	return doc, emit(ctx, tx, "updated", doc)
}
