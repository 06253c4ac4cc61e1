package tree

import (
	"context"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// Rules of the permissions service can give scopes of this API to the members of a node and of all nodes below it. So
// only a caller who holds these scopes may change who they are.

// MayJoin refuses a caller who would let people join nodes, or nodes below them, and lacks a scope that the nodes'
// rules give them. Work without a request may do so. The error is apperr.Forbidden or Unavailable.
func MayJoin(ctx context.Context, s *docstore.Store, b *bus.Bus, ids ...string) error {
	caller := auth.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	return MayJoinWith(ctx, s, b, caller.Scopes, ids...)
}

// MayJoinWith is MayJoin for a change that may give the scopes held.
func MayJoinWith(ctx context.Context, s *docstore.Store, b *bus.Bus, held auth.Scopes, ids ...string) error {
	if held.Has(auth.PlatformAdmin) {
		return nil
	}
	given, err := questions.ScopesGiven(ctx, b, ids, func(ctx context.Context, unknown []string) ([]string, error) {
		return pathsOf(ctx, s, unknown)
	})
	if scope := given.Beyond(held); err == nil && scope != "" {
		err = apperr.New(apperr.Forbidden, "rules give the members the scope %s, which the caller lacks", scope)
	}
	return err
}

// pathsOf are the ids of nodes and of all nodes above them.
func pathsOf(ctx context.Context, r docstore.Reader, ids []string) ([]string, error) {
	found, err := Find(ctx, r, ids...)
	if err != nil {
		return nil, err
	}
	path := map[string]bool{}
	for _, n := range found {
		for _, id := range n.Path {
			path[id] = true
		}
	}
	return slices.Collect(maps.Keys(path)), nil
}

// joined is the set of nodes whose members the caller of a request may change.
type joined map[string]bool

type joinedKey struct{}

// withJoined returns a context that says that MayJoin has checked these nodes.
func withJoined(ctx context.Context, ids []string) context.Context {
	all := joined{}
	before, _ := ctx.Value(joinedKey{}).(joined)
	maps.Copy(all, before)
	for _, id := range ids {
		all[id] = true
	}
	return context.WithValue(ctx, joinedKey{}, all)
}

// unchecked returns the nodes that MayJoin has yet to check. A platform administrator needs no check.
func unchecked(ctx context.Context, ids []string) []string {
	if caller := auth.PrincipalFrom(ctx); caller == nil || caller.Has(auth.PlatformAdmin) {
		return nil
	}
	checked, _ := ctx.Value(joinedKey{}).(joined)
	return slices.DeleteFunc(ids, func(id string) bool { return checked[id] })
}
