package commands

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var setView = output.View{
	Columns: append(columns("id", "code", "name", "description", "member_count"), yesColumn("GLOBAL", "is_global")),
	Wide:    columns("application_id", "version", "time_modified"),
	Name:    "code",
}

var setMemberView = output.View{
	Columns: columns("id", "resource_type", "resource_code", "actions"),
	Wide:    columns("resource_id", "time_modified"),
	Name:    "resource_code",
}

// setID finds a set by the names of its application and its own: crm:finance.
func setID(ctx context.Context, s *session.Session, name string) (string, error) {
	set, _, err := setKind.inApplication(ctx, s, name, nil)
	return set.Text("id"), err
}

// sets makes the commands for sets of resources.
func sets(a *App) *cobra.Command {
	of := a.like(operation{
		view: setView, arguments: 1, path: firstOf(setID), complete: a.words(setKind.inApplications()),
	})
	return group("sets", "Sets of resources that are granted together: list, create, add, remove",
		of(operation{
			use: "list --app APPLICATION", short: "List the sets of an application", operation: "list-resource-sets",
			path: noPath, references: []reference{applicationFlag("whose sets", true)},
			example: "  idp sets list --app crm",
		}),
		of(operation{
			use: "get APPLICATION:CODE", short: "Show a set", operation: "get-resource-set",
			example: "  idp sets get crm:finance",
		}),
		of(operation{
			use: "create APPLICATION:CODE", short: "Create a set", operation: "create-resource-set", arguments: 1,
			path: noPath, without: []string{"application_id", "code"}, body: newSet,
			example: "  idp sets create crm:finance --name 财务",
		}),
		of(operation{
			use: "update APPLICATION:CODE", short: "Change members of a set", operation: "replace-resource-set",
			without: []string{"application_id", "code", "is_global"}, keeps: true,
			example: "  idp sets update crm:finance --name 财务 --if-version 1",
		}),
		of(operation{
			use: "delete APPLICATION:CODE", short: "Delete a set, with the rules about it",
			operation: "delete-resource-set", example: "  idp sets delete crm:finance --yes",
		}),
		of(operation{
			use: "members APPLICATION:CODE", short: "List the resources in a set",
			operation: "list-resource-set-members", view: setMemberView, example: "  idp sets members crm:finance",
		}),
		addToSet(a), removeFromSet(a),
	)
}

func newSet(ctx context.Context, s *session.Session, args []string, body members) (err error) {
	of, code, hasCode := naming.Cut(args[0])
	if of == "" || !hasCode || code == "" {
		return failure.Usagef("a new set is named application:code, such as crm:finance")
	}
	body["code"] = code
	body["application_id"], err = applicationID(ctx, s, of)
	return err
}

func addToSet(a *App) *cobra.Command {
	var actions []string
	kind := ""
	command := &cobra.Command{
		Use: "add APPLICATION:CODE RESOURCE...", Short: "Add resources to a set, all or none", Args: atLeast(2),
		Long: "Add resources to a set, all or none, with all their actions unless --actions says which.\n\n" +
			"Scope: permissions:write",
		Example: "  idp sets add crm:finance crm:invoice crm:offer\n" +
			"  idp sets add crm:finance crm:invoice --actions read",
		ValidArgsFunction: a.words(setKind.inApplications(), resourceKind.inApplications()),
	}
	actionsFlag(command, &actions)
	typeFlag(command, &kind, "data", "api", "ui")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		set, err := setID(ctx, s, args[0])
		if err != nil {
			return err
		}
		var added idp.NewResourceSetMembers
		for _, name := range args[1:] {
			resource, _, err := findResource(ctx, s, name, kind)
			if err != nil {
				return err
			}
			added.Members = append(added.Members, idp.ResourceSetMemberInput{
				ResourceID: new(resource.Text("id")), Actions: actions,
			})
		}
		body, err := json.Marshal(added)
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{
			Operation: session.Operation("add-resource-set-members"), Path: []string{set}, Body: body,
			View: setMemberView,
		})
	})
	return command
}

func removeFromSet(a *App) *cobra.Command {
	kind := ""
	return a.operation(operation{
		use: "remove APPLICATION:CODE RESOURCE", short: "Remove a resource from a set",
		operation: "remove-resource-set-member", arguments: 2,
		complete: a.words(setKind.inApplications(), resourceKind.inApplications()),
		flags:    func(command *cobra.Command) { typeFlag(command, &kind, "data", "api", "ui") },
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			set, err := setID(ctx, s, args[0])
			if err != nil {
				return nil, err
			}
			resource, _, err := findResource(ctx, s, args[1], kind)
			if err != nil {
				return nil, err
			}
			all, err := readAll(ctx, s, "list-resource-set-members",
				url.Values{"resource_code": {resource.Text("code")}}, set)
			if err != nil {
				return nil, err
			}
			for _, member := range all {
				if member.Text("resource_id") == resource.Text("id") {
					return []string{set, member.Text("id")}, nil
				}
			}
			return nil, failure.NotFoundf("%s is not in %s", args[1], args[0])
		},
		example: "  idp sets remove crm:finance crm:offer --yes",
	})
}
