package grant

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// Resource is what can be granted. Its JSON form is the API's, the events' and the store's.
type Resource struct {
	docstore.Meta
	ApplicationID string `json:"application_id" required:"true" doc:"The application that it is of" example:"2001"`
	Type          string `json:"type" required:"true" enum:"data,api,ui" doc:"data: what it keeps; api: a path; ui: a part of its pages"`
	Code          string `json:"code" required:"true" doc:"Unique with application_id and type" example:"orders"`
	ResourceProfile
	IsGlobal string `json:"is_global" enum:"1,0" example:"0" doc:"1: every application of the tenant may grant and group it"`
}

// ResourceProfile holds the members that can be changed.
type ResourceProfile struct {
	Name         string          `json:"name" doc:"Up to 256 characters" example:"Orders"`
	Description  string          `json:"description" doc:"Up to 2000 characters"`
	URI          string          `json:"uri" doc:"Of an api resource: a path, in which segments may be {name} or *, and the last one **" example:"/orders/{id}"`
	Actions      []Action        `json:"actions" doc:"What can be done with it. A rule names some of them, or all with *"`
	SysExtProps  json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly; in conditions it overrides sys_ext_props"`
}

// Action is something that can be done with a resource.
type Action struct {
	Code        string `json:"code" doc:"1…64 letters, digits or . _ - : /" example:"read"`
	Description string `json:"description" required:"false" doc:"What it does" example:"See orders"`
}

// ResourceTypes are the types of resources.
var ResourceTypes = []string{"data", "api", "ui"}

// The names of indexes. An index that lists can be sorted by has the name of its member.
const (
	byPlace        = "place"
	byApplication  = "application_id"
	byType         = "type"
	byCode         = "code"
	byGlobal       = "is_global"
	byName         = "name"
	byTimeCreated  = "time_created"
	byTimeModified = "time_modified"
)

var resources = docstore.Define(docstore.Schema[Resource]{
	Name: "resources", Noun: "resource",
	Sortable: []string{byTimeCreated, byCode, byName, byTimeModified},
	Indexes: slices.Concat([]docstore.Index[Resource]{
		docstore.Unique(docstore.ByText(byPlace,
			func(r *Resource) string { return place(r.ApplicationID, r.Type, r.Code) }), "code"),
		docstore.Facet(docstore.ByText(byApplication, func(r *Resource) string { return r.ApplicationID }),
			byTimeCreated, byCode, byName),
		docstore.ByText(byType, func(r *Resource) string { return r.Type }),
		docstore.ByText(byCode, func(r *Resource) string { return r.Code }),
		docstore.ByText(byName, func(r *Resource) string { return r.Name }),
		docstore.ByText(byGlobal, func(r *Resource) string { return flagged(r.IsGlobal) }),
		docstore.ByNumber(byTimeCreated, func(r *Resource) docstore.Value { return docstore.Moment(r.TimeCreated) }),
		docstore.ByNumber(byTimeModified, func(r *Resource) docstore.Value { return docstore.Moment(r.TimeModified) }),
	}, textindex.KeywordIndexes(func(r *Resource) []string { return []string{r.Name, r.Code} })),
})

// place joins the parts of a unique key. At most one part can contain the separator, so that different parts make
// different keys.
func place(parts ...string) string { return strings.Join(parts, "|") }

// flagged is the index entry of an on/off member. Records in which it is off have none.
func flagged(flag string) string {
	if flag == On {
		return On
	}
	return ""
}

// ResourceDoc is a resource as read or written.
type ResourceDoc = docstore.Doc[Resource]

func (r *Resource) check(faults *apperr.Faults) {
	checkID(faults, "application_id", r.ApplicationID)
	faults.Check(slices.Contains(ResourceTypes, r.Type), "type", "must be one of data, api, ui")
	faults.Check(validCode.MatchString(r.Code), "code", codeForm)
	faults.Switch("is_global", &r.IsGlobal, Off)
	r.ResourceProfile.check(faults)
}

