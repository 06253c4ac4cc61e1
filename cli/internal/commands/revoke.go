package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

func revokeGrants(a *App) *cobra.Command {
	from, kind := "", ""
	command := &cobra.Command{
		Use:   "revoke RULE... | --from WHO APPLICATION:CODE [ACTION...]",
		Short: "Revoke rules by their ids, or those of an identity about a resource", Args: atLeast(1),
		Long: "Revoke rules by their ids, or with --from those of an identity about a resource: all, or those with\n" +
			"exactly the actions that are named. Nothing is revoked if one of the ids is no rule's, for\n" +
			"callers who may read rules (permissions:read).\n\n" +
			"Scope: permissions:write",
		Example: "  idp grants revoke 1048600 1048601 --yes\n" +
			"  idp grants revoke --from node:company/rd crm:invoice --yes\n" +
			"  idp grants revoke --from li.wei crm:invoice read --dry-run",
		ValidArgsFunction: a.words(resourceKind.inApplications(), known{"no", noWords}),
	}
	command.Flags().StringVar(&from, "from", "", "whose rules: "+identityHelp)
	a.completeFlag(command, "from", knownUsers)
	typeFlag(command, &kind, "data", "api", "ui", "set")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) (err error) {
		ids := args
		if from != "" {
			if ids, err = rulesOf(ctx, s, from, args, kind); err != nil {
				return err
			}
		} else if err := areRules(ctx, s, args); err != nil {
			return err
		}
		body, err := json.Marshal(map[string][]string{"rule_ids": ids})
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{
			Operation: session.Operation("revoke-auth-rules"), Body: body, What: "rules " + strings.Join(ids, ", "),
		})
	})
	return command
}

// areRules reports ids that are no rule's. The revocation itself takes them for rules that are gone already; the
// question what it would change does not.
func areRules(ctx context.Context, s *session.Session, ids []string) error {
	if at := slices.IndexFunc(ids, func(id string) bool { return !digits.MatchString(id) }); at >= 0 {
		return failure.Usagef("%q is no rule's id; --from WHO names rules by what they are about", ids[at])
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	_, err = client.AssessAuthImpact(ctx, idp.AssessAuthImpactParams{}, idp.AccessChanges{
		IdentityTypes: []string{"everyone"}, Revoke: ids,
	})
	problem, refused := errors.AsType[*idp.Problem](err)
	switch {
	case !refused:
		return err
	case problem.Code != idp.CodeInvalidParameters:
		return nil // who may revoke rules, and may not read them, is not told
	}
	var unknown []string
	for i, id := range ids {
		at := fmt.Sprintf("body.revoke[%d]", i)
		if slices.ContainsFunc(problem.Errors, func(f idp.Fault) bool { return f.Location == at }) {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return failure.NotFoundf("there is no rule %s; nothing is revoked", strings.Join(unknown, ", "))
}

// rulesOf finds the rules of an identity about something, with exactly some actions if there are any.
func rulesOf(ctx context.Context, s *session.Session, from string, args []string, kind string) ([]string, error) {
	who, err := identityOf(ctx, s, from, "user")
	if err != nil {
		return nil, err
	}
	about, err := aimOf(ctx, s, args[0], kind)
	if err != nil {
		return nil, err
	}
	query := url.Values{"identity_id": {who.id}, "identity_type": {who.kind}}
	about.query(query)
	wanted, ids, others := actionsOf(args[1:]), []string(nil), []string(nil)
	slices.Sort(wanted)
	rules, err := readAll(ctx, s, "list-auth-rules", query)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		if about.All != "" && rule.Text("resource_match_all_resources") != "1" {
			continue
		}
		actions := strings.Split(rule.Text("actions"), ", ")
		slices.Sort(actions)
		if len(wanted) == 0 || slices.Equal(actions, wanted) {
			ids = append(ids, rule.Text("id"))
		} else {
			others = append(others, rule.Text("id")+" has "+strings.Join(actions, ", "))
		}
	}
	switch {
	case len(ids) > 0:
		return ids, nil
	case len(others) > 0:
		return nil, failure.NotFoundf("no rule of %s about %s has just these actions: %s", from, args[0],
			strings.Join(others, "; "))
	}
	return nil, failure.NotFoundf("%s has no rule of its own about %s", from, args[0])
}
