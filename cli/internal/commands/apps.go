package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// categories are the words for what kind of program an application is.
var categories = map[string]string{"1": "web", "2": "single page", "3": "client", "4": "service"}

var appView = output.View{
	Columns: append(columns("id", "name"), inWords("KIND", "category", categories),
		eitherColumn("PROTOCOL", "protocol_type"), statusColumn, output.MemberColumn("client_id")),
	Wide: append(columns("redirect_url", "login_url", "scopes"), inWords("SSO", "sso_enabled", onOff),
		inWords("MFA", "mfa_enabled", onOff), eitherColumn("SOURCES", "idps"), timeColumn("CREATED", "time_created"),
		timeColumn("MODIFIED", "time_modified")),
	Name: "name",
}

var secretView = output.View{
	Columns: append(columns("id", "hint"), timeColumn("CREATED", "time_created"),
		timeColumn("EXPIRES", "time_expires")),
	Name: "hint",
}

var templateView = output.View{
	Columns: append(columns("template_id", "name", "version"), eitherColumn("PROTOCOL", "protocol_type"),
		eitherColumn("NEEDS", "params_schema.required")),
	Name: "template_id",
}

// apps makes the commands for applications.
func apps(a *App) *cobra.Command {
	app := firstOf(applicationID)
	words := a.words(knownApplications)
	return group("apps", "Applications: create, change, switch on and off, new secrets",
		a.operation(operation{
			use: "list", short: "List applications", operation: "list-applications", view: appView,
			example: "  idp apps list --name crm\n  idp apps list --category 4 --status 1 -o wide",
		}),
		a.operation(operation{
			use: "get APP", short: "Show an application", operation: "get-application", view: appView, arguments: 1,
			path: app, complete: words, example: "  idp apps get crm\n  idp apps get crm -o json",
		}),
		a.operation(operation{
			use: "find", short: "Find the application of a host", operation: "find-application", view: appView,
			example: "  idp apps find --domain crm.acme.test",
		}),
		a.operation(operation{
			use: "create NAME", short: "Create an application", operation: "create-application", view: appView,
			arguments: 1, path: noPath, body: argumentAs("name"), without: []string{"name"},
			once: &once{"Application", []string{"client_secret"}, []string{"client_id"}},
			example: "  idp apps create crm --redirect-url https://crm.acme.test/callback --secrets-to crm.secret\n" +
				"  idp apps create hr-sync --category 4 -F 'scopes=[\"users:read\"]'\n" +
				"  idp apps create gitlab --template-id gitlab -F template_params.params.base_url=https://git.test",
		}),
		a.operation(operation{
			use: "update APP", short: "Change members of an application", operation: "update-application",
			view: appView, arguments: 1, path: app, complete: words,
			example: "  idp apps update crm --redirect-url https://crm.acme.test/callback --dry-run\n" +
				"  idp apps update crm --mfa-enabled 1 --if-version 3",
		}),
		a.operation(operation{
			use: "enable APP", short: "Switch an application on", operation: "enable-application", view: appView,
			arguments: 1, path: app, complete: words, example: "  idp apps enable crm",
		}),
		a.operation(operation{
			use: "disable APP", short: "Switch an application off", operation: "disable-application", view: appView,
			arguments: 1, path: app, complete: words, example: "  idp apps disable crm",
		}),
		a.operation(operation{
			use: "delete APP", short: "Delete an application", operation: "delete-application", arguments: 1,
			path: app, complete: words, example: "  idp apps delete crm --yes",
		}),
		a.operation(operation{
			use: "secrets APP", short: "List an application's client secrets, without what they are",
			operation: "get-application", view: secretView, arguments: 1, path: app, complete: words,
			answer: partOf("secrets"), example: "  idp apps secrets crm",
		}),
		rotateSecrets(a),
		a.operation(operation{
			use: "templates", short: "List the catalogue of products", operation: "list-application-templates",
			view: templateView,
			query: func(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
				query.Set("name", query.Get("name")) // it must be there, also if it is empty
				return nil
			},
			example: "  idp apps templates --name git",
		}),
	)
}

// argumentAs puts the first argument into the body.
func argumentAs(member string) func(context.Context, *session.Session, []string, members) error {
	return func(_ context.Context, _ *session.Session, args []string, body members) error {
		body[member] = args[0]
		return nil
	}
}

// partOf makes an answer of one member of a record.
func partOf(member string) func(*session.Session, []byte) ([]byte, error) {
	return func(_ *session.Session, body []byte) ([]byte, error) {
		value, err := output.Parse(body)
		if err != nil {
			return body, nil // it is told when it is printed
		}
		record, _ := value.(output.Object)
		return json.Marshal(record.Get(member))
	}
}

func rotateSecrets(a *App) *cobra.Command {
	grace := time.Duration(0)
	return a.operation(operation{
		use: "rotate APP", short: "Make a new client secret", operation: "refresh-secrets", arguments: 1,
		path: firstOf(applicationID), complete: a.words(knownApplications), without: []string{"grace_seconds"},
		flags: func(command *cobra.Command) {
			command.Flags().DurationVar(&grace, "grace", 0,
				"how long the former secrets stay valid, up to 2160h; absent: they end at once")
		},
		query: func(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
			if grace < 0 || grace%time.Second != 0 {
				return failure.Usagef("--grace must be whole seconds, such as 24h or 90s")
			}
			if grace > 0 {
				query.Set("grace_seconds", fmt.Sprint(int64(grace/time.Second)))
			}
			return nil
		},
		once:    &once{"Application", []string{"client_secret"}, []string{"client_id"}},
		example: "  idp apps rotate crm --grace 24h --secrets-to crm.secret",
	})
}
