package commands

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var orgView = output.View{
	Columns: append(columns("id", "code", "name", "description", "node_count"), statusColumn),
	Wide:    columns("root_node_id", "seq", "time_modified"),
	Name:    "code",
}

// orgs makes the commands for core objects: the trees that organize people.
func orgs(a *App) *cobra.Command {
	of := a.like(operation{
		view: orgView, arguments: 1, path: firstOf(treeKind.id), complete: a.words(treeKind.known()),
	})
	return group("orgs", "Organization trees, such as a company: list, create, change",
		of(operation{
			use: "list", short: "List the trees", operation: "list-core-objects", path: noPath,
			example: "  idp orgs list",
		}),
		of(operation{
			use: "get TREE", short: "Show a tree", operation: "get-core-object", without: []string{"code"},
			query: func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
				tree, err := treeKind.find(ctx, s, args[0], nil)
				query.Set("code", tree.Text("code"))
				return err
			},
			example: "  idp orgs get company\n  idp orgs get company -o wide",
		}),
		of(operation{
			use: "create CODE", short: "Create a tree, with its root", operation: "create-core-object", arguments: 1,
			path: noPath, without: []string{"code"}, body: codeAndName,
			example: "  idp orgs create company --name Acme",
		}),
		of(operation{
			use: "update TREE", short: "Change members of a tree", operation: "update-core-object",
			without: []string{"code"}, example: "  idp orgs update company --name 'Acme China' --dry-run",
		}),
		of(operation{
			use: "delete TREE", short: "Delete a tree that has only its root", operation: "delete-core-object",
			example: "  idp orgs delete company --grants refuse --yes",
		}),
	)
}

// codeAndName makes a new record of its code; it is its name, too, unless --name says otherwise.
func codeAndName(_ context.Context, _ *session.Session, args []string, body members) error {
	body["code"] = args[0]
	body.otherwise("name", args[0])
	return nil
}
