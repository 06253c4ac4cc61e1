package groups

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/questions"
)

// passMembers holds a request that takes over half of many members.
func (s *Groups) passMembers(ctx context.Context, j job) error {
	if len(j.remove) <= manyMembers/2 {
		return nil
	}
	n, err := directory.CountMembers(ctx, s.Store, j.group.ID)
	if err != nil || n < manyMembers || int64(len(j.remove)) <= n/2 {
		return err
	}
	is, _, err := directory.MembersOf(ctx, s.Store, j.group.ID, maxMembers)
	if err != nil {
		return err
	}
	leave := make(map[string]bool, len(j.remove))
	for _, id := range j.remove {
		leave[id] = true
	}
	taken := 0
	for _, id := range is {
		if leave[id] {
			taken++
		}
	}
	if 2*taken <= len(is) {
		return nil
	}
	return s.pass(ctx, j, "over half of the group's members are removed", true)
}

// passScopes holds a request by which people would become members of a group whose rules give scopes of the platform's
// API beyond those of the connection. g is the group; nil if it would be new, below the root.
func (s *Groups) passScopes(ctx context.Context, j job, name string, g *directory.Group) error {
	c := j.call.Connection
	if len(j.add) == 0 || c.Given().Has(auth.PlatformAdmin) || gate.IsApproved(ctx) {
		return nil
	}
	r := gate.Request{Type: "Group", Display: name, Method: j.call.Method, Path: j.call.Path,
		Body: gate.Redacted(j.call.Body)}
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
		if all, err := directory.AreMembers(ctx, s.Store, g.ID, j.add); err != nil || all {
			return err
		}
	}
	r.Scopes = questions.ScopesIn(given &^ c.Given()).Scopes
	r.Reason = "it gives people scopes of this API: " + strings.Join(r.Scopes, ", ")
	return s.Gate.Pass(ctx, c, r, true)
}

func (s *Groups) pass(ctx context.Context, j job, reason string, always bool) error {
	return s.Gate.Pass(ctx, j.call.Connection, gate.Request{
		Type: "Group", ResourceID: j.group.ID, Display: j.group.Record.Name, Method: j.call.Method, Path: j.call.Path,
		Body: gate.Redacted(j.call.Body), Tag: j.group.Tag(), Reason: reason,
	}, always)
}
