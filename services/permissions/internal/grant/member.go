package grant

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Member is a resource in a set. Its JSON form is the API's, the events' and the store's.
type Member struct {
	docstore.Meta
	SetID        string   `json:"set_id"`
	ResourceID   string   `json:"resource_id"`
	ResourceCode string   `json:"resource_code"`
	ResourceType string   `json:"resource_type"`
	Actions      []string `json:"actions"`
}

const (
	bySet          = "set"
	byResource     = "resource"
	byResourceType = "resource_type"
	byResourceCode = "resource_code"
	byAction       = "action" // the resource and an action that is named
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
		docstore.ByList(byAction, func(m *Member) []string { return named(m.ResourceID, m.Actions) }),
		docstore.ByNumber(byTimeCreated, func(m *Member) docstore.Value { return docstore.Moment(m.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(m *Member) docstore.Value { return docstore.Moment(m.TimeModified) }),
	},
})

// named are the index entries of actions of a resource.
func named(resourceID string, actions []string) []string {
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

// AddMembers adds resources, each named by its id or by its code and type, to a set, all or none; listed says that the
// request has them in a list. apperr.NotFound, AlreadyExists,
// InvalidParameters for a resource that is neither the set's application's nor global.
func (s *Grants) AddMembers(ctx context.Context, setID string, drafts []Member, listed bool) ([]MemberDoc, error) {
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return nil, err
	}
	return write(ctx, s, func(b *batch) ([]MemberDoc, error) {
		set, err := sets.Load(ctx, b.Tx, setID)
		if err != nil {
			return nil, err
		}
		found, err := s.named(ctx, b.Tx, set.ApplicationID, drafts)
		if err != nil {
			return nil, err
		}
		var faults apperr.Faults
		added := make([]*Member, len(drafts))
		for i, draft := range drafts {
			at := faults.Within(item(listed, i))
			if found[i] == nil {
				at.Add(draft.namedBy(), "is no resource of this application, nor a global one")
				continue
			}
			draft.check(at, found[i])
			added[i] = &Member{docstore.Meta{ID: ids[i]}, setID, found[i].ID, found[i].Code, found[i].Type,
				draft.Actions}
		}
		if err := faults.Err(); err != nil {
			return nil, err
		}
		docs, err := members.InsertMany(ctx, b.Tx, func(i int) string { return item(listed, i) }, added...)
		if err != nil {
			return nil, err
		}
		for i := range docs {
			if err := tell(ctx, b, memberKind, created, &docs[i]); err != nil {
				return nil, err
			}
		}
		set.MemberCount += int64(len(docs))
		_, err = sets.Replace(ctx, b.Tx, set)
		return docs, err
	})
}

// item is the location of a draft in the request.
func item(listed bool, i int) string {
	if !listed {
		return ""
	}
	return apperr.Item("members", i)
}

func (m *Member) namedBy() string {
	if m.ResourceID != "" {
		return "resource_id"
	}
	return "resource_code"
}

// check checks the actions, which the resource must have; none are all.
func (m *Member) check(faults *apperr.Faults, r *Resource) {
	if len(m.Actions) == 0 {
		m.Actions = []string{all}
	}
	checkActions(faults, "actions", m.Actions)
	for i, code := range m.Actions {
		faults.Check(r.has(code), apperr.Item("actions", i), "is no action of the resource")
	}
}

// named finds the resources of drafts; nil for one that the application cannot group.
func (s *Grants) named(ctx context.Context, tx *docstore.Tx, applicationID string, drafts []Member) ([]*Resource,
	error) {
	names := make([]resourceName, len(drafts))
	for i, d := range drafts {
		names[i] = resourceName{d.ResourceID, d.ResourceType, d.ResourceCode}
	}
	return findResources(ctx, tx, applicationID, names)
}

// Members returns a page of a set's members; an empty code or type does not count. apperr.NotFound, InvalidParameters
// (paging).
func (s *Grants) Members(ctx context.Context, setID, code, kind string, p docstore.Paging) (docstore.Page[Member],
	error) {
	if _, err := sets.Find(ctx, s.Store, setID); err != nil {
		return docstore.Page[Member]{}, err
	}
	where := docstore.And(docstore.Eq(bySet, docstore.Text(setID)), equal(byResourceCode, code),
		equal(byResourceType, kind))
	return members.List(ctx, s.Store, where, p)
}

// Member returns a member of a set; apperr.NotFound.
func (s *Grants) Member(ctx context.Context, setID, id string) (MemberDoc, error) {
	doc, err := members.Find(ctx, s.Store, id)
	if err != nil {
		return doc, err
	}
	if m, err := doc.Value(); err != nil || m.SetID != setID {
		return MemberDoc{}, noneOf(err, "member of the resource set")
	}
	return doc, nil
}

// UpdateMember changes the actions of a member. apperr.NotFound, InvalidParameters, VersionMismatch.
func (s *Grants) UpdateMember(ctx context.Context, setID, id string, actions []string) (MemberDoc, error) {
	return write(ctx, s, func(b *batch) (MemberDoc, error) {
		m, err := members.Load(ctx, b.Tx, id)
		if err != nil || m.SetID != setID {
			return MemberDoc{}, noneOf(err, "member of the resource set")
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
			return docstore.Deleted{}, noneOf(err, "member of the resource set")
		}
		return docstore.Deleted{ID: id}, endMembers(ctx, b, m)
	})
}

// removeMembers removes members that a filter selects, at most atOnce, and returns how many.
func removeMembers(ctx context.Context, b *batch, where docstore.Filter) (int, error) {
	found, err := members.LoadWhere(ctx, b.Tx, where, "", atOnce)
	if err != nil {
		return 0, err
	}
	return len(found), endMembers(ctx, b, found...)
}

// endMembers removes members and counts them off their sets, which may be gone.
func endMembers(ctx context.Context, b *batch, list ...*Member) error {
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
