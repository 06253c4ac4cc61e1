// Package httpapi contains the operations of the permissions service: JSON forms and their conversion to those of the
// domain and the engine, one file per noun. It has no rules and no storage.
package httpapi

import (
	"context"

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
	turns  *fair.Semaphore
}

// Register adds all operations to the server.
func Register(s *rest.Server, grants *grant.Grants, x *index.Index, clk clock.Clock) {
	a := &api{grants, x, clk, newTurns()}
	rest.Named[grant.Set](s, "ResourceSet")
	rest.Named[grant.Member](s, "ResourceSetMember")
	rest.Named[grant.Unit](s, "AuthUnit")
	a.registerResources(s.Tagged("Resources",
		"What can be granted: data, API endpoints and parts of user interfaces, each of an application."))
	sets := s.Tagged("Resource sets", "Resources that are granted together.")
	a.registerSets(sets)
	a.registerMembers(sets)
	a.registerUnits(s.Tagged("Authorization units",
		"The identities that something is granted to: users, nodes, whole trees, applications, groups, everyone."))
	a.registerRules(s.Tagged("Authorization rules", "What is granted or denied to authorization units."))
	a.registerPrivileges(s.Tagged("Privileges", "The grants that reach identities."))
	a.registerApplications(s.Tagged("Application authorizations", "Who may use which applications."))
	a.registerChecks(s.Tagged("Checks", "Who may do what, and why."))
	a.registerImpact(s.Tagged("Impact", "What changes would mean for access, before they are made."))
	a.registerAuthZEN(s.Tagged("Access", "The Authorization API 1.0 of OpenID (AuthZEN): evaluations and searches."))
}

// state returns the state of the caller's tenant. It waits for the write that a consistency token names; "" names none.
// apperr.InvalidParameters, Unavailable.
func (a *api) state(ctx context.Context, token string) (*engine.State, error) {
	if err := a.index.Ready(); err != nil {
		return nil, err
	}
	if err := a.index.Await(ctx, token); err != nil {
		return nil, err
	}
	return a.index.State(ctx), nil
}
