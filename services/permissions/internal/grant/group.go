package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// GroupMember says that a user belongs to a group. Its JSON form is the API's, the events' and the store's.
type GroupMember struct {
	docstore.Meta
	UnitID string `json:"auth_unit_id" doc:"The group's unit" example:"1048590"`
	UserID string `json:"user_id" doc:"The user" example:"1048601"`
}

const (
	byUnit = "unit"
	byUser = "user_id"
)

var groupMembers = docstore.Define(docstore.Schema[GroupMember]{
	Name: "auth_unit_members", Noun: "member of the group",
	Sortable: []string{byTimeCreated, byUser},
	Indexes: []docstore.Index[GroupMember]{
		docstore.Unique(docstore.ByText(byPlace, func(m *GroupMember) string { return place(m.UnitID, m.UserID) }),
			"user_id"),
		docstore.Facet(docstore.ByText(byUnit, func(m *GroupMember) string { return m.UnitID }), byTimeCreated, byUser),
		docstore.ByText(byUser, func(m *GroupMember) string { return m.UserID }),
		docstore.ByNumber(byTimeCreated, func(m *GroupMember) docstore.Value { return docstore.Moment(m.TimeCreated) }),
	},
})

// GroupMemberDoc is a member of a group as read or written.
type GroupMemberDoc = docstore.Doc[GroupMember]

// AddGroupMembers adds users to a group, all or none, and returns the new members. A user who is a member already is
// not an error. apperr.NotFound, InvalidParameters, InvalidState if the unit is not a group, Forbidden and Unavailable
// (see mayGain).
func (s *Grants) AddGroupMembers(ctx context.Context, unitID string, userIDs []string) (docstore.Batch, error) {
	var faults apperr.Faults
	for i, id := range userIDs {
		checkID(&faults, apperr.Item("user_ids", i), id)
	}
	if err := faults.Err(); err != nil {
		return docstore.Batch{}, err
	}
	if err := s.mayGain(ctx, unitID); err != nil {
		return docstore.Batch{}, err
	}
	ids, err := s.Store.NewIDs(ctx, len(userIDs))
	if err != nil {
		return docstore.Batch{}, err
	}
	return write(ctx, s, func(b *batch) (docstore.Batch, error) {
		if err := loadGroup(ctx, b.Tx, unitID); err != nil {
			return docstore.Batch{}, err
		}
		existing, err := groupMembers.LoadWhere(ctx, b.Tx, places(unitID, userIDs), "", len(userIDs))
		if err != nil {
			return docstore.Batch{}, err
		}
		known := map[string]bool{}
		for _, m := range existing {
			known[m.UserID] = true
			b.found(groupMemberKind, &m.Meta)
		}
		added := []GroupMemberDoc{}
		for i, user := range userIDs {
			if known[user] {
				continue
			}
			known[user] = true
			m := GroupMember{Meta: docstore.Meta{ID: ids[i]}, UnitID: unitID, UserID: user}
			doc, err := insert(ctx, b, groupMembers, groupMemberKind, &m)
			if err != nil {
				return docstore.Batch{}, err
			}
			added = append(added, doc)
		}
		return docstore.BatchOf(added)
	})
}

// places selects the memberships of users in a group.
func places(unitID string, userIDs []string) docstore.Filter {
	list := make([]docstore.Value, len(userIDs))
	for i, user := range userIDs {
		list[i] = docstore.Text(place(unitID, user))
	}
	return docstore.In(byPlace, list...)
}

// loadGroup checks that a unit is a group. It loads the unit, so that the transaction conflicts with its deletion.
func loadGroup(ctx context.Context, tx *docstore.Tx, id string) error {
	u, err := units.Load(ctx, tx, id)
	if err == nil && u.Type != group {
		return apperr.New(apperr.InvalidState, "only a group can have members")
	}
	return err
}

// GroupMembers returns a page of a group's members. apperr.NotFound, InvalidParameters (paging).
func (s *Grants) GroupMembers(ctx context.Context, unitID string, p docstore.Paging) (docstore.Page[GroupMember],
	error) {
	if _, err := units.Find(ctx, s.Store, unitID); err != nil {
		return docstore.Page[GroupMember]{}, err
	}
	return groupMembers.List(ctx, s.Store, docstore.Eq(byUnit, docstore.Text(unitID)), p)
}

// RemoveGroupMembers removes users from a group, all or none, and returns how many were members. A user who is not a
// member is not an error. apperr.NotFound, InvalidState if the unit is not a group.
func (s *Grants) RemoveGroupMembers(ctx context.Context, unitID string, userIDs []string) (int, error) {
	return write(ctx, s, func(b *batch) (int, error) {
		if err := loadGroup(ctx, b.Tx, unitID); err != nil {
			return 0, err
		}
		return removeGroupMembers(ctx, b, places(unitID, userIDs))
	})
}

// removeGroupMembers removes the members that a filter selects, at most atOnce, and returns how many.
func removeGroupMembers(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := groupMembers.LoadWhere(ctx, b.Tx, where, "", atOnce)
	if err != nil {
		return 0, err
	}
	for _, m := range found {
		if err := remove(ctx, b, groupMembers, groupMemberKind, m); err != nil {
			return 0, err
		}
	}
	return len(found), nil
}
