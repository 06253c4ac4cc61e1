package commands

import (
	"context"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// mostApplications are the applications about which one command asks.
const mostApplications = 200

var accessView = output.View{
	Columns: append([]output.Column{eitherColumn("APPLICATION", "application", "application_id")},
		columns("object_type", "object_code", "object_name", "actions")...),
	Wide: columns("application_id", "object_id"), Name: "object_code",
}

// whatFlags are the flags of the question what somebody may do.
type whatFlags struct {
	asking
	application, action string
	typed               bool // --type was given
}

// what makes the command that lists what somebody may do.
func what(a *App) *cobra.Command {
	q := &whatFlags{}
	command := &cobra.Command{
		Use: "what WHO", Short: "List what somebody may do", Args: exactly(1),
		Long: "List what somebody may do with the resources of an application, or, without --app, which\n" +
			"applications they may enter, and what they may do with the resources of each.\n\n" +
			"Scope: permissions:check; without --app, applications:read",
		Example: "  idp check what li.wei\n  idp check what li.wei --app crm --action read\n" +
			"  idp check what node:company/rd --type api",
	}
	q.flags(command)
	command.Flags().StringVar(&q.application, "app", "",
		"whose resources; absent: of all, and the applications themselves")
	a.completeFlag(command, "app", knownApplications)
	command.Flags().StringVar(&q.action, "action", "", "only what allows this action")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		q.typed = command.Flags().Changed("type")
		identity, err := q.identityID(ctx, s, args[0])
		if err != nil {
			return err
		}
		switch {
		case q.application != "":
			id, err := applicationID(ctx, s, q.application)
			if err != nil {
				return err
			}
			return s.Run(ctx, q.call(s, identity, id, q.kind))
		case s.Curl:
			return s.Run(ctx, q.call(s, identity, "", "app"))
		}
		return q.everywhere(ctx, s, identity)
	})
	return command
}

// call asks for what an identity may do with the objects of a kind.
func (q *whatFlags) call(s *session.Session, identity, application, kind string) *session.Call {
	call := &session.Call{
		Operation: session.Operation("list-auth-check-objects"),
		Query:     url.Values{"identity_id": {identity}, "identity_type": {q.identity}, "object_type": {kind}},
		View:      accessView,
		Join: func(ctx context.Context, items []output.Object) error {
			return joinApplications(ctx, s, items, "application_id")
		},
	}
	if application != "" {
		call.Query.Set("application_id", application)
	}
	if q.action != "" {
		call.Query.Set("action", q.action)
	}
	q.header(call)
	return call
}

// everywhere lists the applications that an identity may enter, and what it may do with the resources of each. The
// platform answers for one application at a time.
func (q *whatFlags) everywhere(ctx context.Context, s *session.Session, identity string) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	page, err := client.ListApplications(ctx, idp.ListApplicationsParams{PageSize: mostApplications, Count: new(false)})
	if err != nil {
		return failure.WithScope(err, "applications:read")
	}
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	names := map[string]string{}
	calls := []*session.Call{q.call(s, identity, "", "app")}
	for _, application := range page.Items {
		names[application.ID] = application.Name
		for _, kind := range []string{"data", "api", "ui"} {
			if !q.typed || kind == q.kind {
				calls = append(calls, q.call(s, identity, application.ID, kind))
			}
		}
	}
	items, seen := printer.Items(accessView), map[string]bool{}
	for _, call := range calls {
		call.Join = nil
		call.Query.Set("page_size", "200")
		call.Query.Set("count", "false")
		for item, err := range s.Each(ctx, call) {
			if err != nil {
				return err
			}
			key := item.Text("object_type") + item.Text("object_id")
			if seen[key] { // resources of all applications are answered for each
				continue
			}
			seen[key] = true
			if name, has := names[item.Text("application_id")]; has && printer.ForPeople() {
				item = append(slices.Clip(item), output.Member{Name: "application", Value: name})
			}
			if err := items.Add(item); err != nil {
				return err
			}
		}
	}
	if page.NextPageToken != nil {
		s.Notef("the first %d applications; --app names another one", mostApplications)
	}
	return items.Close()
}
