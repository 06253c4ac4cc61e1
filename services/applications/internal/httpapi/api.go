// Package httpapi is the applications service's operations: wire forms, their conversion to the domain's, one file a
// noun. It holds no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

type api struct {
	apps *application.Applications
}

// Register adds all operations to the server.
func Register(s *rest.Server, apps *application.Applications) {
	a := &api{apps}
	a.registerApplications(s.Tagged("Applications", "The programs that people and machines sign in to: their records and states."))
}
