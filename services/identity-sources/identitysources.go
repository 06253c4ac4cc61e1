// Package identitysources is the identity-sources service: the catalogue of login providers, connections to them, and
// authentication methods and templates. It exports only what a program needs to run it.
package identitysources

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
	"github.com/idplatform/idplatform/services/identity-sources/internal/domain"
	"github.com/idplatform/idplatform/services/identity-sources/internal/httpapi"
	"github.com/idplatform/idplatform/services/identity-sources/internal/method"
	"github.com/idplatform/idplatform/services/identity-sources/internal/probe"
	"github.com/idplatform/idplatform/services/questions"
)

// Spec describes the service. It has no settings of its own.
func Spec() service.Spec { return SpecWith(net.DefaultResolver.LookupTXT) }

// LookupTXT is that of net.Resolver.
type LookupTXT = func(ctx context.Context, name string) ([]string, error)

// SpecWith is Spec with another DNS.
func SpecWith(lookup LookupTXT) service.Spec {
	return service.Spec{
		Name:        "identity-sources",
		Collections: slices.Concat(connection.Collections(), method.Collections(), domain.Collections()),
		New: func(_ context.Context, d service.Deps) (service.App, error) {
			return newApp(d, lookup)
		},
	}
}

func newApp(d service.Deps, lookup LookupTXT) (service.App, error) {
	connections := connection.New(connection.Deps{
		Store: d.Store, Bus: d.Bus, InUse: method.OfConnection, OnDelete: domain.OnDelete,
	})
	domains := domain.New(domain.Deps{Store: d.Store, Bus: d.Bus, LookupTXT: lookup})
	methods, templates := method.New(d.Store, d.Bus)
	server := d.Server("identity-sources")
	httpapi.Register(server, d.PublicURL, connections, methods, templates, domains,
		probe.New(d.Outbound, d.Dialer))
	return service.App{
		Handler: server,
		Answer:  func(b *bus.Bus) error { return answer(b, connections, templates) },
		Tasks: []service.Task{d.DueTask(service.DueWork{
			Name: "look up domains", Every: time.Minute, Due: domain.Due, Do: domains.Recheck,
		})},
	}, nil
}

// answer registers the answers to other services' questions.
func answer(b *bus.Bus, connections *connection.Connections, templates *method.Templates) error {
	return errors.Join(
		questions.ConnectionExists.Answer(b,
			func(ctx context.Context, q questions.ConnectionID) (questions.Exists, error) {
				found, err := connections.Existing(ctx, []string{q.ID})
				return questions.Exists{Exists: len(found) > 0}, err
			}),
		questions.ExistingConnections.Answer(b,
			func(ctx context.Context, q questions.ConnectionIDs) (questions.Connections, error) {
				found, err := connections.Existing(ctx, q.IDs)
				return questions.Connections{Connections: found}, err
			}),
		questions.LoginTemplateOf.Answer(b, templates.ForSignIn),
		questions.SettingsOfConnection.Answer(b, connections.SealedSettings),
	)
}
