package member

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// ApplyMany makes a change of several users, once: of all or of none. The error is one of Apply's, with the faults of a
// user at ids[n].
func (s *Members) ApplyMany(ctx context.Context, c questions.MembershipsChange) (questions.Changed, error) {
	if err := s.mayHandOver(ctx, c.Held, c.FromNodeID, c.ToNodeID); err != nil {
		return questions.Changed{}, err
	}
	if c.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	ids, err := s.Store.NewIDs(ctx, len(c.UserIDs))
	if err != nil {
		return questions.Changed{}, err
	}
	ctx = ofNodes(ctx, c.FromNodeID, c.ToNodeID)
	return again(func() (questions.Changed, error) {
		return questions.Changed{}, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
			return once(ctx, tx, c.ID, "", func() error { return applyMany(ctx, tx, c, ids) })
		})
	})
}

func applyMany(ctx context.Context, tx *docstore.Tx, c questions.MembershipsChange, ids []string) error {
	if err := checkNodes(ctx, tx, questions.MembershipChange{
		ObjectCode: c.ObjectCode, FromNodeID: c.FromNodeID, ToNodeID: c.ToNodeID,
	}); err != nil {
		return err
	}
	old, already, err := present(ctx, tx, c)
	if err != nil {
		return err
	}
	var faults apperr.Faults
	var ended []*Membership
	var drafts []Draft
	var of []int // for each draft, which of the users it is of
	for i, user := range c.UserIDs {
		faults.Check(c.FromNodeID == "" || old[user] != nil, apperr.Item("ids", i), "is not a member of from_node_id")
		draft := Draft{NodeID: c.ToNodeID, UserID: user, Profile: Profile{IsPrimary: "0", Role: "member"}}
		if m := old[user]; m != nil {
			draft.Profile = m.Profile
			ended = append(ended, m)
		}
		if already[user] == nil {
			drafts, of = append(drafts, draft), append(of, i)
		}
	}
	if err := faults.Err(); err != nil || c.FromNodeID == c.ToNodeID {
		return err
	}
	if len(ended) > 0 {
		if err := endByHand(ctx, tx, ended); err != nil {
			return err
		}
	}
	if len(drafts) == 0 {
		return nil
	}
	_, err = insert(ctx, tx, ids, drafts, func(i int) string { return apperr.Item("ids", of[i]) })
	return apperr.Relocate(err, func(location string) string {
		user, _, _ := strings.Cut(location, ".")
		return user
	})
}

// present returns the users' memberships of the old node and of the new one, by user.
func present(ctx context.Context, tx *docstore.Tx, c questions.MembershipsChange) (
	old, already map[string]*Membership, err error,
) {
	var places []docstore.Value
	for _, user := range c.UserIDs {
		places = append(places, docstore.Text(place(c.ToNodeID, user)))
		if c.FromNodeID != "" && c.FromNodeID != c.ToNodeID {
			places = append(places, docstore.Text(place(c.FromNodeID, user)))
		}
	}
	old, already = map[string]*Membership{}, map[string]*Membership{}
	for part := range slices.Chunk(places, chunk) {
		there, err := members.LoadWhere(ctx, tx, docstore.In(byPlace, part...), "", len(part))
		if err != nil {
			return nil, nil, err
		}
		for _, m := range there {
			if m.NodeID == c.ToNodeID {
				already[m.UserID] = m
			}
			if m.NodeID == c.FromNodeID {
				old[m.UserID] = m
			}
		}
	}
	return old, already, nil
}
