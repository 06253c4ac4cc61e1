package commands

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var groupView = output.View{
	Columns: []output.Column{
		output.MemberColumn("id"), {Title: "NAME", Of: func(o output.Object) string { return o.Text("identity_id") }},
		output.MemberColumn("description"), output.MemberColumn("rule_count"),
	},
	Wide: columns("identity_name", "time_created", "time_modified"),
	Name: "identity_id",
}

// groups makes the commands for free-standing groups: authorization units whose identity is the group itself.
func groups(a *App) *cobra.Command {
	identity := []string{"identity_id", "identity_type", "identity_name"}
	of := a.like(operation{
		view: groupView, arguments: 1, path: firstOf(unitID), complete: a.words(groupKind.known()),
	})
	return group("groups", "Groups of people beside the trees: list, create, delete",
		of(operation{
			use: "list", short: "List groups", operation: "list-auth-units", path: noPath, without: identity,
			query: func(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
				query.Set("identity_type", "group")
				return nil
			},
			example: "  idp groups list",
		}),
		of(operation{
			use: "create NAME", short: "Create a group", operation: "create-auth-unit", arguments: 1, path: noPath,
			without: identity,
			body: func(_ context.Context, _ *session.Session, args []string, body members) error {
				body["identity_type"], body["identity_id"], body["identity_name"] = "group", args[0], args[0]
				return nil
			},
			example: "  idp groups create auditors --description 'may read all invoices'",
		}),
		of(operation{
			use: "delete GROUP", short: "Delete a group, with what it is granted", operation: "delete-auth-unit",
			example: "  idp groups delete auditors --yes",
		}),
	)
}
