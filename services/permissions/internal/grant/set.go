package grant

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Set is a resource set. Its JSON form is the API's, the events' and the store's.
type Set struct {
	docstore.Meta
	ApplicationID string `json:"application_id" doc:"The application that it is of" example:"2001"`
	SetProfile
	MemberCount int64 `json:"member_count" readOnly:"true" doc:"Resources in it" example:"0"`
}

// SetProfile holds the members that create and update may set.
type SetProfile struct {
	Code        string `json:"code" required:"true" doc:"Unique in the application" example:"sales"`
	Name        string `json:"name" doc:"Up to 256 characters" example:"Sales"`
	Description string `json:"description" doc:"Up to 2000 characters"`
	IsGlobal    string `json:"is_global" enum:"1,0" example:"0" doc:"1: every application of the tenant may grant it"`
}

var sets = docstore.Define(docstore.Schema[Set]{
	Name: "resource_sets", Noun: "resource set",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Counts:   func(s *Set) []*int64 { return []*int64{&s.MemberCount} },
	Indexes: slices.Concat([]docstore.Index[Set]{
		docstore.Unique(docstore.ByText(byPlace, func(s *Set) string { return place(s.ApplicationID, s.Code) }),
			"code"),
		docstore.Facet(docstore.ByText(byApplication, func(s *Set) string { return s.ApplicationID }), byTimeCreated,
			byCode, byName),
		docstore.ByText(byCode, func(s *Set) string { return s.Code }),
		docstore.ByText(byName, func(s *Set) string { return s.Name }),
		docstore.ByText(byGlobal, func(s *Set) string { return flagged(s.IsGlobal) }),
		docstore.ByNumber(byTimeCreated, func(s *Set) docstore.Value { return docstore.Moment(s.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(s *Set) docstore.Value { return docstore.Moment(s.TimeModified) }),
	}, textindex.KeywordIndexes(func(s *Set) []string { return []string{s.Name, s.Code} })),
})

// SetDoc is a resource set as read or written.
type SetDoc = docstore.Doc[Set]

func (s *Set) check(faults *apperr.Faults) {
	checkID(faults, "application_id", s.ApplicationID)
	faults.Check(validCode.MatchString(s.Code), "code", codeForm)
	faults.Text("name", s.Name, maxName)
	faults.Prose("description", s.Description, maxDescription)
	faults.Switch("is_global", &s.IsGlobal, Off)
}

// CreateSet adds a resource set. apperr.InvalidParameters, AlreadyExists.
func (s *Grants) CreateSet(ctx context.Context, draft Set) (SetDoc, error) {
	var faults apperr.Faults
	draft.check(&faults)
	if err := faults.Err(); err != nil {
		return SetDoc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return SetDoc{}, err
	}
	return write(ctx, s, func(b *batch) (SetDoc, error) {
		set := Set{Meta: docstore.Meta{ID: id}, ApplicationID: draft.ApplicationID, SetProfile: draft.SetProfile}
		return insert(ctx, b, sets, setKind, &set)
	})
}

// Set returns a resource set; apperr.NotFound.
func (s *Grants) Set(ctx context.Context, id string) (SetDoc, error) {
	return sets.Find(ctx, s.Store, id)
}

// SetFilter selects resource sets. An empty member means any.
type SetFilter struct {
	docstore.Paging
	OfApplicationOrIDs
	textindex.Search
	Code          string        `query:"code" maxLength:"256"`
	IncludeGlobal docstore.Flag `query:"include_global" doc:"true adds the global resource sets of other applications"`
}

// Sets returns a page of resource sets. apperr.InvalidParameters (neither an application nor ids, paging).
func (s *Grants) Sets(ctx context.Context, f SetFilter) (docstore.Page[Set], error) {
	ids, err := f.readIDs()
	if err != nil {
		return docstore.Page[Set]{}, err
	}
	where := docstore.And(ofApplication(f.ApplicationID, f.IncludeGlobal.Or(false)), docstore.IDOrAll(ids...),
		docstore.EqOrAll(byCode, f.Code), textindex.HavingPart(f.Keyword))
	return sets.List(ctx, s.Store, where, f.Paging)
}

// UpdateSet replaces the profile of a resource set. Its code stays while rules name it. apperr.NotFound,
// InvalidParameters, AlreadyExists, InUse, VersionMismatch.
func (s *Grants) UpdateSet(ctx context.Context, id string, profile SetProfile) (SetDoc, error) {
	return write(ctx, s, func(b *batch) (SetDoc, error) {
		set, err := sets.Load(ctx, b.Tx, id)
		if err != nil {
			return SetDoc{}, err
		}
		before := set.Code
		set.SetProfile = profile
		var faults apperr.Faults
		set.check(&faults)
		if err := faults.Err(); err != nil {
			return SetDoc{}, err
		}
		if set.Code != before {
			n, err := rules.Count(ctx, b.Tx, docstore.Eq(bySet, docstore.Text(id)))
			if err != nil {
				return SetDoc{}, err
			}
			if err := apperr.InUseBy("the code cannot be changed while rules name the set by it",
				apperr.Use{What: "auth_rules", Count: n}); err != nil {
				return SetDoc{}, err
			}
		}
		return replace(ctx, b, sets, setKind, set)
	})
}

// DeleteSet removes a resource set with its members and the rules that grant it. apperr.NotFound, VersionMismatch.
func (s *Grants) DeleteSet(ctx context.Context, id string) (docstore.Deleted, error) {
	return write(ctx, s, func(b *batch) (docstore.Deleted, error) {
		set, err := sets.Load(ctx, b.Tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, deleteSet(ctx, b, set)
	})
}

func deleteSet(ctx context.Context, b *batch, set *Set) error {
	if err := remove(ctx, b, sets, setKind, set); err != nil {
		return err
	}
	of := docstore.Eq(bySet, docstore.Text(set.ID))
	if _, err := removeMembers(ctx, b, of); err != nil {
		return err
	}
	_, err := removeRules(ctx, b, of)
	return err
}
