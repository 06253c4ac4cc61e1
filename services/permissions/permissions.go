// Package permissions is the permissions service: resources, resource sets, authorization units and their rules, and
// checks of who may do what. It exports only what a program needs to run it.
package permissions

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/permissions/internal/httpapi"
	"github.com/idplatform/idplatform/services/permissions/internal/index"
	"github.com/idplatform/idplatform/services/questions"
)

// Spec describes the service.
func Spec() service.Spec {
	return service.Spec{Name: "permissions", Collections: grant.Collections(), New: newApp}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	x := index.New(index.Deps{Store: d.Store, Bus: d.Bus, Log: d.Log, Metrics: d.Metrics})
	grants := grant.New(grant.Deps{
		Store: d.Store, OnChange: x.Apply,
		Conditions: func(ctx context.Context, texts ...string) int { return x.State(ctx).Conditions(texts...) },
	})
	server := d.Server("permissions")
	httpapi.Register(server, grants, x, d.Clock)
	return service.App{
		Handler:   index.TellTokens(server),
		Warnings:  x.Warnings,
		Followers: x.Followers(),
		Answer:    func(b *bus.Bus) error { return answer(b, grants, x) },
		Consumers: []bus.ConsumerConfig{{
			Name: "permissions-cascade",
			Subjects: []string{
				"idp.events.*.user.deleted", "idp.events.*.user.resigned", "idp.events.*.application.deleted",
				"idp.events.*.node.deleted", "idp.events.*.core_object.deleted",
				"idp.events.*.resource.deleted", "idp.events.*.resource_set.deleted", "idp.events.*.auth_unit.deleted",
			},
			Handle: grants.OnDeleted,
		}},
	}, nil
}

// answer registers the answers to questions of other services.
func answer(b *bus.Bus, grants *grant.Grants, x *index.Index) error {
	return errors.Join(
		questions.GrantsOfNode.Answer(b, func(ctx context.Context, q questions.GrantedNode) (questions.Count, error) {
			n, err := grantsOfNode(ctx, grants, x, q)
			return questions.Count{Count: n}, err
		}),
		questions.GrantsOfApplication.Answer(b, func(ctx context.Context, q questions.ApplicationID) (questions.Count,
			error) {
			n, err := grants.CountByOthers(ctx, q.ID)
			return questions.Count{Count: n}, err
		}),
	)
}

// grantsOfNode counts the rules of a node; for a root also those of its tree.
func grantsOfNode(ctx context.Context, grants *grant.Grants, x *index.Index, q questions.GrantedNode) (int64, error) {
	if !x.Loaded() {
		return 0, apperr.New(apperr.Unavailable, "the index of permissions is still being built")
	}
	n, err := grants.CountOf(ctx, engine.Node, q.NodeID)
	if err != nil {
		return 0, err
	}
	tree := x.State(ctx).TreeOfRoot(q.ObjectCode, q.NodeID)
	if tree == "" {
		return n, nil
	}
	ofTree, err := grants.CountOf(ctx, engine.CoreObject, tree)
	return n + ofTree, err
}