func (p *ResourceProfile) check(faults *apperr.Faults) {
	faults.Text("name", p.Name, maxName)
	faults.Prose("description", p.Description, maxDescription)
	faults.Text("uri", p.URI, maxURI)
	faults.Check(p.URI == "" || engine.ValidURI(p.URI), "uri",
		"must be a path like /orders/{id}: a segment can be {name} or *, and the last one **; it must have no empty "+
			"segment, dot segment, parameter, backslash or coded slash")
	faults.Check(len(p.Actions) <= maxActions, "actions", "must have at most %d actions", maxActions)
	seen := map[string]bool{}
	for i, action := range p.Actions {
		at := faults.Within(apperr.Item("actions", i))
		at.Check(validAction.MatchString(action.Code), "code", "must have 1…64 letters, digits or . _ - : /")
		at.Check(!seen[action.Code], "code", "must not be given twice")
		at.Prose("description", action.Description, maxDescription)
		seen[action.Code] = true
	}
	if p.Actions == nil {
		p.Actions = []Action{}
	}
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

// has reports whether the resource has an action.
func (r *Resource) has(code string) bool {
	return code == all || slices.ContainsFunc(r.Actions,
		func(a Action) bool { return a.Code == code })
}

// CreateResource is CreateResources for one. Faults are located in the body itself.
func (s *Grants) CreateResource(ctx context.Context, draft Resource) (ResourceDoc, error) {
	return createResources(ctx, s, []Resource{draft}, func(int) string { return "" },
		func(docs []ResourceDoc) (ResourceDoc, error) { return docs[0], nil })
}

// CreateResources adds resources, all or none. Faults are located at items[n]. apperr.InvalidParameters, AlreadyExists,
// Forbidden (see mayGive).
func (s *Grants) CreateResources(ctx context.Context, drafts []Resource) (docstore.Batch, error) {
	return createResources(ctx, s, drafts, func(i int) string { return apperr.Item("items", i) },
		docstore.BatchOf[ResourceDoc])
}

// createResources adds resources. at is the location of a draft in the request.
func createResources[R any](
	ctx context.Context, s *Grants, drafts []Resource, at func(i int) string, answer func([]ResourceDoc) (R, error),
) (R, error) {
	var none R
	var faults apperr.Faults
	for i := range drafts {
		drafts[i].check(faults.Within(at(i)))
	}
	if err := faults.Err(); err != nil {
		return none, err
	}
	for _, draft := range drafts {
		if err := mayGive(ctx, draft.Type, draft.Code); err != nil {
			return none, err
		}
	}
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return none, err
	}
	return write(ctx, s, func(b *batch) (R, error) {
		added := make([]*Resource, len(drafts))
		for i, draft := range drafts {
			draft.Meta = docstore.Meta{ID: ids[i]}
			added[i] = &draft
		}
		docs, err := insertMany(ctx, b, resources, resourceKind, at, added)
		if err != nil {
			return none, err
		}
		return answer(docs)
	})
}

// Resource returns a resource of an application. apperr.NotFound, also if it is another application's.
func (s *Grants) Resource(ctx context.Context, id, applicationID string) (ResourceDoc, error) {
	doc, err := resources.Find(ctx, s.Store, id)
	if err != nil {
		return doc, err
	}
	if r, err := doc.Value(); err != nil || r.ApplicationID != applicationID {
		return ResourceDoc{}, errOrMissing(err, "resource")
	}
	return doc, nil
}

// errOrMissing returns err, or apperr.NotFound if err is nil.
func errOrMissing(err error, noun string) error {
	if err != nil {
		return err
	}
	return apperr.Missing(noun)
}

// OfApplicationOrIDs selects the records of an application, or records by their ids.
type OfApplicationOrIDs struct {
	ApplicationID string `query:"application_id" maxLength:"64" doc:"The application's id; needed unless there are ids" example:"2001"`
	docstore.Selection
}

// readIDs returns the ids; apperr.InvalidParameters if they are too many, or there is no application either.
func (o OfApplicationOrIDs) readIDs() ([]string, error) {
	var faults apperr.Faults
	ids := o.ReadIDs(&faults)
	faults.Check(o.ApplicationID != "" || o.IDs != "", "application_id", "is required unless there are ids")
	return ids, faults.Err()
}

// ResourceFilter selects resources. An empty member means any.
type ResourceFilter struct {
	docstore.Paging
	OfApplicationOrIDs
	textindex.Search
	Type          string        `query:"type" enum:"data,api,ui"`
	Code          string        `query:"code" maxLength:"256"`
	IncludeGlobal docstore.Flag `query:"include_global" doc:"true adds the global resources of other applications"`
}

// ofApplication selects the resources or sets of an application, perhaps with the global ones of others. An empty id
// selects those of all applications.
func ofApplication(id string, includeGlobal bool) docstore.Filter {
	if id == "" || !includeGlobal {
		return docstore.EqOrAll(byApplication, id)
	}
	return docstore.Or(docstore.Eq(byApplication, docstore.Text(id)), docstore.Eq(byGlobal, docstore.Text(On)))
}

