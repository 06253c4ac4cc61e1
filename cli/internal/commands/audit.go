package commands

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var auditView = output.View{
	Columns: []output.Column{
		timeColumn("TIME", "time"), {Title: "WHO", Of: auditWho}, {Title: "WHAT", Of: auditWhat, Whole: true},
		eitherColumn("RECORD", "record_name", "record"), {Title: "CHANGES", Of: auditChanges},
	},
	Wide: columns("id", "actor", "record", "address", "origin", "request_id", "event_id"),
	Name: "id",
}

const shownOfID = 8 // characters of the id of a client without a name; -o wide has all

// auditWho says who it was. Clients of other tenants have no name here.
func auditWho(entry output.Object) string {
	if name := entry.Text("actor_name"); name != "" {
		return name
	}
	actor := entry.Text("actor")
	if id, isClient := strings.CutPrefix(actor, "client:"); isClient && len(id) > shownOfID+1 {
		return "client:" + id[:shownOfID] + "…"
	}
	return actor
}

// auditWhat says what was done, or would have been.
func auditWhat(entry output.Object) string {
	what := strings.ReplaceAll(entry.Text("entity")+" "+entry.Text("action"), "_", " ")
	if entry.Text("outcome") != "denied" {
		return what
	}
	return "denied " + strings.TrimPrefix(what, "access ")
}

// auditChanges are the members that were changed, or why it was denied.
func auditChanges(entry output.Object) string {
	if entry.Text("outcome") == "denied" {
		why := entry.Text("reason")
		if count := entry.Text("count"); count != "" && count != "1" {
			why += " (" + count + " times)"
		}
		return why
	}
	list, _ := entry.Get("changes").([]any)
	var out []string
	for _, item := range list {
		change, _ := item.(output.Object)
		out = append(out, changeOf(change.Text("member"), change.Get("before"), change.Get("after"))...)
	}
	return strings.Join(out, "; ")
}

// changeOf says what became of a member; of an object, what became of its own members.
func changeOf(member string, before, after any) []string {
	old, wasObject := before.(output.Object)
	made, isObject := after.(output.Object)
	was, is := output.Text(before), output.Text(after)
	switch {
	case was == is:
		return nil
	case (wasObject || before == nil) && (isObject || after == nil):
		var out []string
		for _, m := range old {
			out = append(out, changeOf(member+"."+m.Name, m.Value, made.Get(m.Name))...)
		}
		for _, m := range made {
			if old.Get(m.Name) == nil {
				out = append(out, changeOf(member+"."+m.Name, nil, m.Value)...)
			}
		}
		return out
	case was == "":
		return []string{member + ": " + is}
	case is == "":
		return []string{member + ": " + was + " → nothing"}
	}
	return []string{member + ": " + was + " → " + is}
}

// audited are the kinds of records that people ask the audit log about by name.
var audited = []struct {
	verb, argument, what, entity, example string
	find                                  finder
	known                                 known
}{
	{
		"user", "USER", "a user", "user", "  idp audit user li.wei\n  idp audit user li.wei --since 7d -o wide", userID,
		knownUsers,
	},
	{"app", "APP", "an application", "application", "  idp audit app crm", applicationID, knownApplications},
	{"node", "NODE", "a node", "node", "  idp audit node company/rd", nodeID, knownNodes},
	{"source", "SOURCE", "a connection", "connection", "  idp audit source github/Our", sourceID, knownSources},
	{
		"subscription", "SUBSCRIPTION", "a subscription", "event_subscription", "  idp audit subscription HR",
		subscriptionKind.id, subscriptionKind.known(),
	},
}

// audit makes the commands for the audit log.
func audit(a *App) *cobra.Command {
	commands := []*cobra.Command{
		a.auditList(operation{
			use: "list", short: "List changes and denied attempts, the newest first",
			example: "  idp audit list --actor li.wei --since 1h\n" +
				"  idp audit list --entity protocol --action secret_reset --since 2026-01-31 --all -o csv",
		}, nil),
		a.auditList(operation{
			use: "denied", short: "List denied attempts, the newest first",
			without: []string{"outcome", "entity", "action"},
			example: "  idp audit denied --since 1d\n  idp audit denied --actor crm -o wide",
		}, func(_ context.Context, _ *session.Session, _ []string, query url.Values) error {
			query.Set("outcome", "denied")
			return nil
		}),
		a.operation(operation{
			use: "get ENTRY", short: "Show an entry", operation: "get-audit-log", view: auditView, arguments: 1,
			example: "  idp audit get 1796566446792957",
		}),
		a.auditList(operation{
			use: "export", short: "Write entries as JSON, a line each, the oldest first",
			operation: "export-audit-logs",
			example:   "  idp audit export --since 30d > audit.jsonl",
		}, nil),
	}
	commands = append(commands, a.auditOfProtocol())
	for _, kind := range audited {
		commands = append(commands, a.auditList(operation{
			use: kind.verb + " " + kind.argument, short: "List what happened to " + kind.what, arguments: 1,
			complete: a.words(kind.known), without: []string{"entity", "record"}, example: kind.example,
		}, func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
			id, err := kind.find(ctx, s, args[0])
			query.Set("entity", kind.entity)
			query.Set("record", id)
			return err
		}))
	}
	return group("audit", "Audit log: who changed what, and who was denied", commands...)
}

