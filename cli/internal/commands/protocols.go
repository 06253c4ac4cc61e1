package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var protocolView = output.View{
	Columns: []output.Column{
		eitherColumn("PROTOCOL", "protocol_type"), statusColumn, eitherColumn("SECRET", "secret_hint"),
		eitherColumn("SETTINGS", "protocol_prop"), timeColumn("MODIFIED", "time_modified"),
	},
	Wide: append(columns("id", "app_id"), timeColumn("CREATED", "time_created")),
	Name: "protocol_type",
}

var protocolTypes = fixed("oidc", "oauth2", "saml", "cas", "sxp")

// protocols makes the commands for the protocols of applications.
func protocols(a *App) *cobra.Command {
	first, both := a.words(knownApplications), a.words(knownApplications, protocolTypes)
	return group("protocols", "Protocols of applications: settings, switches, new secrets",
		a.operation(operation{
			use: "list APP", short: "List an application's protocols", operation: "list-protocols", view: protocolView,
			arguments: 1, path: inApplication, complete: first, example: "  idp protocols list crm",
		}),
		a.operation(operation{
			use: "get APP PROTOCOL", short: "Show a protocol", operation: "get-protocol", view: protocolView,
			arguments: 2, path: inApplication, complete: both, example: "  idp protocols get crm oidc",
		}),
		a.operation(operation{
			use: "set APP PROTOCOL SETTING=VALUE...", short: "Change settings of a protocol, or set it up",
			operation: "put-protocol", arguments: 2, more: true, keeps: true,
			complete: a.words(knownApplications, protocolTypes, fixed()),
			path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
				return inApplication(ctx, s, args[:2])
			},
			body: func(_ context.Context, s *session.Session, args []string, body members) error {
				return body.settings(s, "protocol_prop", args[2:], nil)
			},
			example: "  idp protocols set crm saml acs_url=https://crm.acme.test/acs sp_entity=crm\n" +
				"  idp protocols set crm saml saml_response_signing_key=@key.pem --if-version 3\n" +
				"  idp protocols set crm saml name_identifier_format=null --dry-run",
		}),
		a.operation(operation{
			use: "enable APP PROTOCOL", short: "Switch a protocol on", operation: "enable-protocol", view: protocolView,
			arguments: 2, path: inApplication, complete: both, example: "  idp protocols enable crm saml",
		}),
		a.operation(operation{
			use: "disable APP PROTOCOL", short: "Switch a protocol off", operation: "disable-protocol",
			view: protocolView, arguments: 2, path: inApplication, complete: both,
			example: "  idp protocols disable crm saml",
		}),
		a.operation(operation{
			use: "rotate APP PROTOCOL", short: "Make a new secret of a protocol", operation: "reset-protocol-secret",
			arguments: 2, path: inApplication, complete: both, once: &once{"Protocol", []string{"secret"}, nil},
			example: "  idp protocols rotate crm oidc --secrets-to crm.secret",
		}),
	)
}

// inApplication finds the application that the first argument names; the others stay.
func inApplication(ctx context.Context, s *session.Session, args []string) ([]string, error) {
	id, err := applicationID(ctx, s, args[0])
	return append([]string{id}, args[1:]...), err
}
