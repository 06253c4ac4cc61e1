package grant

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Member is a resource in a set. Its JSON form is the API's, the events' and the store's.
type Member struct {
	docstore.Meta
	SetID        string   `json:"set_id" readOnly:"true" doc:"The set" example:"1048580"`
	ResourceID   string   `json:"resource_id" doc:"The resource" example:"1048578"`
	ResourceCode string   `json:"resource_code" doc:"Of the resource" example:"orders"`
	ResourceType string   `json:"resource_type" enum:"data,api,ui" doc:"Of the resource"`
	Actions      []string `json:"actions" doc:"Which of the resource's actions belong to the set; * means all" example:"[\"*\"]"`
}

const (
	bySet          = "set"
	byResource     = "resource"
	byResourceType = "resource_type"
	byResourceCode = "resource_code"
	byAction       = "action" // the resource and an action
)

var members = docstore.Define(docstore.Schema[Member]{
	Name: "resource_set_members", Noun: "member of the resource set",
	Sortable: []string{byTimeCreated, byResourceCode, byTimeModified},
	Indexes: []docstore.Index[Member]{
		docstore.Unique(docstore.ByText(byPlace, func(m *Member) string { return place(m.SetID, m.ResourceID) }),
			"resource_id"),
		docstore.Facet(docstore.ByText(bySet, func(m *Member) string { return m.SetID }), byTimeCreated,
			byResourceCode),
		docstore.ByText(byResource, func(m *Member) string { return m.ResourceID }),
		docstore.ByText(byResourceCode, func(m *Member) string { return m.ResourceCode }),
		docstore.ByText(byResourceType, func(m *Member) string { return m.ResourceType }),
		docstore.ByList(byAction, func(m *Member) []string { return actionEntries(m.ResourceID, m.Actions) }),
		docstore.ByNumber(byTimeCreated, func(m *Member) docstore.Value { return docstore.Moment(m.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(m *Member) docstore.Value { return docstore.Moment(m.TimeModified) }),
	},
})

// actionEntries are the entries in byAction for actions of a resource.
func actionEntries(resourceID string, actions []string) []string {
	if resourceID == "" {
		return nil
	}
	var entries []string
	seen := map[string]bool{}
	for _, code := range actions {
		if code != all && !seen[code] {
			entries = append(entries, place(resourceID, code))
		}
		seen[code] = true
	}
	return entries
}

// MemberDoc is a member as read or written.
type MemberDoc = docstore.Doc[Member]

// AddMember is AddMembers for one resource. It returns the member's JSON. Faults are located in the body itself.
func (s *Grants) AddMember(ctx context.Context, setID string, draft Member) (json.RawMessage, error) {
	ids, err := s.Store.NewIDs(ctx, 1)
	if err != nil {
		return nil, err
	}
	return write(ctx, s, func(b *batch) (json.RawMessage, error) {
		docs, err := addMembers(ctx, b, setID, ids, []Member{draft}, func(int) string { return "" })
		if err != nil {
			return nil, err
		}
		text, _, err := docs[0].Stored()
		return text, err
	})
}

// AddMembers adds resources to a set, all or none. A draft names its resource by id, or by code and type. Faults are
// located in the list members. apperr.NotFound, AlreadyExists, InvalidParameters (also for a resource of another
// application that is not global), Forbidden (see mayGive).
func (s *Grants) AddMembers(ctx context.Context, setID string, drafts []Member) (docstore.Batch, error) {
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return docstore.Batch{}, err
	}
	return write(ctx, s, func(b *batch) (docstore.Batch, error) {
		docs, err := addMembers(ctx, b, setID, ids, drafts, func(i int) string { return apperr.Item("members", i) })
		if err != nil {
			return docstore.Batch{}, err
		}
		return docstore.BatchOf(docs)
	})
}

// addMembers adds resources to a set; item is the location of a draft in the request.
func addMembers(
	ctx context.Context, b *batch, setID string, ids []string, drafts []Member, item func(i int) string,
) ([]MemberDoc, error) {
	set, err := sets.Load(ctx, b.Tx, setID)
	if err != nil {
		return nil, err
	}
	found, err := resourcesOf(ctx, b.Tx, set.ApplicationID, drafts)
	if err != nil {
		return nil, err
	}
	var faults apperr.Faults
	added := make([]*Member, len(drafts))
	for i, draft := range drafts {
		at := faults.Within(item(i))
		if found[i] == nil {
			at.Add(draft.namedBy(), "names neither a resource of the application nor exactly one global resource")
			continue
		}
		draft.check(at, found[i])
		if err := mayGive(ctx, found[i].Type, found[i].Code); err != nil {
			return nil, err
		}
		added[i] = &Member{docstore.Meta{ID: ids[i]}, setID, found[i].ID, found[i].Code, found[i].Type, draft.Actions}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	docs, err := insertMany(ctx, b, members, memberKind, item, added)
	if err != nil {
		return nil, err
	}
	set.MemberCount += int64(len(docs))
	_, err = sets.Replace(ctx, b.Tx, set)
	return docs, err
}

// namedBy is the member of a draft that names its resource.
func (m *Member) namedBy() string {
	if m.ResourceID != "" {
		return "resource_id"
	}
	return "resource_code"
}

// check checks the actions, which must be actions of the resource. No actions mean all.
func (m *Member) check(faults *apperr.Faults, r *Resource) {
	if len(m.Actions) == 0 {
		m.Actions = []string{all}
	}
	checkActions(faults, "actions", m.Actions)
	for i, code := range m.Actions {
		faults.Check(r.has(code), apperr.Item("actions", i), "is not an action of the resource")
	}
}

// resourcesOf finds the resources of drafts; see find.
func resourcesOf(ctx context.Context, tx *docstore.Tx, applicationID string, drafts []Member) ([]*Resource, error) {
	names := make([]name, len(drafts))
	for i, d := range drafts {
		names[i] = name{applicationID, d.ResourceID, d.ResourceType, d.ResourceCode}
	}
	return find(ctx, tx, resources, names)
}

// Members returns a page of a set's members. An empty code or kind (a resource type) means any. apperr.NotFound,
// InvalidParameters (paging).
func (s *Grants) Members(ctx context.Context, setID, code, kind string, p docstore.Paging) (docstore.Page[Member],
	error) {
	if _, err := sets.Find(ctx, s.Store, setID); err != nil {
		return docstore.Page[Member]{}, err
	}
	where := docstore.And(docstore.Eq(bySet, docstore.Text(setID)), docstore.EqOrAll(byResourceCode, code),
		docstore.EqOrAll(byResourceType, kind))
	return members.List(ctx, s.Store, where, p)
}

// Member returns a member of a set; apperr.NotFound.
func (s *Grants) Member(ctx context.Context, setID, id string) (MemberDoc, error) {
	doc, err := members.Find(ctx, s.Store, id)
	if err != nil {
		return doc, err
	}
	if m, err := doc.Value(); err != nil || m.SetID != setID {
		return MemberDoc{}, errOrMissing(err, "member of the resource set")
	}
	return doc, nil
}

// UpdateMember changes the actions of a member. apperr.NotFound, InvalidParameters, VersionMismatch.
func (s *Grants) UpdateMember(ctx context.Context, setID, id string, actions []string) (MemberDoc, error) {
	return write(ctx, s, func(b *batch) (MemberDoc, error) {
		m, err := members.Load(ctx, b.Tx, id)
		if err != nil || m.SetID != setID {
			return MemberDoc{}, errOrMissing(err, "member of the resource set")
		}
		r, err := resources.Load(ctx, b.Tx, m.ResourceID)
		if err != nil {
			return MemberDoc{}, err
		}
		m.Actions = actions
		var faults apperr.Faults
		m.check(&faults, r)
		if err := faults.Err(); err != nil {
			return MemberDoc{}, err
		}
		return replace(ctx, b, members, memberKind, m)
	})
}

// RemoveMember takes a resource out of a set. apperr.NotFound, VersionMismatch.
func (s *Grants) RemoveMember(ctx context.Context, setID, id string) (docstore.Deleted, error) {
	return write(ctx, s, func(b *batch) (docstore.Deleted, error) {
		m, err := members.Load(ctx, b.Tx, id)
		if err != nil || m.SetID != setID {
			return docstore.Deleted{}, errOrMissing(err, "member of the resource set")
		}
		return docstore.Deleted{ID: id}, deleteMembers(ctx, b, m)
	})
}

// removeMembers removes the members that a filter selects, at most atOnce, and returns how many.
func removeMembers(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := members.LoadWhere(ctx, b.Tx, where, "", atOnce)
	if err != nil {
		return 0, err
	}
	return len(found), deleteMembers(ctx, b, found...)
}

// deleteMembers deletes members and lowers the counts of their sets, unless these are deleted already.
func deleteMembers(ctx context.Context, b *batch, list ...*Member) error {
	fewer := map[string]int64{}
	for _, m := range list {
		if err := remove(ctx, b, members, memberKind, m); err != nil {
			return err
		}
		fewer[m.SetID]++
	}
	of, err := sets.LoadMany(ctx, b.Tx, slices.Sorted(maps.Keys(fewer)))
	if err != nil {
		return err
	}
	for _, set := range of {
		set.MemberCount -= fewer[set.ID]
		if _, err := sets.Replace(ctx, b.Tx, set); err != nil {
			return err
		}
	}
	return nil
}
