package groups

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/questions"
)

// removals is what a change of a group takes away. all reports that everybody whom it removes is a member.
func (s *Groups) removals(ctx context.Context, j update, all bool) ([]gate.Removal, error) {
	if len(j.remove) == 0 || gate.IsApproved(ctx) {
		return nil, nil
	}
	n := int64(len(j.remove))
	if !all {
		var err error
		if n, err = directory.CountAmong(ctx, s.Store, j.group.ID, j.remove); err != nil || n == 0 {
			return nil, err
		}
	}
	return []gate.Removal{gate.OfMembers(j.group.ID, n)}, nil
}

// gated carries out a change of a group that takes something away, unless the gate holds it.
func (s *Groups) gated(ctx context.Context, j update, removals []gate.Removal) (*directory.Group, error) {
	if len(removals) == 0 {
		return s.execute(ctx, j)
	}
	if err := s.Gate.Pass(ctx, j.call.Connection, gate.Request{
		Type: "Group", ResourceID: j.group.ID, Display: j.group.Record.Name, Method: j.call.Method, Path: j.call.Path,
		Body: gate.Redacted(j.call.Body), Tag: j.group.Tag(),
	}, removals...); err != nil {
		return nil, err
	}
	g, err := s.execute(ctx, j)
	if err != nil && !change.IsUnclear(err) {
		s.Gate.Release(ctx, j.call.Connection.ID, removals...)
	}
	return g, err
}

// passScopes holds a request by which people would become members of a group whose rules give scopes of the platform's
// API beyond those of the connection. g is the group; nil if it would be new, below the root.
func (s *Groups) passScopes(ctx context.Context, j update, name string, g *directory.Group) error {
	c := j.call.Connection
	if len(j.add) == 0 || c.Given().Has(auth.PlatformAdmin) || gate.IsApproved(ctx) {
		return nil
	}
	r := gate.Request{Type: "Group", Display: name, Method: j.call.Method, Path: j.call.Path}
	node := c.RootNodeID
	if g != nil {
		node, r.ResourceID, r.Tag = g.ID, g.ID, g.Tag()
	}
	given, err := questions.ScopesGiven(ctx, s.Bus, []string{node}, func(ctx context.Context, _ []string) ([]string,
		error) {
		if g == nil {
			return []string{node}, nil
		}
		return directory.Path(ctx, s.Store, g, map[string]*directory.Group{})
	})
	if err != nil || given.Within(c.Given()) {
		return err
	}
	if g != nil {
		n, err := directory.CountAmong(ctx, s.Store, g.ID, j.add)
		if err != nil || n == int64(len(j.add)) {
			return err
		}
	}
	r.Body = gate.Redacted(j.call.Body)
	r.Scopes = questions.ScopesIn(given &^ c.Given()).Scopes
	r.Reason = "it gives people scopes of this API: " + strings.Join(r.Scopes, ", ")
	return s.Gate.Hold(ctx, c, r)
}
