// Package applications is the applications service: applications with their configuration, protocols, authentication
// sources, sub-accounts, secrets and logos, and the tokens of machine clients. It exports what a program needs to run
// it, and nothing else.
package applications

import (
	"context"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/httpapi"
)

// Config are the service's own settings.
type Config struct {
	AllowHTTP bool `mapstructure:"allow_http" doc:"Accept http URLs of applications for every host, not for loopback hosts alone"`
}

// DefaultConfig is what the service starts with.
func DefaultConfig() Config { return Config{} }

// Spec describes the service under a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{Name: "applications", Collections: application.Collections(), New: c.new}
}

func (c Config) new(_ context.Context, d service.Deps) (service.App, error) {
	apps := application.New(application.Deps{Store: d.Store, Rules: application.Rules{AllowHTTP: c.AllowHTTP}})
	server := d.Server("applications")
	httpapi.Register(server, apps)
	return service.App{Handler: server}, nil
}
