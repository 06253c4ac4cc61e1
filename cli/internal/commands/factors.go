package commands

import (
	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
)

var factorView = output.View{
	Columns: columns("id", "type", "name", "codes_left", "time_created", "time_used"),
	Wide:    columns("user_id", "address", "browser"),
	Name:    "id",
}

var codesView = output.View{Columns: columns("codes")}

// factors makes the commands for second factors.
func factors(a *App) *cobra.Command {
	user := firstOf(userID)
	known := a.complete("users", usersLike)
	return group("factors", "Second factors of people: list, delete, new recovery codes",
		a.operation(operation{
			use: "list", short: "List second factors", operation: "list-factors", view: factorView,
			references: []reference{{
				flag: "user", usage: "those of this user", id: "user_id", find: userID, known: knownUsers,
			}},
			example: "  idp factors list --user li.wei",
		}),
		a.operation(operation{
			use: "get ID", short: "Show a second factor", operation: "get-factor", view: factorView, arguments: 1,
			example: "  idp factors get 1048577",
		}),
		a.operation(operation{
			use: "delete ID", short: "Delete a second factor that somebody has lost", operation: "delete-factor",
			verb: "Delete", arguments: 1, example: "  idp factors delete 1048577 --yes",
		}),
		a.operation(operation{
			use: "recovery-codes USER", short: "Give a user new recovery codes, which are shown once",
			operation: "renew-recovery-codes", view: codesView, arguments: 1, path: user, complete: known,
			example: "  idp factors recovery-codes li.wei",
		}),
	)
}
