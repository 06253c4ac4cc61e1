package commands

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var resourceView = output.View{
	Columns: []output.Column{
		output.MemberColumn("id"), output.MemberColumn("type"), output.MemberColumn("code"),
		output.MemberColumn("name"), {Title: "ACTIONS", Of: actionCodes}, yesColumn("GLOBAL", "is_global"),
	},
	Wide: columns("uri", "description", "version", "time_modified"),
	Name: "code",
}

// actionCodes are the codes of a resource's actions.
func actionCodes(o output.Object) string {
	list, _ := o.Get("actions").([]any)
	var codes []string
	for _, item := range list {
		if action, isObject := item.(output.Object); isObject {
			codes = append(codes, action.Text("code"))
		}
	}
	return strings.Join(codes, ", ")
}

// applicationFlag is a flag that names the application.
func applicationFlag(usage string, required bool) reference {
	return reference{
		flag: "app", usage: usage, id: "application_id", find: applicationID, known: knownApplications,
		required: required,
	}
}

// inApplication finds a record of an application by the names of both: crm:invoice.
func (k kind) inApplication(ctx context.Context, s *session.Session, name string, within url.Values) (
	record output.Object, application string, err error,
) {
	of, code, hasCode := naming.Cut(name)
	if of == "" || !hasCode || code == "" {
		return nil, "", failure.Usagef("a %s is named application:code, such as crm:invoice; %q is not", k.noun, name)
	}
	if application, err = applicationID(ctx, s, of); err != nil {
		return nil, "", err
	}
	query := url.Values{"application_id": {application}}
	for parameter, values := range within {
		query[parameter] = values
	}
	k.before = naming.Join(of, "")
	record, err = k.find(ctx, s, code, query)
	return record, application, err
}

// inApplications completes application:code.
func (k kind) inApplications() known {
	return known{k.noun, func(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
		of, rest, hasCode := naming.Cut(prefix)
		page, err := client.ListApplications(ctx, idp.ListApplicationsParams{Name: of, PageSize: completeSize})
		if err != nil {
			return nil, err
		}
		var out []string
		for _, application := range page.Items {
			switch {
			case !hasCode && strings.HasPrefix(application.Name, of):
				out = append(out, naming.Join(application.Name, "\t"+application.Descr))
			case hasCode && application.Name == of:
				all, err := k.read(ctx, client, url.Values{"application_id": {application.ID}})
				return k.like(all, rest, naming.Join(of, "")), err
			}
		}
		return out, nil
	}}
}

// resourceNamed finds the resource that the first argument names; two kinds of resources may have the same code.
type resourceNamed struct{ kind, application string }

func (r *resourceNamed) flags(command *cobra.Command) {
	typeFlag(command, &r.kind, "data", "api", "ui")
}

// typeFlag says what kind of resource a code is of.
func typeFlag(command *cobra.Command, kind *string, values ...string) {
	command.Flags().StringVar(kind, "type", "", strings.Join(values, ", ")+": what has the code, if several do")
	known := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	_ = command.RegisterFlagCompletionFunc("type", known) // the flag is there
}

func (r *resourceNamed) path(ctx context.Context, s *session.Session, args []string) ([]string, error) {
	record, application, err := findResource(ctx, s, args[0], r.kind)
	r.application = application
	return []string{record.Text("id")}, err
}

func (r *resourceNamed) query(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
	query.Set("application_id", r.application)
	return nil
}

func (r *resourceNamed) reads() url.Values { return url.Values{"application_id": {r.application}} }

func findResource(ctx context.Context, s *session.Session, name, kind string) (output.Object, string, error) {
	within := url.Values{}
	if kind != "" {
		within.Set("type", kind)
	}
	return resourceKind.inApplication(ctx, s, name, within)
}

// resources makes the commands for resources of applications.
func resources(a *App) *cobra.Command {
	named := &resourceNamed{}
	of := a.like(operation{
		view: resourceView, arguments: 1, path: named.path, complete: a.words(resourceKind.inApplications()),
	})
	return group("resources", "What applications protect: list, create, change",
		of(operation{
			use: "list --app APPLICATION", short: "List the resources of an application", operation: "list-resources",
			path: noPath, references: []reference{applicationFlag("whose resources", true)},
			example: "  idp resources list --app crm\n  idp resources list --app crm --type api --include-global",
		}),
		of(operation{
			use: "get APPLICATION:CODE", short: "Show a resource", operation: "get-resource",
			without: []string{"application_id"}, flags: named.flags, query: named.query,
			example: "  idp resources get crm:invoice\n  idp resources get crm:orders --type api",
		}),
		createResource(a), updateResource(a),
		of(operation{
			use: "delete APPLICATION:CODE", short: "Delete a resource, with the rules about it",
			operation: "delete-resource", flags: named.flags, reads: named.reads,
			example: "  idp resources delete crm:invoice --yes",
		}),
	)
}

func actionsFlag(command *cobra.Command, actions *[]string) {
	command.Flags().StringSliceVar(actions, "actions", nil, "codes of the actions, joined by commas: read,write")
}

func createResource(a *App) *cobra.Command {
	var actions []string
	return a.operation(operation{
		use: "create APPLICATION:CODE", short: "Create a resource", operation: "create-resource", view: resourceView,
		arguments: 1, path: noPath, complete: a.words(resourceKind.inApplications()),
		without: []string{"application_id", "code", "actions"},
		flags:   func(command *cobra.Command) { actionsFlag(command, &actions) },
		body: func(ctx context.Context, s *session.Session, args []string, body members) (err error) {
			of, code, hasCode := naming.Cut(args[0])
			if of == "" || !hasCode || code == "" {
				return failure.Usagef("a new resource is named application:code, such as crm:invoice")
			}
			body["code"] = code
			body.otherwise("type", "data")
			if len(actions) > 0 {
				body["actions"] = withDescriptions(actions, nil)
			}
			body["application_id"], err = applicationID(ctx, s, of)
			return err
		},
		example: "  idp resources create crm:invoice --actions read,write --name 发票\n" +
			"  idp resources create crm:orders --type api --uri /orders/** --actions GET,POST",
	})
}

func updateResource(a *App) *cobra.Command {
	var actions []string
	named := &resourceNamed{}
	return a.operation(operation{
		use: "update APPLICATION:CODE", short: "Change members of a resource", operation: "update-resource",
		view: resourceView, arguments: 1, path: named.path, complete: a.words(resourceKind.inApplications()),
		without: []string{"actions"}, reads: named.reads,
		flags: func(command *cobra.Command) {
			named.flags(command)
			actionsFlag(command, &actions)
		},
		body: func(ctx context.Context, s *session.Session, args []string, body members) error {
			if len(actions) == 0 {
				return nil
			}
			record, _, err := findResource(ctx, s, args[0], named.kind)
			old, _ := record.Get("actions").([]any)
			body["actions"] = withDescriptions(actions, old)
			return err
		},
		example: "  idp resources update crm:invoice --actions read,write,approve\n" +
			"  idp resources update crm:invoice --name 发票 --dry-run",
	})
}

// withDescriptions makes actions of codes. Those that the resource has already keep their descriptions.
func withDescriptions(codes []string, old []any) []any {
	var out []any
	for _, code := range codes {
		at := slices.IndexFunc(old, func(item any) bool {
			action, isObject := item.(output.Object)
			return isObject && action.Text("code") == code
		})
		if at >= 0 {
			out = append(out, old[at])
		} else {
			out = append(out, idp.Action{Code: code})
		}
	}
	return out
}