// auditOfProtocol makes the command for a protocol, which is named by its application and its type.
func (a *App) auditOfProtocol() *cobra.Command {
	return a.auditList(operation{
		use: "protocol APP PROTOCOL", short: "List what happened to a protocol of an application", arguments: 2,
		complete: a.words(knownApplications, protocolTypes), without: []string{"entity", "record"},
		example: "  idp audit protocol crm saml",
	}, func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
		application, err := applicationID(ctx, s, args[0])
		if err != nil {
			return err
		}
		client, err := s.Client()
		if err != nil {
			return err
		}
		protocol, err := client.GetProtocol(ctx, application, args[1])
		if err != nil {
			return failure.WithScope(err, "applications:read")
		}
		query.Set("entity", "protocol")
		query.Set("record", protocol.ID)
		return nil
	})
}

// auditList makes a command that lists entries. about says what they are about; nil: anything.
func (a *App) auditList(
	spec operation, about func(context.Context, *session.Session, []string, url.Values) error,
) *cobra.Command {
	since, until := "", ""
	if spec.operation == "" {
		spec.operation, spec.view, spec.join = "list-audit-logs", auditView, joinAudit
	}
	spec.path = noPath
	spec.without = append(spec.without, "time_from", "time_to", "Last-Event-ID")
	spec.references = []reference{{
		flag: "actor", usage: "who: a user, an application, system, or as entries have it, such as user:1048577",
		id: "actor", find: actorOf, known: knownUsers,
	}}
	spec.flags = func(command *cobra.Command) {
		command.Flags().StringVar(&since, "since", "", "only later ones: 1h, 7d, or a time")
		command.Flags().StringVar(&until, "until", "", "only earlier ones: 1h, 7d, or a time")
	}
	spec.query = func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
		now := time.Now()
		for _, limit := range []struct{ flag, text, parameter string }{
			{"--since", since, "time_from"}, {"--until", until, "time_to"},
		} {
			if limit.text == "" {
				continue
			}
			at, err := timeOf(limit.flag, limit.text, now)
			if err != nil {
				return err
			}
			query.Set(limit.parameter, at.UTC().Format(time.RFC3339))
		}
		if spec.operation == "list-audit-logs" && query.Get("page_sort") == "" {
			query.Set("page_sort", "time[desc]")
		}
		if about == nil {
			return nil
		}
		return about(ctx, s, args, query)
	}
	return a.operation(spec)
}

// actorOf makes the actor, as entries have it, of the name of a user or an application.
func actorOf(ctx context.Context, s *session.Session, name string) (string, error) {
	if name == "system" || strings.ContainsAny(name, ":#") {
		return name, nil
	}
	var fits []found
	user, userErr := userID(ctx, s, name)
	if userErr == nil {
		fits = append(fits, found{"user:" + user, "user " + name})
	}
	application, err := applicationID(ctx, s, name)
	if err == nil {
		client, err := s.Client()
		if err != nil {
			return "", err
		}
		record, err := client.GetApplication(ctx, application)
		if err != nil {
			return "", failure.WithScope(err, "applications:read")
		}
		fits = append(fits, found{"client:" + record.ClientID, "application " + record.Name})
	}
	if len(fits) == 0 {
		return "", userErr
	}
	return one("actor", name, fits)
}

// joinAudit adds who did it and to what, by their names: the members actor_name and record_name.
func joinAudit(ctx context.Context, s *session.Session, items []output.Object) error {
	names := map[string]string{} // by user:<id>, client:<client id>, node:<id>
	var users, nodes []string
	hasClient := false
	for _, item := range items {
		if id, isUser := strings.CutPrefix(item.Text("actor"), "user:"); isUser {
			users = append(users, id)
		}
		hasClient = hasClient || strings.HasPrefix(item.Text("actor"), "client:")
		switch item.Text("entity") {
		case "application":
			hasClient = true
		case "user":
			users = append(users, item.Text("record"))
		case "node":
			nodes = append(nodes, item.Text("record"))
		}
	}
	err := readNames(ctx, s, names, users, nodes, hasClient)
	for i, item := range items {
		if name, has := names[item.Text("actor")]; has {
			item = append(item, output.Member{Name: "actor_name", Value: name})
		}
		if name, has := names[item.Text("entity")+":"+item.Text("record")]; has {
			item = append(item, output.Member{Name: "record_name", Value: name})
		}
		items[i] = item
	}
	return err
}

// readNames reads what users, nodes and, where wanted, applications are called. What the caller may not read has none.
func readNames(
	ctx context.Context, s *session.Session, names map[string]string, users, nodes []string, applications bool,
) error {
	byID, err := usersByID(ctx, s, unique(users))
	if err != nil && idp.CodeOf(err) != idp.CodeForbidden {
		return err
	}
	for id, user := range byID {
		names["user:"+id] = user.Username
	}
	called, err := nodeNames(ctx, s, unique(nodes))
	if err != nil && idp.CodeOf(err) != idp.CodeForbidden {
		return err
	}
	for id, name := range called {
		names["node:"+id] = name
	}
	if !applications {
		return nil
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	page, err := client.ListApplications(ctx, idp.ListApplicationsParams{PageSize: 200, Count: new(false)})
	if err != nil {
		return err
	}
	for _, application := range page.Items { // the ids of others are shown
		names["client:"+application.ClientID], names["application:"+application.ID] = application.Name, application.Name
	}
	return nil
}

// unique are ids of the platform, each once.
func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return !digits.MatchString(id) })
}
