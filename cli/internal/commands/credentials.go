package commands

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var credentialView = output.View{
	Columns: append(columns("id"), eitherColumn("USER", "owner", "user_id"), eitherColumn("PROVIDER", "provider_code"),
		eitherColumn("MARKER", "id1"), eitherColumn("NAME THERE", "username", "display_name"), statusColumn),
	Wide: append(columns("id2", "metadata"), eitherColumn("SOURCE", "idp_config_id"),
		timeColumn("CREATED", "time_created"), timeColumn("MODIFIED", "time_modified")),
	Name: "id1",
}

var credentialKind = kind{noun: "credential", list: "list-credentials", get: "get-credential", name: "id1"}

// credentials makes the commands for what users sign in with: passwords, and accounts at providers.
func credentials(a *App) *cobra.Command {
	credential, words := firstOf(credentialKind.id), a.words(credentialKind.known())
	user := reference{flag: "user", usage: "only those of this user", id: "user_id", find: userID, known: knownUsers}
	source := reference{
		flag: "source", usage: "the connection to the provider", id: "idp_config_id",
		find: sourceID, known: knownSources,
	}
	owner := user
	owner.usage, owner.required = "whose credential it is", true
	return group("credentials", "What users sign in with: passwords, and accounts at providers",
		a.operation(operation{
			use: "list", short: "List credentials that link users to accounts at providers",
			operation: "list-credentials",
			view:      credentialView, references: []reference{user, source}, join: joinOwners,
			example: "  idp credentials list --user li.wei\n  idp credentials list --provider-code wechat_scan_qr",
		}),
		a.operation(operation{
			use: "get CREDENTIAL", short: "Show a credential, by its id or marker", operation: "get-credential",
			view: credentialView, arguments: 1, path: credential, complete: words,
			example: "  idp credentials get o6_bmjrPTlm6_2sgVt7hMZOPfL2M",
		}),
		a.operation(operation{
			use: "create --user USER", short: "Link a user to an account at a provider", operation: "create-credential",
			view: credentialView, references: []reference{owner, source},
			example: "  idp credentials create --user li.wei --provider-code github --id1 o6_bmjrPTlm6_2sgVt7hM",
		}),
		a.operation(operation{
			use: "update CREDENTIAL", short: "Change members of a credential", operation: "update-credential",
			view: credentialView, arguments: 1, path: credential, complete: words, without: []string{"user_id"},
			references: []reference{source},
			example:    "  idp credentials update o6_bmjrPTlm6_2sgVt7hM --display-name 李伟 --dry-run",
		}),
		a.switchCredential("enable", "Let a user sign in by a credential", "1"),
		a.switchCredential("disable", "Let nobody sign in by a credential", "0"),
		a.operation(operation{
			use: "delete CREDENTIAL", short: "Delete a credential", operation: "delete-credential", arguments: 1,
			path: credential, complete: words, example: "  idp credentials delete o6_bmjrPTlm6_2sgVt7hM --yes",
		}),
		a.resetPassword(),
		a.operation(operation{
			use: "change-password USER", short: "Change a password, knowing the old one", operation: "change-password",
			arguments: 1, path: firstOf(userID), complete: a.words(knownUsers),
			without: []string{"old_password", "new_password"},
			body: func(_ context.Context, s *session.Session, _ []string, body members) error {
				return askPasswords(s, body, "old_password", "new_password")
			},
			example: "  idp credentials change-password li.wei",
		}),
		a.operation(operation{
			use: "verify LOGIN", short: "Ask whether a password is right", operation: "verify-login", arguments: 1,
			path: noPath, complete: a.words(knownUsers), without: []string{"login_name", "password"},
			body: func(_ context.Context, s *session.Session, args []string, body members) error {
				body["login_name"] = args[0]
				return askPasswords(s, body, "password")
			},
			answer: verified, example: "  idp credentials verify li.wei",
		}),
	)
}

// switchCredential makes a command that changes the status alone.
func (a *App) switchCredential(verb, short, status string) *cobra.Command {
	return a.operation(operation{
		use: verb + " CREDENTIAL", short: short, operation: "update-credential", view: credentialView, arguments: 1,
		path: firstOf(credentialKind.id), complete: a.words(credentialKind.known()),
		without: everyMember("update-credential"),
		body: func(_ context.Context, _ *session.Session, _ []string, body members) error {
			body["status"] = status
			return nil
		},
		example: "  idp credentials " + verb + " o6_bmjrPTlm6_2sgVt7hM",
	})
}

func (a *App) resetPassword() *cobra.Command {
	choose := false
	return a.operation(operation{
		use: "reset-password USER", short: "Give a user another password", operation: "reset-password", arguments: 1,
		path: firstOf(userID), complete: a.words(knownUsers), without: []string{"new_password"},
		flags: func(command *cobra.Command) {
			command.Flags().BoolVar(&choose, "choose", false,
				"ask for the password, or read it from standard input, instead of having one made")
		},
		body: func(_ context.Context, s *session.Session, _ []string, body members) error {
			if !choose {
				return nil
			}
			return askPasswords(s, body, "new_password")
		},
		once: &once{"User", []string{"password"}, nil},
		example: "  idp credentials reset-password li.wei --secrets-to passwords\n" +
			"  idp credentials reset-password li.wei --choose",
	})
}

// passwordNames are what passwords are called when they are asked for.
var passwordNames = map[string]string{
	"password": "Password", "old_password": "Old password", "new_password": "New password",
}

// askPasswords asks for passwords: no flag has them, since other users of the machine could see it. The command of
// --curl gets names in their place.
func askPasswords(s *session.Session, body members, names ...string) (err error) {
	for _, name := range names {
		if s.Curl {
			body[name] = passwordNames[name]
			continue
		}
		if body[name], err = s.Secret(passwordNames[name]); err != nil {
			return err
		}
	}
	return nil
}

// verified makes the exit code say whether the password is right.
func verified(_ *session.Session, body []byte) ([]byte, error) {
	var answer struct{ Verified bool }
	if err := json.Unmarshal(body, &answer); err != nil {
		return body, fmt.Errorf("the answer is not as documented: %w", err)
	}
	if !answer.Verified {
		return body, failure.ErrNo
	}
	return body, nil
}

// joinOwners adds the username of each user as the member owner: username is what the provider calls them.
func joinOwners(ctx context.Context, s *session.Session, items []output.Object) error {
	users, err := usersByID(ctx, s, idsOf(items, "user_id"))
	for i, item := range items {
		if user, ok := users[item.Text("user_id")]; ok {
			items[i] = append(item, output.Member{Name: "owner", Value: user.Username})
		}
	}
	return err
}
