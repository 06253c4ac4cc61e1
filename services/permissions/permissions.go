// Package permissions is the permissions service: resources, resource sets, authorization units and their rules, and
// checks of who may do what. It exports only what a program needs to run it.
package permissions

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/permissions/internal/httpapi"
	"github.com/idplatform/idplatform/services/permissions/internal/index"
	"github.com/idplatform/idplatform/services/questions"
)

// Config holds the service's own settings.
type Config struct {
	MaxStaleness time.Duration `mapstructure:"max_staleness" doc:"How long a replica may hear nothing from NATS before it is not ready and answers checks with 503; 0: without limit"`
}

// DefaultConfig is what the contract says.
func DefaultConfig() Config { return Config{MaxStaleness: 30 * time.Second} }

// Spec describes the service.
func Spec(c Config) service.Spec {
	return service.Spec{Name: "permissions", Collections: grant.Collections(), New: c.newApp}
}

func (c Config) newApp(_ context.Context, d service.Deps) (service.App, error) {
	if c.MaxStaleness < 0 {
		return service.App{}, errors.New("permissions.max_staleness must not be negative")
	}
	x := index.New(index.Deps{Store: d.Store, Bus: d.Bus, Log: d.Log, Metrics: d.Metrics, MaxAge: c.MaxStaleness})
	grants := grant.New(grant.Deps{
		Store: d.Store, Writing: x.Writing, BeforeCommit: index.Name, OnChange: x.Apply,
		Conditions: func(ctx context.Context, texts ...string) int { return x.State(ctx).Conditions(texts...) },
		Scopes: func(ctx context.Context, unitID string) (auth.Scopes, error) {
			if err := x.Ready(); err != nil {
				return 0, err
			}
			return x.State(ctx).ScopesOfUnit(ctx, unitID, d.Clock.Now().Millis())
		},
	})
	server := d.Server("permissions")
	httpapi.Register(server, grants, x, d.Clock)
	return service.App{
		Handler:   server,
		Warnings:  x.Warnings,
		Followers: x.Followers(),
		Answer:    func(b *bus.Bus) error { return answer(b, grants, x, d.Clock) },
		Consumers: []stream.ConsumerConfig{{
			Name: "permissions-cascade",
			Types: stream.Types{
				"user.deleted", "user.resigned", "application.deleted",
				"node.deleted", "core_object.deleted",
				"resource.deleted", "resource_set.deleted", "auth_unit.deleted",
			},
			Handle: grants.OnDeleted,
		}},
	}, nil
}

// answer registers the answers to questions of other services.
func answer(b *bus.Bus, grants *grant.Grants, x *index.Index, now clock.Clock) error {
	return errors.Join(
		questions.GrantsOfNode.Answer(b, func(ctx context.Context, q questions.GrantedNode) (questions.Count, error) {
			n, err := grantsOfNode(ctx, grants, x, q)
			return questions.Count{Count: n}, err
		}),
		questions.GrantsOfApplication.Answer(b, func(ctx context.Context, q questions.ApplicationID) (questions.Count,
			error) {
			if err := x.Ready(); err != nil {
				return questions.Count{}, err
			}
			work := engine.NewWork(nil)
			defer work.Done()
			n, err := x.State(ctx).GrantedByOthers(ctx, q.ID, work)
			return questions.Count{Count: n}, err
		}),
		questions.MayUse.Answer(b, func(ctx context.Context, q questions.Use) (questions.MayUseAnswer, error) {
			return mayUse(ctx, x, q, now.Now())
		}),
		questions.Usable.Answer(b, func(ctx context.Context, q questions.UsableQuestion) (questions.ApplicationIDs,
			error) {
			return usable(ctx, x, q, now.Now())
		}),
		questions.HeldScopes.Answer(b, func(ctx context.Context, q questions.ScopesQuestion) (questions.Scopes, error) {
			return heldScopes(ctx, x, q, now.Now())
		}),
		questions.ScopesOfUser.Answer(b, func(ctx context.Context, q questions.HolderOfScopes) (questions.Scopes,
			error) {
			if err := x.Ready(); err != nil {
				return questions.Scopes{}, apperr.Away("the index of permissions", err)
			}
			given, err := x.State(ctx).ScopesOfUser(ctx, q.UserID, now.Now().Millis())
			return questions.ScopesIn(given), err
		}),
		questions.ScopesOfNodes.Answer(b, func(ctx context.Context, q questions.NodeIDs) (questions.ScopesOfMembers,
			error) {
			return scopesOfNodes(ctx, x, q, now.Now())
		}),
	)
}