// Resources returns a page of resources. apperr.InvalidParameters (neither an application nor ids, paging).
func (s *Grants) Resources(ctx context.Context, f ResourceFilter) (docstore.Page[Resource], error) {
	ids, err := f.readIDs()
	if err != nil {
		return docstore.Page[Resource]{}, err
	}
	where := docstore.And(ofApplication(f.ApplicationID, f.IncludeGlobal.Or(false)), docstore.IDOrAll(ids...),
		docstore.EqOrAll(byType, f.Type), docstore.EqOrAll(byCode, f.Code), textindex.HavingPart(f.Keyword))
	return resources.List(ctx, s.Store, where, f.Paging)
}

// UpdateResource lets edit change the profile. apperr.NotFound, InvalidParameters, VersionMismatch, InUse if it removes
// an action that rules or sets name.
func (s *Grants) UpdateResource(ctx context.Context, id string, edit func(*Resource) error) (ResourceDoc, error) {
	return write(ctx, s, func(b *batch) (ResourceDoc, error) {
		r, err := resources.Load(ctx, b.Tx, id)
		if err != nil {
			return ResourceDoc{}, err
		}
		before := r.Actions
		proposal := *r
		if err := edit(&proposal); err != nil {
			return ResourceDoc{}, err
		}
		var faults apperr.Faults
		proposal.ResourceProfile.check(&faults)
		if err := faults.Err(); err != nil {
			return ResourceDoc{}, err
		}
		r.ResourceProfile = proposal.ResourceProfile
		for _, action := range before {
			if r.has(action.Code) {
				continue
			}
			if err := actionInUse(ctx, b.Tx, id, action.Code); err != nil {
				return ResourceDoc{}, err
			}
		}
		return replace(ctx, b, resources, resourceKind, r)
	})
}

// actionInUse returns apperr.InUse if rules or sets name an action of a resource.
func actionInUse(ctx context.Context, tx *docstore.Tx, resourceID, code string) error {
	byRules, err := rules.Count(ctx, tx, docstore.Eq(byAction, docstore.Text(place(resourceID, code))))
	if err != nil {
		return err
	}
	bySets, err := members.Count(ctx, tx, docstore.Eq(byAction, docstore.Text(place(resourceID, code))))
	if err != nil {
		return err
	}
	return apperr.InUseBy("the action "+code+" cannot be removed while rules or members of resource sets name it",
		apperr.Use{What: "auth_rules", Count: byRules}, apperr.Use{What: "resource_set_members", Count: bySets})
}

// DeleteResource removes a resource, with the rules and the members of sets that name it. apperr.NotFound,
// VersionMismatch.
func (s *Grants) DeleteResource(ctx context.Context, id string) (docstore.Deleted, error) {
	return write(ctx, s, func(b *batch) (docstore.Deleted, error) {
		r, err := resources.Load(ctx, b.Tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		return docstore.Deleted{ID: id}, deleteResources(ctx, b, r)
	})
}

// Selection names resources of an application by their codes. Type "" means every type.
type Selection struct {
	ApplicationID, Type string
	Codes               []string
}

// DeleteResources removes the resources with the ids, or those of a selection if it has codes, all or none. Missing
// resources are not an error.
func (s *Grants) DeleteResources(ctx context.Context, ids []string, named Selection) error {
	_, err := write(ctx, s, func(b *batch) (struct{}, error) {
		found, err := resources.LoadMany(ctx, b.Tx, ids)
		if err != nil {
			return struct{}{}, err
		}
		b.missing(resourceKind, missing(ids, found, func(r *Resource) string { return r.Meta.ID }))
		if len(named.Codes) > 0 {
			var places []docstore.Value
			for _, code := range named.Codes {
				for _, kind := range ResourceTypes {
					if named.Type == "" || named.Type == kind {
						places = append(places, docstore.Text(place(named.ApplicationID, kind, code)))
					}
				}
			}
			if found, err = resources.LoadWhere(ctx, b.Tx, docstore.In(byPlace, places...), "",
				len(places)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, deleteResources(ctx, b, found...)
	})
	return err
}

// atOnce is how many dependent records are removed in the transaction that removes what they refer to. OnDeleted
// removes the others soon after. Until then they have no effect, because what they refer to is gone.
const atOnce = 1000

func deleteResources(ctx context.Context, b *batch, list ...*Resource) error {
	if len(list) == 0 {
		return nil
	}
	var ids []docstore.Value
	for _, r := range list {
		ids = append(ids, docstore.Text(r.ID))
		if err := remove(ctx, b, resources, resourceKind, r); err != nil {
			return err
		}
	}
	if _, err := removeMembers(ctx, b, docstore.In(byResource, ids...)); err != nil {
		return err
	}
	_, err := removeRules(ctx, b, docstore.In(byResource, ids...))
	return err
}
