// Package httpapi defines the applications service's operations: JSON forms and their conversion to those of the
// domain, one file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/account"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/template"
)

type api struct {
	apps      *application.Applications
	accounts  *account.Accounts
	templates *template.Catalogue
}

// Register adds all operations to the server.
func Register(s *rest.Server, apps *application.Applications, accounts *account.Accounts, t *template.Catalogue) {
	a := &api{apps, accounts, t}
	noun := s.Tagged("Applications",
		"The programs that people and machines sign in to: records, states, configuration.")
	a.registerApplications(noun)
	a.registerBatch(noun)
	a.registerStates(noun)
	a.registerConfigs(noun)
	a.registerLogos(s.Tagged("Logos", "The pictures of applications."))
	a.registerSecrets(s.Tagged("Client secrets", "The secrets with which applications authenticate."))
	a.registerProtocols(s.Tagged("Protocols", "The protocols with which people sign in to applications."))
	a.registerSources(s.Tagged("Authentication sources",
		"The connections through which people sign in to an application."))
	a.registerAccounts(s.Tagged("Accounts", "Sub-accounts: the accounts that users have in applications."))
	a.registerTemplates(s.Tagged("Templates", "The catalogue of products that applications can be made from."))
}
