package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// asking are the flags of questions about access.
type asking struct{ kind, identity, token string }

func (q *asking) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&q.kind, "type", "data", "what kind of resource: data, api, ui")
	flags.StringVar(&q.identity, "identity", "user",
		"what kind of identity: user, node, application, group, core_object, everyone")
	flags.StringVar(&q.token, "consistency-token", "", "wait for the write that answered with this X-Consistency-Token")
}

func (q *asking) header(call *session.Call) {
	if q.token != "" {
		call.Header = map[string][]string{"X-Consistency-Token": {q.token}}
	}
}

// identityID finds whom a question is about.
func (q *asking) identityID(ctx context.Context, s *session.Session, name string) (string, error) {
	who, err := identityOf(ctx, s, name, q.identity)
	q.identity = cmp.Or(who.kind, q.identity)
	return who.id, err
}

// check makes the commands that ask about access.
func check(a *App) *cobra.Command {
	q, explain := &asking{}, false
	command := &cobra.Command{
		Use: "check WHO ACTION APPLICATION:CODE", Short: "Ask who may do what, and why", Args: exactly(3),
		Long: "Ask whether somebody may do something with a resource. The exit code is 0 for yes and 10 for no.\n" +
			"Who is a user unless --identity or a prefix says otherwise, as in node:company/rd and group:auditors.\n" +
			"An application without a code asks whether it may be entered; the action is then not looked at.\n\n" +
			"Scope: permissions:check",
		Example: "  idp check li.wei read crm:invoice\n  idp check li.wei read crm:invoice --explain\n" +
			"  idp check who read crm:invoice\n  idp check what li.wei --app crm\n" +
			"  idp check node:company/rd read crm:invoice",
	}
	q.flags(command)
	command.Flags().BoolVar(&explain, "explain", false, "say why, and what would change the answer")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		return q.ask(ctx, s, args, explain)
	})
	command.AddCommand(who(a), what(a))
	return command
}

// ask asks one question.
func (q *asking) ask(ctx context.Context, s *session.Session, args []string, explain bool) error {
	identity, err := q.identityID(ctx, s, args[0])
	if err != nil {
		return err
	}
	about, err := objectOf(ctx, s, args[2], q.kind)
	if err != nil {
		return err
	}
	body, err := json.Marshal(idp.Check{
		IdentityID: identity, IdentityType: q.identity, ApplicationID: about.application, ObjectType: about.kind,
		ObjectCode: &about.code, Action: &args[1],
	})
	if err != nil {
		return err
	}
	call := &session.Call{Operation: session.Operation("check-auth"), Body: body, Query: url.Values{}}
	q.header(call)
	if explain {
		call.Query.Set("explain", "true")
	}
	if s.Curl {
		return s.Run(ctx, call)
	}
	answer, err := s.Body(ctx, call)
	if err != nil {
		return err
	}
	var decision idp.Decision
	if err := json.Unmarshal(answer, &decision); err != nil {
		return fmt.Errorf("the answer is not as documented: %w", err)
	}
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	if printer.ForPeople() && len(s.Fields) == 0 {
		explainDecision(s, decision)
		if decision.NearestMiss != nil {
			fmt.Fprintf(s.Out, "  nearest: %s\n", output.Printable(decision.NearestMiss.Text))
			fmt.Fprintf(s.Out, "  %s\n", q.suggestion(ctx, s, args, *decision.NearestMiss))
		}
	} else if err := printer.Body(answer, output.View{}); err != nil {
		return err
	}
	if !decision.Allowed {
		return failure.ErrNo
	}
	return nil
}

// explainDecision prints a decision for people.
func explainDecision(s *session.Session, d idp.Decision) {
	answer := "no"
	if d.Allowed {
		answer = "yes"
	}
	fmt.Fprintf(s.Out, "%s: %s\n", answer, strings.ReplaceAll(d.Reason, "_", " "))
	if len(d.Via) > 0 {
		fmt.Fprintf(s.Out, "  by rule %s, through %s\n", d.RuleID, wayOf(d.Via))
	} else if d.RuleID != "" {
		fmt.Fprintf(s.Out, "  by rule %s\n", d.RuleID)
	}
	for _, c := range d.Considered {
		verdict := "applies"
		if !c.Applies {
			verdict = "does not apply"
		}
		if c.Why != "" {
			verdict += ": " + c.Why
		}
		fmt.Fprintf(s.Out, "  rule %s (%s), through %s: %s\n", c.RuleID, effect(c.Affect), wayOf(c.Via),
			output.Printable(verdict))
	}
}

func effect(affect string) string {
	if affect == "deny" {
		return "denies"
	}
	return "allows"
}

func wayOf(via []idp.Party) string {
	var names []string
	for _, party := range via {
		name := party.Name
		if name == "" {
			name = party.ID
		}
		names = append(names, output.Printable(party.Type+" "+name))
	}
	return strings.Join(names, " → ")
}

// suggestion is the command that would make the nearest miss a hit, or that shows the rule which has a condition.
func (q *asking) suggestion(ctx context.Context, s *session.Session, args []string, miss idp.Miss) string {
	who := identity{miss.Identity.Type, miss.Identity.ID}
	name := nameOfIdentity(who.kind, who.id)
	if names, err := identityNames(ctx, s, []identity{who}); err == nil { // the id does, too
		name = names[who]
	}
	_, _, hasCode := naming.Cut(args[2])
	words := []string{"idp"}
	switch {
	case miss.Kind == "membership":
		words = append(words, "members", "add", strings.TrimPrefix(name, "node:"), strings.TrimPrefix(args[0], "user:"))
	case miss.Kind == "grant" && hasCode:
		words = append(words, "grants", "add", "--to", name, args[2], args[1])
		if q.kind != "data" {
			words = append(words, "--type", q.kind)
		}
	case miss.Kind == "grant":
		words = append(words, "grants", "add", "--to", name, args[2])
	case miss.Kind == "deny" && miss.RuleID != nil:
		words = append(words, "grants", "revoke", *miss.RuleID)
	default:
		words = append(words, "grants", "list", "--of", name, "-o", "wide")
	}
	return shellWords(words)
}

// shellWords joins words so that a shell reads them as they are.
func shellWords(words []string) string {
	var out []string
	for _, word := range words {
		word = output.Printable(word)
		if !plainWord.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

var plainWord = regexp.MustCompile(`^[\pL\pN_./:@%+,=-]+$`)

// who makes the command that lists who may do something.
func who(a *App) *cobra.Command {
	q := &asking{}
	command := &cobra.Command{
		Use: "who ACTION APPLICATION:CODE", Short: "List who may do something with a resource", Args: exactly(2),
		Long:    "List who may do something with a resource.\n\nScope: permissions:check",
		Example: "  idp check who read crm:invoice --all\n  idp check who read crm:invoice --identity node",
	}
	q.flags(command)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		about, err := objectOf(ctx, s, args[1], q.kind)
		if err != nil {
			return err
		}
		call := &session.Call{
			Operation: session.Operation("list-auth-check-identities"), Query: url.Values{
				"application_id": {about.application}, "object_type": {about.kind}, "object_code": {about.code},
				"action": {args[0]}, "identity_type": {q.identity},
			},
			View: output.View{Columns: columns("identity_id", "identity_type", "identity_name"), Name: "identity_name"},
		}
		q.header(call)
		return s.Run(ctx, call)
	})
	return command
}
