package commands

import (
	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
)

var invitationView = output.View{
	Columns: columns("id", "email", "status", "time_sent", "time_expires"),
	Wide:    columns("application_id", "invited_by", "expires_hours", "time_ended"),
	Name:    "email",
}

// invitations makes the commands for invitations. An invitation has the id of its user.
func invitations(a *App) *cobra.Command {
	user := firstOf(userID)
	known := a.complete("users", usersLike)
	return group("invitations", "Invitations to choose a first password: list, send again, revoke",
		a.operation(operation{
			use: "list", short: "List invitations", operation: "list-invitations", view: invitationView,
			example: "  idp invitations list --status pending",
		}),
		a.operation(operation{
			use: "get USER", short: "Show a user's invitation", operation: "get-invitation", view: invitationView,
			arguments: 1, path: user, complete: known, example: "  idp invitations get li.wei",
		}),
		a.operation(operation{
			use: "resend USER", short: "Send a user's invitation again", operation: "resend-invitation",
			view: invitationView, arguments: 1, path: user, complete: known, example: "  idp invitations resend li.wei",
		}),
		a.operation(operation{
			use: "revoke USER", short: "Revoke a user's invitation", operation: "revoke-invitation", verb: "Revoke",
			arguments: 1, path: user, complete: known, example: "  idp invitations revoke li.wei --yes",
		}),
	)
}
