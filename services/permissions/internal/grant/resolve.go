package grant

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// resolve finds the resources and sets that rules name, and checks their actions. at is the location of a rule in the
// request. apperr.InvalidParameters.
func resolve(ctx context.Context, tx *docstore.Tx, profiles []RuleProfile, at func(i int) string) error {
	var ofResources, ofSets []int
	var resourceNames, setNames []name
	for i := range profiles {
		switch p := &profiles[i]; {
		case p.Type == typeSet:
			ofSets, setNames = append(ofSets, i), append(setNames, name{p.ApplicationID, p.ResourceSetID, "", p.Code})
		case slices.Contains(ResourceTypes, p.Type):
			ofResources = append(ofResources, i)
			resourceNames = append(resourceNames, name{p.ApplicationID, p.ResourceID, p.Type, p.Code})
		}
	}
	foundSets, err := find(ctx, tx, sets, setNames)
	if err != nil {
		return err
	}
	foundResources, err := find(ctx, tx, resources, resourceNames)
	if err != nil {
		return err
	}
	var faults apperr.Faults
	for j, i := range ofSets {
		profiles[i].resolveSet(foundSets[j], faults.Within(at(i)))
	}
	for j, i := range ofResources {
		profiles[i].resolve(foundResources[j], faults.Within(at(i)))
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

// resolveSet sets the resource set that the rule is about; set is nil if it was not found.
func (p *RuleProfile) resolveSet(set *Set, faults *apperr.Faults) {
	by := "code"
	if p.ResourceSetID != "" {
		by = "resource_set_id"
	}
	if set == nil {
		faults.Add(by, "names neither a resource set of the application nor exactly one global one")
		return
	}
	faults.Check(p.Code == "" || p.Code == set.Code, "code",
		"is not the code of the resource set with the resource_set_id")
	p.ResourceSetID, p.Code = set.ID, set.Code
}
