package people

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Shown is a resource as an answer has it.
type Shown struct {
	ID, Tag, Location string
	JSON              []byte
}

var groupsPath, _ = schema.User.Find("groups")

// Show makes the resource of a user, with the attributes that a projection selects.
func (s *Users) Show(ctx context.Context, c *connection.Connection, p resource.Projection, u *directory.User) (Shown,
	error) {
	kind := Kind(c)
	location := s.Base + kind.Endpoint + "/" + u.ID
	if p.IsDefault() && len(c.Extensions) == 0 {
		if body := u.Plain(s.Base); body != nil {
			return Shown{u.ID, u.Tag(), location, body}, nil
		}
	}
	var failed error
	view := mapping.UserView{Place: mapping.Place{Base: s.Base}, Manager: func(id string) (string, bool) {
		m, err := directory.GetUser(ctx, s.Store, c.ID, id)
		if err != nil {
			if !apperr.IsNotFound(err) {
				failed = err
			}
			return "", false
		}
		return m.Record.DisplayName, true
	}}
	if p.Has(groupsPath) {
		of, err := directory.GroupsOf(ctx, s.Store, c.ID, u.ID)
		if err != nil {
			return Shown{}, err
		}
		for _, g := range of {
			view.Groups = append(view.Groups, mapping.GroupOf{ID: g.ID, Display: g.Record.Name})
		}
	}
	r, err := u.Resource(kind, view)
	if err == nil {
		err = failed
	}
	if err != nil {
		return Shown{}, err
	}
	body, err := directory.Encode(p.Of(kind, r))
	return Shown{u.ID, u.Tag(), location, body}, err
}
