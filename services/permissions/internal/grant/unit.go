package grant

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Unit is an authorization unit: an identity that something is granted to. Its JSON form is the API's, the events' and
// the store's.
type Unit struct {
	docstore.Meta
	Identity
	Description string `json:"description" doc:"Up to 2000 characters"`
	RuleCount   int64  `json:"rule_count" readOnly:"true" doc:"The number of its own rules, without inherited ones" example:"1"`
}

// Identity is who or what a unit's rules are for.
type Identity struct {
	IdentityID string `json:"identity_id" required:"true" doc:"The id of the user, node, core object, application or group; * of everyone" example:"1048601"`
	Type       string `json:"identity_type" required:"true" enum:"user,node,core_object,application,group,everyone" example:"node" doc:"Who it is: what identity_id is the id of"`
	Name       string `json:"identity_name" doc:"How it is shown" example:"Finance"`
}

// IdentityTypes are the types of identities.
var IdentityTypes = []string{"user", "node", "core_object", "application", "group", "everyone"}

const (
	group    = "group"
	everyone = "everyone"
)

const (
	byIdentity     = "identity"
	byIdentityID   = "identity_id"
	byIdentityType = "identity_type"
	byIdentityName = "identity_name"
)

var units = docstore.Define(docstore.Schema[Unit]{
	Name: "auth_units", Noun: "authorization unit",
	Sortable: []string{byTimeCreated, byIdentityName, byIdentityID, byTimeModified},
	Counts:   func(u *Unit) []*int64 { return []*int64{&u.RuleCount} },
	Indexes: slices.Concat([]docstore.Index[Unit]{
		docstore.Unique(docstore.ByText(byIdentity, func(u *Unit) string { return place(u.Type, u.IdentityID) }),
			"identity_id"),
		docstore.Facet(docstore.ByText(byIdentityType, func(u *Unit) string { return u.Type }), byTimeCreated,
			byIdentityName),
		docstore.ByText(byIdentityID, func(u *Unit) string { return u.IdentityID }),
		docstore.ByText(byIdentityName, func(u *Unit) string { return u.Name }),
		docstore.ByNumber(byTimeCreated, func(u *Unit) docstore.Value { return docstore.Moment(u.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(u *Unit) docstore.Value { return docstore.Moment(u.TimeModified) }),
	}, textindex.KeywordIndexes(func(u *Unit) []string { return u.names() })),
})

// names are what people know a unit by. The id of a group is chosen by people, other ids are not.
func (u *Unit) names() []string {
	if u.Type == group {
		return []string{u.Name, u.IdentityID}
	}
	return []string{u.Name}
}

// UnitDoc is an authorization unit as read or written.
type UnitDoc = docstore.Doc[Unit]

func (i *Identity) check(faults *apperr.Faults) {
	checkID(faults, "identity_id", i.IdentityID)
	faults.Check(slices.Contains(IdentityTypes, i.Type), "identity_type",
		"must be one of user, node, core_object, application, group, everyone")
	faults.Check((i.Type == everyone) == (i.IdentityID == all), "identity_id",
		"must be * for the type everyone, and for no other")
	faults.Text("identity_name", i.Name, maxName)
}

// CreateUnit adds an authorization unit. apperr.InvalidParameters, AlreadyExists.
func (s *Grants) CreateUnit(ctx context.Context, draft Unit) (UnitDoc, error) {
	var faults apperr.Faults
	draft.check(&faults)
	faults.Prose("description", draft.Description, maxDescription)
	if err := faults.Err(); err != nil {
		return UnitDoc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return UnitDoc{}, err
	}
	return write(ctx, s, func(b *batch) (UnitDoc, error) {
		u := Unit{Meta: docstore.Meta{ID: id}, Identity: draft.Identity, Description: draft.Description}
		return insert(ctx, b, units, unitKind, &u)
	})
}

// Unit returns an authorization unit; apperr.NotFound.
func (s *Grants) Unit(ctx context.Context, id string) (UnitDoc, error) {
	return units.Find(ctx, s.Store, id)
}

// IdentityFilter selects authorization units by their identities. An empty member means any.
type IdentityFilter struct {
	IdentityID   string `query:"identity_id" maxLength:"64"`
	IdentityType string `query:"identity_type" enum:"user,node,core_object,application,group,everyone"`
	IdentityName string `query:"identity_name" maxLength:"256"`
}

func (f IdentityFilter) where() docstore.Filter {
	return docstore.And(docstore.EqOrAll(byIdentityID, f.IdentityID), docstore.EqOrAll(byIdentityType, f.IdentityType),
		docstore.EqOrAll(byIdentityName, f.IdentityName))
}

// UnitFilter selects authorization units. An empty member means any.
type UnitFilter struct {
	docstore.Paging
	IdentityFilter
	textindex.Search
	docstore.Selection
}

// Units returns a page of authorization units. apperr.InvalidParameters (too many ids, paging).
func (s *Grants) Units(ctx context.Context, f UnitFilter) (docstore.Page[Unit], error) {
	var faults apperr.Faults
	ids := f.ReadIDs(&faults)
	if err := faults.Err(); err != nil {
		return docstore.Page[Unit]{}, err
	}
	where := docstore.And(f.IdentityFilter.where(), textindex.HavingPart(f.Keyword), docstore.IDOrAll(ids...))
	return units.List(ctx, s.Store, where, f.Paging)
}

// UpdateUnit lets edit change the identity and the description. The unit keeps its rules. apperr.NotFound,
// InvalidParameters, AlreadyExists, VersionMismatch, Forbidden and Unavailable (see mayGain).
func (s *Grants) UpdateUnit(ctx context.Context, id string, edit func(*Unit) error) (UnitDoc, error) {
	return write(ctx, s, func(b *batch) (UnitDoc, error) {
		u, err := units.Load(ctx, b.Tx, id)
		if err != nil {
			return UnitDoc{}, err
		}
		proposal := *u
		if err := edit(&proposal); err != nil {
			return UnitDoc{}, err
		}
		var faults apperr.Faults
		proposal.Identity.check(&faults)
		faults.Prose("description", proposal.Description, maxDescription)
		if err := faults.Err(); err != nil {
			return UnitDoc{}, err
		}
		if proposal.Type != u.Type || proposal.IdentityID != u.IdentityID {
			if err := s.mayGain(ctx, id); err != nil {
				return UnitDoc{}, err
			}
		}
		u.Identity, u.Description = proposal.Identity, proposal.Description
		return replace(ctx, b, units, unitKind, u)
	})
}

// DeleteUnit removes an authorization unit with its rules and, of a group, its members. apperr.NotFound,
// VersionMismatch.
func (s *Grants) DeleteUnit(ctx context.Context, id string) (docstore.Deleted, error) {
	return write(ctx, s, func(b *batch) (docstore.Deleted, error) {
		u, err := units.Load(ctx, b.Tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, deleteUnit(ctx, b, u)
	})
}

func deleteUnit(ctx context.Context, b *batch, u *Unit) error {
	if err := remove(ctx, b, units, unitKind, u); err != nil {
		return err
	}
	of := docstore.Eq(byUnit, docstore.Text(u.Meta.ID))
	if _, err := removeGroupMembers(ctx, b, of); err != nil {
		return err
	}
	_, err := removeRules(ctx, b, of)
	return err
}
