package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var userView = output.View{
	Columns: append(columns("id", "username", "display_name", "email", "mobile"), output.Column{
		Title: "STATUS", Of: userStatus,
	}),
	Wide: columns("employee_number", "locale", "time_last_login", "time_created", "time_modified"),
	Name: "username",
}

// userStatus says in words what status and locked say.
func userStatus(user output.Object) string {
	switch status := user.Text("status"); {
	case status == "resigned":
		return "resigned"
	case user.Text("locked") == "true":
		return "locked"
	case status == "0":
		return "disabled"
	}
	return "active"
}

// users makes the commands for users.
func users(a *App) *cobra.Command {
	user := firstOf(userID)
	known := a.complete("users", usersLike)
	return group("users", "People: list, create, change, invite, lock, resign",
		a.operation(operation{
			use: "list", short: "List and search users", operation: "list-users", view: userView,
			example: "  idp users list --keyword li\n  idp users list --search-type generic --keyword 研发 --all -o csv",
		}),
		a.operation(operation{
			use: "get USER", short: "Show a user", operation: "get-user", view: userView, arguments: 1,
			path: user, complete: known,
			example: "  idp users get li.wei\n  idp users get li.wei@acme.test -o json",
		}),
		a.operation(operation{
			use: "create USERNAME", short: "Create a user", operation: "create-user", view: userView, arguments: 1,
			path: noPath, body: argumentAs("username"), without: []string{"username", "password"},
			example: "  idp users create li.wei --display-name 李伟 --email li.wei@acme.test",
		}),
		a.operation(operation{
			use: "update USER", short: "Change members of a user", operation: "update-user", view: userView,
			arguments: 1, path: user, complete: known,
			example: "  idp users update li.wei --email li@acme.test --dry-run\n" +
				"  idp users update li.wei -F mobile=null --if-version 3",
		}),
		a.operation(operation{
			use: "delete USER", short: "Delete a user", operation: "delete-user", arguments: 1,
			path: user, complete: known,
			example: "  idp users delete li.wei --yes",
		}),
		a.operation(operation{
			use: "lock USER", short: "Lock a user out", operation: "lock-user", view: userView, arguments: 1,
			path: user, complete: known,
			example: "  idp users lock li.wei --reason 'on leave' --until 2026-12-31T00:00:00Z",
		}),
		a.operation(operation{
			use: "unlock USER", short: "Let a locked user in again", operation: "unlock-user", view: userView,
			arguments: 1, path: user, complete: known, example: "  idp users unlock li.wei",
		}),
		a.operation(operation{
			use: "resign USER", short: "Resign a user", operation: "resign-user", view: userView, arguments: 1,
			path: user, complete: known,
			references: []reference{{
				flag: "successor", usage: "the user who takes over", id: "successor_id",
				find: userID, known: knownUsers,
			}},
			example: "  idp users resign li.wei --successor wang.fang --reason 'moved away'",
		}),
		a.operation(operation{
			use: "reinstate USER", short: "Take a resignation back", operation: "reinstate-user", view: userView,
			arguments: 1, path: user, complete: known, example: "  idp users reinstate li.wei",
		}),
		a.operation(operation{
			use: "invite USER", short: "Invite a user by mail to choose a first password", operation: "invite-user",
			view: invitationView, arguments: 1, path: user, complete: known,
			references: []reference{{
				flag: "application", usage: "the application that opens once the password is chosen",
				id: "application_id", find: applicationID, known: knownApplications,
			}},
			example: "  idp users invite li.wei\n  idp users invite li.wei --application crm --expires-hours 48",
		}),
	)
}

// noPath is of operations whose arguments are no parameters of the path.
func noPath(context.Context, *session.Session, []string) ([]string, error) { return nil, nil }
