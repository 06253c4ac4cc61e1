package member

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// maxChanged is how many users one questions.MembersChange may add and remove.
const maxChanged = 1000

// NoteNode makes a change of a node that was not made yet, and notes it; see tree.Once.
func NoteNode(ctx context.Context, tx *docstore.Tx, id, objectCode, nodeID string, apply func() error) error {
	return changes.Once(ctx, tx, id, outcome{ObjectCode: objectCode, NodeID: nodeID}, apply)
}

// ApplyToNode adds users to a node and removes others, once: all or none. If some of the added are no users, nothing
// changes and the answer names them. The error is apperr.NotFound, InvalidParameters, InvalidState (a dynamic node, or
// MaxOfUser) or ManagedElsewhere.
func (s *Members) ApplyToNode(ctx context.Context, c questions.MembersChange) (questions.MembersChanged, error) {
	if len(c.Add)+len(c.Remove) > maxChanged {
		return questions.MembersChanged{}, apperr.Invalid("add", "has, with remove, more than %d ids", maxChanged)
	}
	c.Add, c.Remove = distinct(c.Add), distinct(c.Remove)
	unknown, err := s.unknown(ctx, c.Add)
	if err != nil || len(unknown) > 0 {
		return questions.MembersChanged{Unknown: unknown}, err
	}
	ids, err := s.Store.NewIDs(ctx, max(1, len(c.Add)))
	if err != nil {
		return questions.MembersChanged{}, err
	}
	ctx = ofNodes(ctx, c.NodeID)
	if !c.Unmanaged {
		ctx = tree.AsOwner(ctx)
	}
	if c.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	return again(func() (questions.MembersChanged, error) {
		return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (questions.MembersChanged, error) {
			var ended []questions.Membership
			if err := NoteNode(ctx, tx, c.ID, "", c.NodeID, func() (err error) {
				ended, err = applyToNode(ctx, tx, c, ids)
				return err
			}); err != nil {
				return questions.MembersChanged{}, err
			}
			has, err := placed(ctx, tx, c.NodeID, c.Add)
			return questions.MembersChanged{Unknown: []string{}, Memberships: has, Ended: ended}, err
		})
	})
}

func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// unknown returns those of the ids that are no users.
func (s *Members) unknown(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	existing, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: ids})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(existing.IDs, id) }), nil
}

// applyToNode makes a change that was not made yet. It returns the memberships that ended.
func applyToNode(
	ctx context.Context, tx *docstore.Tx, c questions.MembersChange, ids []string,
) ([]questions.Membership, error) {
	ended := []questions.Membership{}
	node, err := tree.Find(ctx, tx, c.NodeID)
	if err != nil {
		return nil, err
	}
	switch n := node[c.NodeID]; {
	case n == nil:
		return nil, apperr.Missing("tree node")
	case takesMembers(n) != nil:
		return nil, takesMembers(n)
	case c.Unmanaged:
		if err := tree.CheckOwned(ctx, tx.Peek(), n.ObjectCode, questions.OwnedMembers, "node_id"); err != nil {
			return nil, err
		}
	}
	there, err := loadPlaces(ctx, tx, c.NodeID, c.Remove)
	if err != nil {
		return nil, err
	}
	if len(there) > 0 {
		docs, err := endedDocs(ctx, tx, there)
		if err != nil {
			return nil, err
		}
		ended = docs
	}
	already, err := loadPlaces(ctx, tx, c.NodeID, c.Add)
	if err != nil {
		return nil, err
	}
	member := map[string]bool{}
	for _, m := range already {
		member[m.UserID] = true
	}
	var drafts []Draft
	for _, user := range c.Add {
		if !member[user] {
			drafts = append(drafts, Draft{c.NodeID, user, Profile{IsPrimary: "0", Role: "member"}})
		}
	}
	if len(drafts) == 0 {
		return ended, nil
	}
	_, err = insert(ctx, tx, ids, drafts, func(i int) string { return apperr.Item("add", i) })
	return ended, err
}

// endedDocs ends memberships with one event.
func endedDocs(ctx context.Context, tx *docstore.Tx, there []*Membership) ([]questions.Membership, error) {
	docs, err := drop(ctx, tx, there)
	if err != nil {
		return nil, err
	}
	ended := make([]questions.Membership, len(docs))
	for i := range docs {
		ended[i] = questions.Membership{ID: there[i].ID, NodeID: there[i].NodeID, UserID: there[i].UserID,
			Sequence: docstore.FirstSequence(docs[i].Revision())}
	}
	return ended, emitEnded(ctx, tx, docs)
}

func loadPlaces(ctx context.Context, tx *docstore.Tx, nodeID string, users []string) ([]*Membership, error) {
	var all []*Membership
	for part := range slices.Chunk(users, chunk) {
		loaded, err := members.LoadWhere(ctx, tx, inPlaces(nodeID, part), "", len(part))
		if err != nil {
			return nil, err
		}
		all = append(all, loaded...)
	}
	return all, nil
}

func inPlaces(nodeID string, users []string) docstore.Filter {
	places := make([]docstore.Value, len(users))
	for i, user := range users {
		places[i] = docstore.Text(place(nodeID, user))
	}
	return docstore.In(byPlace, places...)
}

// placed are the memberships of users in a node, with the greatest sequence of an event about each.
func placed(ctx context.Context, r docstore.Reader, nodeID string, users []string) ([]questions.Membership, error) {
	has := []questions.Membership{}
	for part := range slices.Chunk(users, chunk) {
		err := members.Each(ctx, r, inPlaces(nodeID, part), func(d Doc) error {
			m, err := d.Value()
			if err == nil {
				has = append(has, questions.Membership{ID: m.ID, NodeID: m.NodeID, UserID: m.UserID,
					Sequence: docstore.FirstSequence(d.Revision()+1) - 1})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return has, nil
}
