package member

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// Draft is a membership to add.
type Draft struct {
	NodeID string
	UserID string
	Profile
}

// Add makes a user a member. The error is apperr.InvalidParameters (no such node or user), AlreadyExists, InvalidState
// (a dynamic node, or MaxOfUser), Unavailable, or Forbidden (tree.MayJoin).
func (s *Members) Add(ctx context.Context, d Draft) (Shown, error) {
	return add(ctx, s, []Draft{d}, whole, func(shown []Shown) Shown { return shown[0] })
}

// AddMany makes users members, all or nothing, and returns the memberships in the same order. Faults are at items[i].
func (s *Members) AddMany(ctx context.Context, drafts []Draft) (docstore.Batch, error) {
	return add(ctx, s, drafts, item, func(shown []Shown) docstore.Batch {
		added := docstore.Batch{Items: make([]json.RawMessage, len(shown))}
		for i := range shown {
			added.Items[i] = shown[i].JSON
		}
		return added
	})
}

// whole and item return the location of a draft in a request: the draft is the body, or one of its items.
func whole(int) string  { return "" }
func item(i int) string { return apperr.Item("items", i) }

// add makes users members. at returns the location of a draft in the request; answer makes the result of the
// transaction from the memberships.
func add[R any](
	ctx context.Context, s *Members, drafts []Draft, at func(int) string, answer func([]Shown) R,
) (R, error) {
	var none R
	var faults apperr.Faults
	seen := map[string]bool{}
	for i := range drafts {
		d, here := &drafts[i], faults.Within(at(i))
		here.Check(d.NodeID != "", "node_id", "must not be empty")
		here.Check(d.UserID != "" && len(d.UserID) <= maxUserID, "user_id", "must have 1…%d characters", maxUserID)
		here.Check(!seen[place(d.NodeID, d.UserID)], "user_id", "is given twice")
		seen[place(d.NodeID, d.UserID)] = true
		d.check(here)
	}
	if err := faults.Err(); err != nil {
		return none, err
	}
	nodes := make([]string, len(drafts))
	for i := range drafts {
		nodes[i] = drafts[i].NodeID
	}
	if err := tree.MayJoin(ctx, s.Store, s.Bus, nodes...); err != nil {
		return none, err
	}
	if err := s.checkUsers(ctx, drafts, at); err != nil {
		return none, err
	}
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return none, err
	}
	ctx = ofNodes(ctx, nodes...)
	return again(func() (R, error) {
		return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
			docs, err := insert(ctx, tx, ids, drafts, at)
			if err != nil {
				return none, err
			}
			shown, err := show(ctx, tx.Peek(), docs...)
			if err != nil {
				return none, err
			}
			return answer(shown), nil
		})
	})
}

// again repeats a transaction that failed because a concurrent one has just given the user a primary membership.
func again[R any](write func() (R, error)) (R, error) {
	for tries := 1; ; tries++ {
		result, err := write()
		taken, ok := errors.AsType[*docstore.DuplicateError](err)
		if !ok || taken.Index != byPrimary || tries == 5 {
			return result, err
		}
	}
}

// checkUsers asks the users service whether all users exist, in one question.
func (s *Members) checkUsers(ctx context.Context, drafts []Draft, at func(int) string) error {
	wanted := map[string]bool{}
	for _, d := range drafts {
		wanted[d.UserID] = true
	}
	existing, err := questions.ExistingUsers.Ask(ctx, s.Bus, questions.UserIDs{IDs: slices.Sorted(maps.Keys(wanted))})
	if err != nil {
		return err
	}
	for _, id := range existing.IDs {
		delete(wanted, id)
	}
	var faults apperr.Faults
	for i, d := range drafts {
		faults.Within(at(i)).Check(!wanted[d.UserID], "user_id", "is not a user")
	}
	return faults.Err()
}

// insert adds checked drafts with new ids, and their events.
func insert(ctx context.Context, tx *docstore.Tx, ids []string, drafts []Draft, at func(int) string) ([]Doc, error) {
	nodes, err := loadNodes(ctx, tx, drafts, at)
	if err != nil {
		return nil, err
	}
	if err := checkHere(ctx, tx, drafts, at); err != nil {
		return nil, err
	}
	primaries, err := loadPrimaries(ctx, tx, nodes, drafts)
	if err != nil {
		return nil, err
	}
	chosen := choose(nodes, drafts, primaries)
	added := make([]*Membership, len(drafts))
	more := map[string]int64{}
	for i, d := range drafts {
		m := &Membership{Meta: docstore.Meta{ID: ids[i]}, ObjectCode: nodes[d.NodeID].ObjectCode, NodeID: d.NodeID,
			UserID: d.UserID, Profile: d.Profile}
		m.IsPrimary = "0"
		key := primary(m.ObjectCode, m.UserID)
		if it, ok := chosen[key]; ok && it == i {
			m.IsPrimary = "1"
			if before := primaries[key]; before != nil {
				if err := demote(ctx, tx, before); err != nil {
					return nil, err
				}
			}
		}
		added[i] = m
		more[d.NodeID]++
	}
	docs, err := members.InsertMany(ctx, tx, at, added...)
	if err != nil {
		return nil, err
	}
	for id, n := range more {
		if err := tree.CountMembers(ctx, tx, nodes[id], n); err != nil {
			return nil, err
		}
	}
	return docs, emit(ctx, tx, "created", docs...)
}

