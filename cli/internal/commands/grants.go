package commands

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var grantView = output.View{
	Columns: []output.Column{
		output.MemberColumn("id"), eitherColumn("WHO", "who", "auth_unit_id"), {Title: "EFFECT", Of: effectOf},
		output.MemberColumn("type"), {Title: "WHAT", Of: whatIsGranted}, output.MemberColumn("actions"),
		{Title: "ONLY", Of: limitsOf},
	},
	Wide: columns("condition", "valid_from", "valid_to", "auth_unit_id", "description"),
	Name: "id",
}

var effectiveView = output.View{
	Columns: []output.Column{
		{Title: "WHO", Of: func(o output.Object) string {
			return nameOfIdentity(o.Text("identity_type"), o.Text("identity_name"))
		}},
		{Title: "EFFECT", Of: effectOf}, output.MemberColumn("object_type"), output.MemberColumn("object_code"),
		output.MemberColumn("actions"), output.MemberColumn("rule_id"),
		eitherColumn("THROUGH", "through", "inherited_from"),
	},
	Wide: columns("object_name", "identity_id", "object_id", "auth_unit_id"),
	Name: "rule_id",
}

func effectOf(rule output.Object) string {
	if rule.Text("affect") == "deny" {
		return "deny"
	}
	return "allow"
}

// whatIsGranted is what grants add takes.
func whatIsGranted(rule output.Object) string {
	of := rule.Text("application")
	if of == "" {
		of = rule.Text("application_id")
	}
	switch {
	case rule.Text("type") == "app":
		return naming.Escape(of)
	case rule.Text("resource_match_all_resources") == "1":
		return naming.Join(of, "*")
	}
	return naming.Join(of, rule.Text("code"))
}

// limitsOf says when a rule holds; "" if always.
func limitsOf(rule output.Object) string {
	var limits []string
	if rule.Text("condition") != "" {
		limits = append(limits, "on a condition")
	}
	for member, word := range map[string]string{"valid_from": "from ", "valid_to": "until "} {
		if day, _, _ := strings.Cut(rule.Text(member), "T"); day != "" {
			limits = append(limits, word+day)
		}
	}
	slices.Sort(limits)
	return strings.Join(limits, ", ")
}

// joinRules adds the names of each rule's identity and application.
func joinRules(ctx context.Context, s *session.Session, items []output.Object) error {
	if err := joinApplications(ctx, s, items, "application_id"); err != nil {
		return err
	}
	holders, err := unitNames(ctx, s, idsOf(items, "auth_unit_id"))
	for i, item := range items {
		items[i] = append(item, output.Member{Name: "who", Value: holders[item.Text("auth_unit_id")]})
	}
	return err
}

// unitNames finds what the identities of authorization units are called.
func unitNames(ctx context.Context, s *session.Session, ids []string) (map[string]string, error) {
	units, err := recordsByID(ctx, s, "get-auth-unit", ids)
	if err != nil {
		return nil, err
	}
	var all []identity
	for _, unit := range units {
		all = append(all, identity{unit.Text("identity_type"), unit.Text("identity_id")})
	}
	names, err := identityNames(ctx, s, all)
	out := map[string]string{}
	for id, unit := range units {
		out[id] = names[identity{unit.Text("identity_type"), unit.Text("identity_id")}]
	}
	return out, err
}

// grants makes the commands for authorization rules.
func grants(a *App) *cobra.Command {
	return group("grants", "Who is granted what: list, add, revoke", listGrants(a), effectiveGrants(a), addGrants(a),
		revokeGrants(a))
}

func listGrants(a *App) *cobra.Command {
	who, about, kind := "", "", ""
	return a.operation(operation{
		use: "list", short: "List rules: of an application, of an identity, about a resource", view: grantView,
		operation: "list-auth-rules", path: noPath, join: joinRules,
		without:    []string{"identity_id", "identity_type", "identity_name", "code", "type"},
		references: []reference{applicationFlag("whose resources", false)},
		flags: func(command *cobra.Command) {
			command.Flags().StringVar(&who, "of", "", "to whom: "+identityHelp)
			command.Flags().StringVar(&about, "on", "", "about what: application:code, or application for its use")
			typeFlag(command, &kind, "data", "api", "ui", "set")
			a.completeFlag(command, "of", knownUsers)
			a.completeFlag(command, "on", resourceKind.inApplications())
		},
		query: func(ctx context.Context, s *session.Session, _ []string, query url.Values) error {
			if who != "" {
				of, err := identityOf(ctx, s, who, "user")
				if err != nil {
					return err
				}
				query.Set("identity_id", of.id)
				query.Set("identity_type", of.kind)
			}
			if about == "" {
				return nil
			}
			aim, err := aimOf(ctx, s, about, kind)
			aim.query(query)
			return err
		},
		example: "  idp grants list --app crm\n  idp grants list --of li.wei\n" +
			"  idp grants list --on crm:invoice --affect deny",
	})
}

func effectiveGrants(a *App) *cobra.Command {
	who := ""
	return a.operation(operation{
		use: "effective --app APPLICATION", short: "List what holds now; with --of also what is inherited",
		operation: "list-privileges", view: effectiveView, path: noPath,
		without:    []string{"identity_id", "identity_type", "identity_name"},
		references: []reference{applicationFlag("whose resources", true)},
		flags: func(command *cobra.Command) {
			command.Flags().StringVar(&who, "of", "", "whom it reaches: "+identityHelp)
			a.completeFlag(command, "of", knownUsers)
		},
		query: func(ctx context.Context, s *session.Session, _ []string, query url.Values) error {
			if who == "" {
				return nil
			}
			of, err := identityOf(ctx, s, who, "user")
			query.Set("identity_id", of.id)
			query.Set("identity_type", of.kind)
			return err
		},
		join: func(ctx context.Context, s *session.Session, items []output.Object) error {
			holders, err := unitNames(ctx, s, idsOf(items, "inherited_from"))
			for i, item := range items {
				items[i] = append(item, output.Member{Name: "through", Value: holders[item.Text("inherited_from")]})
			}
			return err
		},
		example: "  idp grants effective --app crm\n  idp grants effective --app crm --of li.wei --expand",
	})
}

