package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// name is how requests name a resource or a set that an application may use: by its id, or by its code and a resource's
// type.
type name struct{ application, id, kind, code string }

// place is the unique key of what has the name in the application.
func (n name) place() string {
	if n.kind == "" {
		return place(n.application, n.code)
	}
	return place(n.application, n.kind, n.code)
}

// in returns the name that has no id, in an application.
func (n name) in(application string) name { return name{application, "", n.kind, n.code} }

// owned is a resource or a set.
type owned[T any] interface {
	*T
	// owned returns all members of its name, and whether every application may use it.
	owned() (n name, global bool)
}

func (r *Resource) owned() (name, bool) {
	return name{r.ApplicationID, r.ID, r.Type, r.Code}, r.IsGlobal == On
}

func (s *Set) owned() (name, bool) { return name{s.ApplicationID, s.ID, "", s.Code}, s.IsGlobal == On }

// maxGlobal is how many global records with the codes of one request are read. It is more than a request has codes:
// several applications may have a global one with the same code.
const maxGlobal = 2000

// find finds what names name: records of the application itself, and global ones. A code names the application's own
// record, otherwise the only global one with this code. The result has nil for a name that no record has. It reads at
// most three times. apperr.InvalidParameters if more than maxGlobal records must be read.
func find[T any, P owned[T]](ctx context.Context, tx *docstore.Tx, c *docstore.Collection[T], names []name) ([]*T,
	error) {
	var ids []string
	var places []docstore.Value
	for _, n := range names {
		if n.id != "" {
			ids = append(ids, n.id)
		} else {
			places = append(places, docstore.Text(n.place()))
		}
	}
	named, err := c.LoadMany(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*T, len(named))
	for _, v := range named {
		n, _ := P(v).owned()
		byID[n.id] = v
	}
	own, err := ofApplications[T, P](ctx, tx, c, places)
	if err != nil {
		return nil, err
	}
	found := make([]*T, len(names))
	var missing []docstore.Value
	for i, n := range names {
		if n.id == "" {
			if found[i] = own[n]; found[i] == nil {
				missing = append(missing, docstore.Text(n.code))
			}
		} else if v := byID[n.id]; v != nil {
			if of, global := P(v).owned(); global || of.application == n.application {
				found[i] = v
			}
		}
	}
	only, err := onlyGlobal[T, P](ctx, tx, c, missing)
	for i, n := range names {
		if found[i] == nil && n.id == "" {
			found[i] = only[n.in("")]
		}
	}
	return found, err
}

// ofApplications reads records by their places.
func ofApplications[T any, P owned[T]](ctx context.Context, tx *docstore.Tx, c *docstore.Collection[T],
	places []docstore.Value) (map[name]*T, error) {
	if len(places) == 0 {
		return nil, nil
	}
	list, err := c.LoadWhere(ctx, tx, docstore.In(byPlace, places...), "", len(places))
	own := make(map[name]*T, len(list))
	for _, v := range list {
		n, _ := P(v).owned()
		own[n.in(n.application)] = v
	}
	return own, err
}

// onlyGlobal reads global records with codes. The result has those whose code, and a resource's type, no other has.
func onlyGlobal[T any, P owned[T]](ctx context.Context, tx *docstore.Tx, c *docstore.Collection[T],
	codes []docstore.Value) (map[name]*T, error) {
	if len(codes) == 0 {
		return nil, nil
	}
	where := docstore.And(docstore.Eq(byGlobal, docstore.Text(On)), docstore.In(byCode, codes...))
	global, err := c.LoadWhere(ctx, tx, where, "", maxGlobal+1)
	if err != nil {
		return nil, err
	}
	if len(global) > maxGlobal {
		return nil, apperr.New(apperr.InvalidParameters,
			"more than %d global records have the codes of this request: name them by their ids", maxGlobal)
	}
	only := make(map[name]*T, len(global))
	for _, v := range global {
		n, _ := P(v).owned()
		if _, another := only[n.in("")]; another {
			v = nil
		}
		only[n.in("")] = v
	}
	return only, nil
}