// choose returns which draft becomes a user's primary membership in a tree: the last that asks for it, otherwise the
// first if the user has none.
func choose(nodes map[string]*tree.Node, drafts []Draft, primaries map[string]*Membership) map[string]int {
	chosen := map[string]int{}
	for i, d := range drafts {
		key := primary(nodes[d.NodeID].ObjectCode, d.UserID)
		if _, has := chosen[key]; d.IsPrimary == "1" || !has && primaries[key] == nil {
			chosen[key] = i
		}
	}
	return chosen
}

// loadNodes loads the nodes of the drafts, to count their members.
func loadNodes(ctx context.Context, tx *docstore.Tx, drafts []Draft, at func(int) string) (map[string]*tree.Node,
	error) {
	wanted := map[string]bool{}
	for _, d := range drafts {
		wanted[d.NodeID] = true
	}
	nodes, err := tree.Load(ctx, tx, slices.Sorted(maps.Keys(wanted))...)
	if err != nil {
		return nil, err
	}
	var faults apperr.Faults
	for i, d := range drafts {
		faults.Within(at(i)).Check(nodes[d.NodeID] != nil, "node_id", "is not a node")
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := takesMembers(n); err != nil {
			return nil, err
		}
	}
	for _, code := range codes(maps.Values(nodes), func(n *tree.Node) string { return n.ObjectCode }) {
		if err := tree.CheckOwned(ctx, tx.Peek(), code, questions.OwnedMembers, "node_id"); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// takesMembers refuses nodes whose members follow from elsewhere.
func takesMembers(n *tree.Node) error {
	switch {
	case n.Dynamic(): // even for users who meet the condition: a dynamic membership does not keep the profile
		return errDynamicNode
	case n.IsPointer == "1":
		return errPointer
	}
	return nil
}

// codes are the codes of the trees of nodes or memberships.
func codes[T any](all iter.Seq[T], code func(T) string) []string {
	var found []string
	for one := range all {
		if c := code(one); !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return found
}

// checkHere refuses users who have left since the users service was asked, who are members already, or who have too
// many memberships.
func checkHere(ctx context.Context, tx *docstore.Tx, drafts []Draft, at func(int) string) error {
	var users []string
	places := make([]docstore.Value, len(drafts))
	for i, d := range drafts {
		users = append(users, d.UserID)
		places[i] = docstore.Text(place(d.NodeID, d.UserID))
	}
	slices.Sort(users)
	users = slices.Compact(users)
	gone, err := departed(ctx, tx, users)
	if err != nil {
		return err
	}
	var faults apperr.Faults
	for i, d := range drafts {
		faults.Within(at(i)).Check(!gone[d.UserID], "user_id", "is not a user")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	var existing []*Membership
	if len(drafts) > 1 { // the index refuses the one that is taken; of several, the answer names all
		if existing, err = find(ctx, tx, byPlace, places); err != nil {
			return err
		}
	}
	taken := map[string]bool{}
	for _, m := range existing {
		taken[place(m.NodeID, m.UserID)] = true
	}
	var locations []string
	for i, d := range drafts {
		if taken[place(d.NodeID, d.UserID)] {
			locations = append(locations, apperr.Below(at(i), "user_id"))
		}
	}
	if len(locations) > 0 {
		return apperr.Taken(locations...)
	}
	return checkNumber(ctx, tx, users)
}

// checkNumber refuses users who have too many memberships. The transaction need not depend on their number: two that
// add memberships of one user conflict already, because both have looked for the person (see departed).
func checkNumber(ctx context.Context, tx *docstore.Tx, users []string) error {
	for part := range slices.Chunk(users, chunk) {
		of := make([]docstore.Filter, len(part))
		for i, user := range part {
			of[i] = docstore.Prefix(byUser, user+"/")
		}
		// Few users have many memberships, so one look suffices for nearly every request.
		all, err := members.Count(ctx, tx.Peek(), docstore.Or(of...))
		if err != nil {
			return err
		}
		if all < MaxOfUser {
			continue
		}
		for _, one := range of {
			if err := members.CheckLimit(ctx, tx.Peek(), one, MaxOfUser,
				"a user has at most %d memberships"); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadPrimaries loads the primary memberships that the drafts' users have in the drafts' trees, by their index value.
func loadPrimaries(ctx context.Context, tx *docstore.Tx, nodes map[string]*tree.Node,
	drafts []Draft) (map[string]*Membership, error) {
	values := make([]docstore.Value, len(drafts))
	for i, d := range drafts {
		values[i] = docstore.Text(primary(nodes[d.NodeID].ObjectCode, d.UserID))
	}
	there := make(map[string]*Membership, len(drafts))
	for part := range slices.Chunk(values, chunk) {
		loaded, err := members.LoadWhere(ctx, tx, docstore.In(byPrimary, part...), "", len(part))
		if err != nil {
			return nil, err
		}
		for _, m := range loaded {
			there[primary(m.ObjectCode, m.UserID)] = m
		}
	}
	return there, nil
}

// chunk is how many index values are looked up together.
const chunk = 200

// find returns the memberships that have one of the values in an index.
func find(ctx context.Context, r docstore.Reader, index string, values []docstore.Value) ([]*Membership, error) {
	var all []*Membership
	for part := range slices.Chunk(values, chunk) {
		err := members.Each(ctx, r, docstore.In(index, part...), func(d Doc) error {
			m, err := d.Value()
			all = append(all, m)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// demote makes a loaded membership an ordinary one.
func demote(ctx context.Context, tx *docstore.Tx, m *Membership) error {
	m.IsPrimary = "0"
	return replace(ctx, tx, m)
}

func replace(ctx context.Context, tx *docstore.Tx, m *Membership) error {
	doc, err := members.Replace(ctx, tx, m)
	if err != nil || !doc.Changed() {
		return err
	}
	return emit(ctx, tx, "updated", doc)
}
