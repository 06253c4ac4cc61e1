package groups

import (
	"context"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Groups with more than fewMembers are shown largeAtOnce at a time, and largeOfTenant of one tenant: each takes up to
// 30 MB of memory.
const (
	fewMembers    = 1000
	largeAtOnce   = 4
	largeOfTenant = 2
	maxWaiting    = 64
)

// MaxShown is how many members one answer has. A list of them is never cut: clients send it back.
const MaxShown = 100_000

var membersPath, _ = schema.Group.Find("members")

// Shower shows the groups of one answer.
type Shower struct {
	groups     *Groups
	connection *connection.Connection
	projection resource.Projection
	base       string
	known      map[string]*directory.Group
	left       int // members that the answer can still have
}

// Shower makes a Shower. base is the URI of the service.
func (s *Groups) Shower(c *connection.Connection, p resource.Projection, base string) *Shower {
	return &Shower{s, c, p, base, map[string]*directory.Group{}, MaxShown}
}

// Show makes the resource of a group. Its error has type tooMany if the answer would have more than MaxShown members.
func (w *Shower) Show(ctx context.Context, g *directory.Group) (people.Shown, error) {
	path, err := directory.Path(ctx, w.groups.Store, g, w.known)
	if err != nil {
		return people.Shown{}, err
	}
	view := mapping.GroupView{Place: mapping.Place{Base: w.base}}
	if w.projection.Has(membersPath) {
		ids, leave, err := w.members(ctx, g)
		if err != nil {
			return people.Shown{}, err
		}
		defer leave()
		if view.Members, err = w.named(ctx, ids); err != nil {
			return people.Shown{}, err
		}
		view.Whole = w.projection.HasWhole(membersPath)
	}
	body, err := directory.Encode(w.projection.Of(schema.Group, g.Resource(path, view)))
	return people.Shown{ID: g.ID, Tag: g.Tag(), Location: w.base + schema.Group.Endpoint + "/" + g.ID, JSON: body}, err
}

// members are the ids of a group's members. Of groups with many only some are shown at a time: until leave is called.
func (w *Shower) members(ctx context.Context, g *directory.Group) (ids []string, leave func(), err error) {
	leave = func() {}
	ids, more, err := directory.MembersOf(ctx, w.groups.Store, g.ID, min(w.left, fewMembers))
	if err == nil && more && w.left > fewMembers {
		if leave, err = w.groups.large.Enter(ctx, request.Tenant(ctx), 1); err != nil {
			return nil, nil, err
		}
		ids, more, err = directory.MembersOf(ctx, w.groups.Store, g.ID, w.left)
	}
	if err == nil && more {
		err = scim.Invalid(scim.TooMany, "members",
			"are more than %d in this answer; leave them out by excludedAttributes=members", MaxShown)
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	w.left -= len(ids)
	return ids, leave, nil
}

// named are the members that the connection sees, with their names.
func (w *Shower) named(ctx context.Context, ids []string) ([]mapping.Member, error) {
	names, err := directory.Names(ctx, w.groups.Store, w.connection.ID, ids)
	if err != nil {
		return nil, err
	}
	members := make([]mapping.Member, 0, len(names))
	for _, id := range ids {
		if name, is := names[id]; is {
			members = append(members, mapping.Member{ID: id, Display: name})
		}
	}
	return members, nil
}
