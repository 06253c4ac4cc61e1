// Package httpapi is the permissions service's operations: wire forms, their conversion to the domain's, one file a
// noun. It holds no rules and no storage.
package httpapi

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/permissions/internal/index"
)

type api struct {
	grants *grant.Grants
	index  *index.Index
	clock  clock.Clock
	turns  *fair.Gate
}

// Register adds all operations to the server.
func Register(s *rest.Server, grants *grant.Grants, x *index.Index, clk clock.Clock) {
	a := &api{grants, x, clk, newTurns()}
	a.registerResources(s.Tagged("Resources",
		"What can be granted: data, api endpoints and parts of a user interface, each of an application."))
	sets := s.Tagged("Resource sets", "Resources that are granted together.")
	a.registerSets(sets)
	a.registerMembers(sets)
	a.registerUnits(s.Tagged("Authorization units",
		"The identities that something is granted to: users, nodes, whole trees, applications, groups, everyone."))
	a.registerRules(s.Tagged("Authorization rules", "What is granted or denied to authorization units."))
	a.registerPrivileges(s.Tagged("Privileges", "What is granted, as it reaches identities."))
	a.registerApplications(s.Tagged("Application authorizations", "Who may use which applications."))
	a.registerChecks(s.Tagged("Checks", "Who may do what, and why."))
	a.registerAuthZEN(s.Tagged("Access", "The Authorization API 1.0 of OpenID (AuthZEN): evaluations and searches."))
}

// state is what the index knows of the caller's tenant, up to a write that a token names.
func (a *api) state(ctx context.Context, token string) (*engine.State, error) {
	if !a.index.Loaded() {
		return nil, apperr.New(apperr.Unavailable, "the index of permissions is still being built")
	}
	if err := a.index.Await(ctx, token); err != nil {
		return nil, err
	}
	return a.index.State(ctx), nil
}