// toUse is the question whether a user may use an application, by rules of the type app.
func toUse(userID, appID string, now clock.Time, work *engine.Work) *engine.Question {
	return &engine.Question{
		Identity: engine.Identity{Type: engine.User, ID: userID}, ApplicationID: appID, ObjectType: engine.App,
		Now: now.Millis(), Work: work,
	}
}

// mayUse decides whether a user may use an application.
func mayUse(ctx context.Context, x *index.Index, q questions.Use, now clock.Time) (questions.MayUseAnswer, error) {
	if err := x.Ready(); err != nil {
		return questions.MayUseAnswer{}, apperr.Away("the index of permissions", err)
	}
	decision, err := x.State(ctx).Check(ctx, toUse(q.UserID, q.AppID, now, nil))
	answer := questions.MayUseAnswer{Allowed: decision.Allowed, Reason: string(decision.Reason)}
	if decision.Rule != nil {
		answer.RuleID = decision.Rule.ID
	}
	return answer, err
}

// usable returns the applications that a user may use.
func usable(ctx context.Context, x *index.Index, q questions.UsableQuestion, now clock.Time) (questions.ApplicationIDs,
	error) {
	may := questions.ApplicationIDs{IDs: []string{}}
	if len(q.AppIDs) > questions.MaxUsable {
		return may, apperr.Invalid("app_ids", "must be at most %d", questions.MaxUsable)
	}
	if err := x.Ready(); err != nil {
		return may, apperr.Away("the index of permissions", err)
	}
	work := engine.NewWork(nil)
	defer work.Done()
	state := x.State(ctx)
	for _, id := range q.AppIDs {
		decision, err := state.Check(ctx, toUse(q.UserID, id, now, work))
		if err != nil {
			return may, err
		}
		if decision.Allowed {
			may.IDs = append(may.IDs, id)
		}
	}
	return may, nil
}

// heldScopes returns the scopes whose api resources have an action that rules allow a user.
func heldScopes(ctx context.Context, x *index.Index, q questions.ScopesQuestion, now clock.Time) (questions.Scopes,
	error) {
	held := questions.Scopes{Scopes: []string{}}
	if len(q.Scopes) > questions.MaxScopes {
		return held, apperr.Invalid("scopes", "must be at most %d", questions.MaxScopes)
	}
	if err := x.Ready(); err != nil {
		return held, apperr.Away("the index of permissions", err)
	}
	work := engine.NewWork(nil)
	defer work.Done()
	state := x.State(ctx)
	for _, scope := range q.Scopes {
		actions, err := state.Actions(ctx, &engine.Question{
			Identity: engine.Identity{Type: engine.User, ID: q.UserID}, ApplicationID: q.AppID, ObjectType: engine.API,
			ObjectCode: scope, Now: now.Millis(), Work: work,
		})
		if err != nil {
			return held, err
		}
		if len(actions) > 0 {
			held.Scopes = append(held.Scopes, scope)
		}
	}
	return held, nil
}

// scopesOfNodes returns the scopes that rules give the members of nodes.
func scopesOfNodes(ctx context.Context, x *index.Index, q questions.NodeIDs, now clock.Time) (
	questions.ScopesOfMembers, error,
) {
	if len(q.IDs) > questions.MaxScopeNodes {
		return questions.ScopesOfMembers{}, apperr.Invalid("node_ids", "must be at most %d", questions.MaxScopeNodes)
	}
	if err := x.Ready(); err != nil {
		return questions.ScopesOfMembers{}, apperr.Away("the index of permissions", err)
	}
	given, unknown, err := x.State(ctx).ScopesOfNodes(ctx, q.IDs, now.Millis())
	return questions.ScopesOfMembers{Scopes: questions.ScopesIn(given), Unknown: append([]string{}, unknown...)}, err
}

// grantsOfNode counts the rules of a node; for a root also those of its tree.
func grantsOfNode(ctx context.Context, grants *grant.Grants, x *index.Index, q questions.GrantedNode) (int64, error) {
	if err := x.Ready(); err != nil {
		return 0, err
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
