package groups

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
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
		if view.Members, err = w.members(ctx, g); err != nil {
			return people.Shown{}, err
		}
	}
	body, err := directory.Encode(w.projection.Of(schema.Group, g.Resource(path, view)))
	return people.Shown{ID: g.ID, Tag: g.Tag(), Location: w.base + schema.Group.Endpoint + "/" + g.ID, JSON: body}, err
}

func (w *Shower) members(ctx context.Context, g *directory.Group) ([]mapping.Member, error) {
	ids, more, err := directory.MembersOf(ctx, w.groups.Store, g.ID, w.left)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, scim.Invalid(scim.TooMany, "members",
			"are more than %d in this answer; leave them out by excludedAttributes=members", MaxShown)
	}
	w.left -= len(ids)
	names, err := directory.Names(ctx, w.groups.Store, w.connection.ID, ids)
	if err != nil {
		return nil, err
	}
	members := make([]mapping.Member, 0, len(names))
	for _, id := range slices.DeleteFunc(ids, func(id string) bool { _, is := names[id]; return !is }) {
		members = append(members, mapping.Member{ID: id, Display: names[id]})
	}
	return members, nil
}
