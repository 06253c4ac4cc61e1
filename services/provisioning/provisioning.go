// Package provisioning is the provisioning service: SCIM 2.0 for the clients of connections, which write users and
// groups of the users and organization services. It exports only what a program needs to run it.
package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/provisioning/internal/groups"
	"github.com/idplatform/idplatform/services/provisioning/internal/httpapi"
	"github.com/idplatform/idplatform/services/provisioning/internal/journal"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
)

// Spec describes the service. It has no settings of its own.
func Spec() service.Spec {
	return service.Spec{
		Name: "provisioning",
		Collections: slices.Concat(connection.Collections(), directory.Collections(), people.Collections(),
			groups.Collections(), gate.Collections(), journal.Collections()),
		New: newApp,
	}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	var connections *connection.Connections
	holder := func(ctx context.Context, hash string) (*auth.Principal, error) { return connections.Holder(ctx, hash) }
	opaque := auth.NewOpaque(connection.TokenPrefix, d.Clock, holder)
	connections = connection.New(connection.Deps{Store: d.Store, Bus: d.Bus, Ended: opaque.Forget})
	base := d.PublicURL + "/scim/v2"
	held := &gate.Gate{Store: d.Store}
	domain := httpapi.Domain{
		Store: d.Store, Connections: connections, Gate: held, Journal: journal.New(d.Store), Base: base,
		Users:  people.New(people.Deps{Store: d.Store, Bus: d.Bus, Gate: held, Base: base}),
		Groups: groups.New(groups.Deps{Store: d.Store, Bus: d.Bus, Gate: held}),
	}
	held.Do, held.Remove = httpapi.CarryOut(domain, false), httpapi.CarryOut(domain, true)
	server := d.Server("provisioning")
	server.AcceptOpaque(opaque)
	httpapi.Register(server, domain)
	copied := &directory.Copy{Store: d.Store}
	return service.App{
		Handler: server,
		Tasks:   tasks(d, domain, copied),
		Consumers: []stream.ConsumerConfig{
			{Name: "provisioning-users", Types: stream.Types{"user.*"}, Handle: copied.OnUser},
			{Name: "provisioning-nodes", Types: stream.Types{"node.*"}, Handle: copied.OnNode},
			{Name: "provisioning-members", Types: stream.Types{"membership.*"},
				Handle: copied.OnMembership},
			{Name: "provisioning-logins", Types: stream.Types{"connection.deleted"},
				Handle: connections.OnLoginConnectionDeleted},
		},
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), flushTime)
			defer cancel()
			_, _ = domain.Journal.Flush(ctx) // what is lost is only its log
		},
	}, nil
}

const flushTime = 5 * time.Second

func tasks(d service.Deps, domain httpapi.Domain, copied *directory.Copy) []service.Task {
	forget := func(ctx context.Context, id string) error {
		if err := directory.ForgetTree(ctx, d.Store, id); err != nil {
			return err
		}
		if err := gate.Forget(ctx, d.Store, id); err != nil {
			return err
		}
		return journal.ForgetAll(ctx, d.Store, id)
	}
	due := func(
		name string, every time.Duration, list func(context.Context, *docstore.Store, int) ([]docstore.Ref, error),
		do func(context.Context, string) error,
	) service.Task {
		return d.DueTask(service.DueWork{Name: name, Every: every, Due: list, Do: do})
	}
	inStore := func(do func(context.Context, *docstore.Store, string) error) func(context.Context, string) error {
		return func(ctx context.Context, id string) error { return do(ctx, d.Store, id) }
	}
	return []service.Task{
		{Name: "store the log", Every: time.Second, Do: domain.Journal.Flush},
		due("finish users", 5*time.Second, people.DueIntents, domain.Users.Finish),
		due("finish groups", 5*time.Second, groups.DueIntents, domain.Groups.Finish),
		due("free trees", 5*time.Second, connection.DueClaims, domain.Connections.EndClaim),
		due("copy trees", time.Second, connection.DueCopies, func(ctx context.Context, id string) error {
			return copied.Build(ctx, d.Bus, id)
		}),
		due("tell owners", time.Second, connection.DueSweeps, func(ctx context.Context, id string) error {
			return domain.Connections.Sweep(ctx, id, domain.Users.Sweep, forget)
		}),
		due("carry out approved requests", 5*time.Second, gate.Due, domain.Gate.CarryOut),
		due("forget counts of removals", time.Minute, gate.DueCounts, inStore(gate.ForgetCount)),
		due("end tokens", time.Minute, connection.DueTokens, domain.Connections.ForgetToken),
		due("forget memberships", time.Minute, directory.DueMembers, inStore(directory.ForgetMember)),
		due("forget early records", time.Minute, directory.DueEarly, inStore(directory.ForgetEarly)),
		d.DueTask(service.DueWork{
			Name: "forget the log", Every: time.Minute, Due: journal.Due, AtOnce: 500,
			Do:    func(ctx context.Context, id string) error { return journal.Forget(ctx, d.Store, id) },
			DoAll: func(ctx context.Context, ids []string) error { return journal.Forget(ctx, d.Store, ids...) },
		}),
	}
}
