package grant

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// resolve finds the resources and sets that rules name, and checks their actions. at is the location of a rule in the
// request.
func resolve(ctx context.Context, tx *docstore.Tx, profiles []RuleProfile, at func(i int) string) error {
	var faults apperr.Faults
	byApp := map[string][]int{}
	for i, p := range profiles {
		byApp[p.ApplicationID] = append(byApp[p.ApplicationID], i)
	}
	for _, app := range slices.Sorted(maps.Keys(byApp)) {
		var named []int
		var names []resourceName
		for _, i := range byApp[app] {
			p := &profiles[i]
			switch {
			case p.Type == typeSet:
				if err := resolveSet(ctx, tx, p, faults.Within(at(i))); err != nil {
					return err
				}
			case slices.Contains(ResourceTypes, p.Type):
				named, names = append(named, i), append(names, resourceName{p.ResourceID, p.Type, p.Code})
			}
		}
		found, err := findResources(ctx, tx, app, names)
		if err != nil {
			return err
		}
		for j, i := range named {
			profiles[i].resolve(found[j], faults.Within(at(i)))
		}
	}
	return faults.Err()
}

// resolve sets the resource that the rule is about, and checks the actions; r is nil if it was not found.
func (p *RuleProfile) resolve(r *Resource, faults *apperr.Faults) {
	by := "code"
	if p.ResourceID != "" {
		by = "resource_id"
	}
	if r == nil || r.Type != p.Type {
		faults.Add(by, "names neither a %s resource of the application nor exactly one global one", p.Type)
		return
	}
	faults.Check(p.Code == "" || p.Code == r.Code, "code", "is not the code of the resource with the resource_id")
	for i, action := range p.Actions {
		faults.Check(r.has(action), apperr.Item("actions", i), "is not an action of the resource")
	}
	p.ResourceID, p.Code = r.ID, r.Code
}

// resolveSet finds and sets the resource set that a rule is about.
func resolveSet(ctx context.Context, tx *docstore.Tx, p *RuleProfile, faults *apperr.Faults) error {
	var found []*Set
	var err error
	by := "code"
	if p.ResourceSetID != "" {
		by = "resource_set_id"
		found, err = sets.LoadMany(ctx, tx, []string{p.ResourceSetID})
	} else {
		found, err = sets.LoadWhere(ctx, tx, docstore.Eq(byPlace, docstore.Text(place(p.ApplicationID, p.Code))), "", 1)
		if err == nil && len(found) == 0 {
			global := docstore.And(docstore.Eq(byGlobal, docstore.Text(On)), docstore.Eq(byCode, docstore.Text(p.Code)))
			found, err = sets.LoadWhere(ctx, tx, global, "", 2)
		}
	}
	if err != nil {
		return err
	}
	if len(found) != 1 || found[0].ApplicationID != p.ApplicationID && found[0].IsGlobal != On {
		faults.Add(by, "names neither a resource set of the application nor exactly one global one")
		return nil
	}
	faults.Check(p.Code == "" || p.Code == found[0].Code, "code",
		"is not the code of the resource set with the resource_set_id")
	p.ResourceSetID, p.Code = found[0].ID, found[0].Code
	return nil
}
