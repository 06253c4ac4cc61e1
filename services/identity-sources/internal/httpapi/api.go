// Package httpapi defines the identity-sources service's operations: JSON forms and their conversion to those of the
// domain, one file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/identity-sources/internal/connection"
	"github.com/idplatform/idplatform/services/identity-sources/internal/domain"
	"github.com/idplatform/idplatform/services/identity-sources/internal/method"
	"github.com/idplatform/idplatform/services/identity-sources/internal/probe"
)

type api struct {
	connections *connection.Connections
	methods     *method.Methods
	templates   *method.Templates
	domains     *domain.Domains
	prober      *probe.Prober
	publicURL   string // of the platform
}

// Register adds all operations to the server.
func Register(s *rest.Server, publicURL string, c *connection.Connections, m *method.Methods, t *method.Templates,
	d *domain.Domains, p *probe.Prober,
) {
	a := &api{c, m, t, d, p, publicURL}
	sources := s.Tagged("Identity sources", "Connections to login providers, and the catalogue of providers.")
	a.registerConnections(sources)
	a.registerDomains(sources)
	a.registerMethods(s.Tagged("Authentication methods", "The ways in which people prove who they are."))
	a.registerTemplates(s.Tagged("Authentication templates", "The steps of a login."))
}