// aim is what a rule is about.
type aim struct {
	Application string   `json:"application_id"`
	Type        string   `json:"type"`
	Code        string   `json:"code,omitempty"`
	All         string   `json:"resource_match_all_resources,omitempty"`
	Actions     []string `json:"actions,omitempty"`
}

func (r aim) query(query url.Values) {
	query.Set("application_id", r.Application)
	query.Set("type", r.Type)
	if r.Code != "" {
		query.Set("code", r.Code)
	}
}

// aimOf reads what a rule is about: crm (its use), crm:invoice, crm:inv* (all whose codes match), crm:* (all); with
// the kind set, crm:finance is a set.
func aimOf(ctx context.Context, s *session.Session, name, kind string) (aim, error) {
	of, code, hasCode := naming.Cut(name)
	var found output.Object
	var err error
	result := aim{Type: "app"}
	switch {
	case !hasCode:
		result.Application, err = applicationID(ctx, s, of)
		return result, err
	case kind == "set":
		found, result.Application, err = setKind.inApplication(ctx, s, name, nil)
		result.Type, result.Code = "res_set", found.Text("code")
	case strings.ContainsAny(code, "*?"):
		result.Application, err = applicationID(ctx, s, of)
		if result.Type = "res"; code == "*" {
			result.All = "1"
		} else {
			result.Code = code
		}
	default:
		found, result.Application, err = findResource(ctx, s, name, kind)
		result.Type, result.Code = found.Text("type"), found.Text("code")
	}
	return result, err
}

// granted is a rule for an identity, as grant-auth-rules takes it.
type granted struct {
	aim
	Affect      string `json:"affect,omitempty"`
	Condition   string `json:"condition,omitempty"`
	From        string `json:"valid_from,omitempty"`
	To          string `json:"valid_to,omitempty"`
	Description string `json:"description,omitempty"`
}

type identityInput struct {
	ID   string `json:"identity_id"`
	Type string `json:"identity_type"`
}

func addGrants(a *App) *cobra.Command {
	var to []string
	rule, kind, deny := granted{}, "", false
	command := &cobra.Command{
		Use:   "add --to WHO APPLICATION:CODE ACTION...",
		Short: "Grant actions on a resource, or the use of an application", Args: atLeast(1),
		Long: "Grant actions on a resource to users, nodes, trees, groups, applications or everyone. Grants of a\n" +
			"node reach its members and those of all nodes below it. Without a code it is the use of the\n" +
			"application; crm:inv* is all resources whose codes match, crm:* all, and with --type set a set of\n" +
			"resources. The action '*' is all actions. A rule that exists already is not made again.\n\n" +
			"--to takes " + identityHelp + ".\n\nScope: permissions:write",
		Example: "  idp grants add --to node:company/rd crm:invoice read\n" +
			"  idp grants add --to li.wei --to group:auditors crm:invoice read,write --deny\n" +
			"  idp grants add --to tree:company crm\n  idp grants add --to li.wei crm:finance '*' --type set --dry-run",
		ValidArgsFunction: a.words(resourceKind.inApplications(), known{"no", noWords}),
	}
	flags := command.Flags()
	flags.StringArrayVar(&to, "to", nil, "to whom; several times for several (required)")
	a.completeFlag(command, "to", knownUsers)
	typeFlag(command, &kind, "data", "api", "ui", "set")
	flags.BoolVar(&deny, "deny", false, "forbid it instead; that goes before every grant")
	flags.StringVar(&rule.Condition, "condition", "", "CEL over subject, resource, action, context and now")
	flags.StringVar(&rule.From, "valid-from", "", "a time in RFC 3339")
	flags.StringVar(&rule.To, "valid-to", "", "a time in RFC 3339")
	flags.StringVar(&rule.Description, "description", "", "why")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) (err error) {
		if deny {
			rule.Affect = "deny"
		}
		actions := actionsOf(args[1:])
		switch hasCode := strings.Contains(args[0], ":"); {
		case len(to) == 0:
			return failure.Usagef("--to is needed: %s", identityHelp)
		case hasCode && len(actions) == 0:
			return failure.Usagef("name the actions, such as read, or '*' for all")
		case !hasCode && len(actions) > 0:
			return failure.Usagef("the use of an application has no actions; a resource is application:code")
		}
		var identities []identityInput
		for _, name := range to {
			who, err := identityOf(ctx, s, name, "user")
			if err != nil {
				return err
			}
			identities = append(identities, identityInput{who.id, who.kind})
		}
		if rule.aim, err = aimOf(ctx, s, args[0], kind); err != nil {
			return err
		}
		rule.Actions = actions
		body, err := json.Marshal(map[string]any{"identities": identities, "rules": []granted{rule}})
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{Operation: session.Operation("grant-auth-rules"), Body: body})
	})
	return command
}

// actionsOf reads actions, which may be joined by commas.
func actionsOf(args []string) []string {
	var out []string
	for _, arg := range args {
		for action := range strings.SplitSeq(arg, ",") {
			if action = strings.TrimSpace(action); action != "" {
				out = append(out, action)
			}
		}
	}
	return out
}
