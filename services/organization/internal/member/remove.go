package member

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// Remove ends one membership. The error is apperr.NotFound, InvalidState (dynamic) or VersionMismatch.
func (s *Members) Remove(ctx context.Context, id string) error {
	ctx, err := s.ofMemberships(ctx, docstore.ID(id))
	if err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		m, err := members.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		return endByHand(ctx, tx, []*Membership{m})
	})
}

// RemoveMany ends those of the memberships that exist, all or nothing, and returns their number. The error is
// apperr.InvalidState (dynamic).
func (s *Members) RemoveMany(ctx context.Context, ids []string) (int, error) {
	ctx, err := s.ofMemberships(ctx, docstore.ID(ids...))
	if err != nil {
		return 0, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (int, error) {
		ended, err := members.LoadMany(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		return len(ended), endByHand(ctx, tx, ended)
	})
}

// RemoveFrom is RemoveMany for users of one node.
func (s *Members) RemoveFrom(ctx context.Context, nodeID string, users []string) (int, error) {
	return docstore.Write(ofNodes(ctx, nodeID), s.Store, func(tx *docstore.Tx) (int, error) {
		places := make([]docstore.Value, len(users))
		for i, user := range users {
			places[i] = docstore.Text(place(nodeID, user))
		}
		there, err := find(ctx, tx, byPlace, places)
		if err != nil {
			return 0, err
		}
		ids := make([]string, len(there))
		for i, m := range there {
			ids[i] = m.ID
		}
		ended, err := members.LoadMany(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		return len(ended), endByHand(ctx, tx, ended)
	})
}

func endByHand(ctx context.Context, tx *docstore.Tx, ended []*Membership) error {
	for _, m := range ended {
		if m.Dynamic {
			return errDynamic
		}
	}
	for _, code := range codes(slices.Values(ended), func(m *Membership) string { return m.ObjectCode }) {
		if err := tree.CheckOwned(ctx, tx.Peek(), code, questions.OwnedMembers, ""); err != nil {
			return err
		}
	}
	return end(ctx, tx, ended)
}

// end deletes loaded memberships, each with its event.
func end(ctx context.Context, tx *docstore.Tx, ended []*Membership) error {
	docs, err := drop(ctx, tx, ended)
	if err != nil {
		return err
	}
	batches := make([][]Doc, len(docs))
	for i := range docs {
		batches[i] = docs[i : i+1]
	}
	return emitEnded(ctx, tx, batches...)
}

// drop deletes loaded memberships without events, subtracts them from the counts of their nodes, and gives users
// another primary one.
func drop(ctx context.Context, tx *docstore.Tx, ended []*Membership) ([]Doc, error) {
	primaries, err := heirs(ctx, tx, ended) // first, because writes that wait are sent before a query
	if err != nil {
		return nil, err
	}
	docs := make([]Doc, len(ended))
	less := map[string]int64{}
	for i, m := range ended {
		if docs[i], err = members.Delete(ctx, tx, m); err != nil {
			return nil, err
		}
		less[m.NodeID]--
	}
	for id, n := range less {
		node, err := tree.Load(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if node[id] == nil {
			continue // the node is deleted, and this membership with it
		}
		if err := tree.CountMembers(ctx, tx, node[id], n); err != nil {
			return nil, err
		}
	}
	for _, m := range primaries {
		m.IsPrimary = "1"
		if err := replace(ctx, tx, m); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// heirs loads the memberships that become primary when others end: of each user who loses the primary one in a tree,
// the oldest of those that stay.
func heirs(ctx context.Context, tx *docstore.Tx, ended []*Membership) (found []*Membership, _ error) {
	ends := make(map[string]bool, len(ended))
	for _, m := range ended {
		ends[m.ID] = true
	}
	var losers []docstore.Value
	for _, m := range ended {
		if m.IsPrimary == "1" {
			losers = append(losers, docstore.Text(inTree(m.UserID, m.ObjectCode)))
		}
	}
	has := map[string]bool{}
	for part := range slices.Chunk(losers, chunk) {
		all, err := members.LoadWhere(ctx, tx, docstore.In(byUser, part...), "", len(part)*mostOfUser)
		if err != nil {
			return nil, err
		}
		for _, m := range all { // in the order of their ids: the oldest first
			if who := inTree(m.UserID, m.ObjectCode); !has[who] && !ends[m.ID] && !m.Dynamic {
				has[who], found = true, append(found, m)
			}
		}
	}
	return found, nil
}

// OnRemove ends the memberships of a node in the transaction that deletes it: at most one batch. Upkeep ends the
// rest, which is no longer shown.
func (s *Members) OnRemove(ctx context.Context, tx *docstore.Tx, n *tree.Node) error {
	if err := forgetUpkeep(ctx, tx, n.ID); err != nil || n.MemberCount == 0 {
		return err
	}
	return s.endFrom(ctx, tx, &upkeep{Meta: docstore.Meta{ID: n.ID}, ObjectCode: n.ObjectCode, NodeVersion: n.Version,
		End: true})
}

// batch is how many memberships of one node end in one transaction, with one event.
const batch = 1000

// endSome ends a batch of a node's memberships, all kinds if the node is deleted, otherwise the dynamic ones. It starts
// after an order and returns where it stopped, "" at the end.
func endSome(ctx context.Context, tx *docstore.Tx, u *upkeep) (next string, err error) {
	filter := docstore.Prefix(byOrder, u.ID+"/")
	if u.Cursor != "" {
		filter = docstore.And(filter, docstore.Above(byOrder, u.Cursor))
	}
	loaded, err := members.LoadWhere(ctx, tx, filter, byOrder, batch)
	if err != nil || len(loaded) == 0 {
		return "", err
	}
	if len(loaded) == batch {
		next = loaded[batch-1].order()
	}
	node, err := tree.Find(ctx, tx, u.ID)
	if err != nil {
		return "", err
	}
	ended := slices.DeleteFunc(loaded, func(m *Membership) bool { return node[u.ID] != nil && !m.Dynamic })
	if len(ended) == 0 {
		return next, nil
	}
	docs, err := drop(ctx, tx, ended)
	if err != nil {
		return "", err
	}
	return next, emitEnded(ctx, tx, docs)
}
