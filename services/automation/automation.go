// Package automation is the automation service: key-value storage, scheduled jobs, functions and components. It exports
// what a program needs to run it, and nothing else.
package automation

import (
	"context"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/automation/internal/httpapi"
)

// Spec describes the service. It has no settings of its own.
func Spec() service.Spec {
	return service.Spec{Name: "automation", New: newApp}
}

func newApp(_ context.Context, d service.Deps) (service.App, error) {
	server := d.Server("automation")
	httpapi.Register(server, httpapi.Nouns{})
	return service.App{Handler: server}, nil
}
