// Package applications is the applications service: applications with their configuration, protocols, authentication
// sources, sub-accounts, secrets and logos, and the tokens of machine clients. It exports only what a program needs to
// run it.
package applications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/applications/internal/account"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/ended"
	"github.com/idplatform/idplatform/services/applications/internal/httpapi"
	"github.com/idplatform/idplatform/services/applications/internal/template"
	"github.com/idplatform/idplatform/services/applications/internal/token"
	"github.com/idplatform/idplatform/services/questions"
)

// Config are the service's own settings.
type Config struct {
	AllowHTTP bool `mapstructure:"allow_http" doc:"Accept http URLs of applications for every host, not only for loopback hosts"`
	AllowSHA1 bool `mapstructure:"allow_sha1" doc:"Accept algorithms with SHA-1 in SAML settings, for products that support no others"`

	Tokens TokenConfig `mapstructure:"tokens"`

	Bootstrap Bootstrap `mapstructure:"-"` // set at the top level, as bootstrap.client_id
}

// DefaultConfig is the configuration that the service starts with.
func DefaultConfig() Config {
	return Config{Tokens: defaultTokens(), Bootstrap: Bootstrap{Tenant: defaultTenant}}
}

// Spec describes the service with a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{
		Name: "applications", New: c.new,
		Collections: slices.Concat(application.Collections(), account.Collections(), oauthCollections()),
	}
}

func (c Config) new(ctx context.Context, d service.Deps) (service.App, error) {
	catalogue, err := template.Open()
	if err != nil {
		return service.App{}, err
	}
	accounts := &account.Accounts{Store: d.Store, Bus: d.Bus}
	apps := application.New(application.Deps{
		Store: d.Store, Bus: d.Bus, Templates: catalogue, Pictures: picture.NewDecoder(d.Pictures, d.Metrics),
		Rules: application.Rules{AllowHTTP: c.AllowHTTP, AllowSHA1: c.AllowSHA1},
		OnEnd: func(ctx context.Context, tx *docstore.Tx, a *application.Application) error {
			return ended.Client(ctx, tx, a.ClientID, a.Version)
		},
		OnDelete: func(ctx context.Context, tx *docstore.Tx, id string) error {
			return errors.Join(account.DeleteOf(ctx, tx, id), token.Forget(ctx, tx, id))
		},
		HaveSeveral: account.HaveSeveral,
	})
	server := d.Server("applications")
	httpapi.Register(server, apps, accounts, catalogue)
	tokens, keys, err := c.tokens(ctx, d, apps)
	if err != nil {
		return service.App{}, err
	}
	httpapi.RegisterOAuth(server, tokens, keys)
	if err := apps.ListAdministrators(request.System(ctx, request.Platform)); err != nil {
		return service.App{}, fmt.Errorf("the list of administrators: %w", err)
	}
	if err := c.Bootstrap.make(ctx, d, apps); err != nil {
		return service.App{}, err
	}
	return service.App{
		Handler: server,
		Tasks: append(oauthTasks(d, keys, tokens),
			d.DueTask(service.DueWork{
				Name: "end client secrets", Every: time.Second, Due: application.Due, Do: apps.DeleteExpiredSecrets,
			}),
			d.DueTask(service.DueWork{
				Name: "delete sub-accounts", Every: time.Second, Due: account.DueRemainders, Do: accounts.Finish,
			}),
		),
		Answer: func(b *bus.Bus) error {
			return errors.Join(ended.Answer(b, d.Store),
				questions.ApplicationsOfConnection.Answer(b, apps.OfConnection),
				questions.NextApplicationsTenant.Answer(b, apps.NextTenant),
				questions.ApplicationRecords.Answer(b, apps.Records),
				questions.LaunchableApplications.Answer(b, apps.Launchable),
				questions.ClientOf.Answer(b, apps.ForSignIn),
				questions.SigningKeyOf.Answer(b, apps.SigningKey),
				questions.AccountsOfUser.Answer(b, accounts.EnabledOf))
		},
		Followers: []stream.FollowerConfig{ended.Follower(d.Verifier, d.Store, func(ctx context.Context) error {
			_, err := keys.Refresh(ctx)
			return err
		})},
		Consumers: consumers(apps, accounts),
	}, nil
}

// consumers hear what happens to the users of accounts and to the connections of sources.
func consumers(apps *application.Applications, accounts *account.Accounts) []stream.ConsumerConfig {
	return []stream.ConsumerConfig{
		{
			Name: "applications-users", Handle: accounts.OnUser,
			Types: stream.Types{
				"user.deleted", "user.resigned", "user.reinstated",
			},
		},
		{
			Name: "applications-connections", Handle: apps.OnConnection,
			Types: stream.Types{"connection.deleted"},
		},
	}
}
