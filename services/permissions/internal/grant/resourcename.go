package grant

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// resourceName names a resource by its id, or by its type and code.
type resourceName struct{ id, kind, code string }

// matches reports whether r has the name.
func (n resourceName) matches(r *Resource) bool {
	if n.id != "" {
		return n.id == r.ID
	}
	return n.kind == r.Type && n.code == r.Code
}

// maxGlobal is how many global resources with the codes of one request are read. It is more than a request has codes:
// several applications may have a global resource with the same code.
const maxGlobal = 2000

// findResources finds the resources that an application may use: its own and global ones. A code names the
// application's own resource, otherwise the only global one with this code. The result has nil for a name that no
// resource has. apperr.InvalidParameters if more than maxGlobal resources must be read.
func findResources(ctx context.Context, tx *docstore.Tx, applicationID string, names []resourceName) ([]*Resource,
	error) {
	own, err := ownAndNamed(ctx, tx, applicationID, names)
	if err != nil {
		return nil, err
	}
	found := make([]*Resource, len(names))
	var missing []docstore.Value
	for i, n := range names {
		at := slices.IndexFunc(own, func(r *Resource) bool {
			return n.matches(r) && (r.ApplicationID == applicationID || n.id != "" && r.IsGlobal == On)
		})
		if at >= 0 {
			found[i] = own[at]
		} else if n.id == "" {
			missing = append(missing, docstore.Text(n.code))
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	where := docstore.And(docstore.Eq(byGlobal, docstore.Text(On)), docstore.In(byCode, missing...))
	global, err := resources.LoadWhere(ctx, tx, where, "", maxGlobal+1)
	if err != nil {
		return nil, err
	}
	if len(global) > maxGlobal {
		return nil, apperr.New(apperr.InvalidParameters,
			"more than %d global resources have the codes of this request: name resources by resource_id", maxGlobal)
	}
	for i, n := range names {
		if found[i] == nil && n.id == "" {
			found[i] = n.only(global)
		}
	}
	return found, nil
}

// ownAndNamed reads the resources that are named by ids, and those of the application that are named by codes.
func ownAndNamed(ctx context.Context, tx *docstore.Tx, applicationID string, names []resourceName) ([]*Resource,
	error) {
	var ids []string
	var places []docstore.Value
	for _, n := range names {
		if n.id != "" {
			ids = append(ids, n.id)
		} else {
			places = append(places, docstore.Text(place(applicationID, n.kind, n.code)))
		}
	}
	named, err := resources.LoadMany(ctx, tx, ids)
	if err != nil || len(places) == 0 {
		return named, err
	}
	own, err := resources.LoadWhere(ctx, tx, docstore.In(byPlace, places...), "", len(places))
	return append(named, own...), err
}

// only returns the resource with the name if there is exactly one.
func (n resourceName) only(list []*Resource) *Resource {
	var only *Resource
	for _, r := range list {
		switch {
		case !n.matches(r):
		case only != nil:
			return nil
		default:
			only = r
		}
	}
	return only
}
