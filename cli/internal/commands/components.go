package commands

import (
	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/output"
)

var componentView = output.View{
	Columns: append(columns("id", "code", "name", "type", "component_version"), statusColumn),
	Wide:    columns("time_published", "time_modified", "version"),
	Name:    "code",
}

// components makes the commands for components: reusable pieces of pages and flows.
func components(a *App) *cobra.Command {
	of := a.like(operation{
		view: componentView, arguments: 1, path: firstOf(componentKind.id), complete: a.words(componentKind.known()),
	})
	return group("components", "Reusable pieces of pages and flows: create, publish",
		of(operation{
			use: "list", short: "List components", operation: "list-components", path: noPath,
			example: "  idp components list --type page",
		}),
		of(operation{
			use: "get COMPONENT", short: "Show a component as it is edited", operation: "get-component",
			example: "  idp components get banner",
		}),
		of(operation{
			use: "create CODE --type TYPE", short: "Create a component", operation: "create-component", arguments: 1,
			path: noPath, without: []string{"code"}, body: codeAndName,
			example: "  idp components create banner --type page --schema @schema.json --config '{\"color\":\"red\"}'",
		}),
		of(operation{
			use: "update COMPONENT", short: "Change members of a component", operation: "update-component",
			example: "  idp components update banner -F config.color=blue --dry-run",
		}),
		of(operation{
			use: "delete COMPONENT", short: "Delete a component, with its versions", operation: "delete-component",
			example: "  idp components delete banner --yes",
		}),
		of(operation{
			use: "publish COMPONENT", short: "Make what is edited the next version, which never changes",
			operation: "publish-component", example: "  idp components publish banner",
		}),
		of(operation{
			use: "versions COMPONENT", short: "List the published versions", operation: "list-component-versions",
			view: output.View{
				Columns: append(columns("component_version", "name", "type"), timeColumn("PUBLISHED", "time_created")),
				Wide:    columns("id", "schema", "config"), Name: "component_version",
			},
			example: "  idp components versions banner",
		}),
	)
}
