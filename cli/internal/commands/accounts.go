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

var (
	accountStates = []output.Column{
		inWords("DEFAULT", "is_default", map[string]string{"1": "yes", "0": "no"}), statusColumn,
	}
	accountMore = append(columns("user_id", "app_id", "free_ext_props"), timeColumn("CREATED", "time_created"),
		timeColumn("MODIFIED", "time_modified"))
	accountColumns = columns("id", "account", "display_name")
)

var accountView = output.View{
	Columns: slices.Concat(accountColumns, []output.Column{eitherColumn("USER", "username", "user_id")}, accountStates),
	Wide:    accountMore, Name: "account",
}

var accountsOfView = output.View{
	Columns: slices.Concat([]output.Column{eitherColumn("APPLICATION", "application", "app_id")}, accountColumns,
		accountStates),
	Wide: accountMore, Name: "account",
}

// accounts makes the commands for sub-accounts: what people are called in applications.
func accounts(a *App) *cobra.Command {
	first := a.words(knownApplications)
	ofUser := reference{flag: "user", usage: "only those of this user", id: "user_id", find: userID, known: knownUsers}
	owner := ofUser
	owner.usage, owner.required = "whose sub-account it is", true
	return group("accounts", "Sub-accounts: what people are called in applications",
		a.operation(operation{
			use: "list APP", short: "List an application's sub-accounts", operation: "list-accounts", view: accountView,
			arguments: 1, path: inApplication, complete: first, references: []reference{ofUser}, join: joinUsers,
			example: "  idp accounts list crm\n  idp accounts list crm --user li.wei\n" +
				"  idp accounts list crm --keyword li --status 0",
		}),
		a.operation(operation{
			use: "of USER", short: "List a user's sub-accounts in all applications", operation: "list-accounts-of-user",
			view: accountsOfView, arguments: 1, path: noPath, complete: a.words(knownUsers),
			without: []string{"user_id"},
			query: func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
				id, err := userID(ctx, s, args[0])
				query.Set("user_id", id)
				return err
			},
			join: func(ctx context.Context, s *session.Session, items []output.Object) error {
				return joinApplications(ctx, s, items, "app_id")
			},
			example: "  idp accounts of li.wei",
		}),
		a.operation(operation{
			use: "get APP ACCOUNT|USER", short: "Show a sub-account", operation: "get-account", view: accountView,
			arguments: 2, path: accountPath, complete: first,
			example: "  idp accounts get crm liwei\n  idp accounts get crm li.wei@acme.test",
		}),
		createAccount(a, first, owner),
		a.operation(operation{
			use: "update APP ACCOUNT|USER", short: "Change members of a sub-account", operation: "replace-account",
			view: accountView, arguments: 2, path: accountPath, complete: first, keeps: true,
			without: []string{"user_id", "password"},
			example: "  idp accounts update crm liwei --display-name 李伟 --dry-run\n" +
				"  idp accounts update crm liwei --is-default 1",
		}),
		enableAccount(a),
		a.operation(operation{
			use: "disable APP ACCOUNT|USER", short: "Switch a sub-account off", operation: "disable-account",
			view: accountView, arguments: 2, path: accountPath, complete: first,
			example: "  idp accounts disable crm liwei",
		}),
		a.operation(operation{
			use: "delete APP ACCOUNT|USER", short: "Delete a sub-account", operation: "delete-account", arguments: 2,
			path: accountPath, complete: first, example: "  idp accounts delete crm liwei --yes",
		}),
	)
}

// accountPath finds an application, and in it a sub-account: by its id or name, or by the user who has it.
func accountPath(ctx context.Context, s *session.Session, args []string) ([]string, error) {
	path, err := inApplication(ctx, s, args[:1])
	if err != nil {
		return nil, err
	}
	id, err := accountID(ctx, s, path[0], args[1])
	return []string{path[0], id}, err
}

// accountID finds a sub-account of an application.
func accountID(ctx context.Context, s *session.Session, application, name string) (string, error) {
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	read := func(params idp.ListAccountsParams) (fits []found, err error) {
		for account, err := range client.ListAllAccounts(ctx, application, params) {
			if err != nil {
				return nil, failure.WithScope(err, "applications:read")
			}
			fits = append(fits, found{account.ID, account.Account})
		}
		return fits, nil
	}
	fits, err := read(idp.ListAccountsParams{Account: name})
	if err != nil {
		return "", err
	}
	if digits.MatchString(name) {
		switch account, err := client.GetAccount(ctx, application, name); {
		case err == nil && !slices.Contains(fits, found{account.ID, account.Account}):
			fits = append(fits, found{account.ID, account.Account})
		case err != nil && idp.CodeOf(err) != idp.CodeNotFound:
			return "", failure.WithScope(err, "applications:read")
		}
	}
	if len(fits) > 0 {
		return one("sub-account", name, fits)
	}
	if user, err := userID(ctx, s, name); err == nil { // otherwise the name can be none of a user
		if fits, err = read(idp.ListAccountsParams{UserID: user}); err != nil {
			return "", err
		}
	}
	if len(fits) > 0 {
		return one("sub-account", name, fits)
	}
	page, err := client.ListAccounts(ctx, application, idp.ListAccountsParams{PageSize: 200, Count: new(false)})
	if err != nil {
		return "", failure.WithScope(err, "applications:read")
	}
	var names []string
	for _, account := range page.Items {
		names = append(names, account.Account)
	}
	return "", none("sub-account", name, near(name, names))
}

// enableAccount sends the id twice, in the path and in the query.
func enableAccount(a *App) *cobra.Command {
	return a.operation(operation{
		use: "enable APP ACCOUNT|USER", short: "Switch a sub-account on", operation: "enable-account",
		view: accountView, arguments: 2, path: accountPath, complete: a.words(knownApplications),
		without: []string{"id"},
		query: func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
			path, err := accountPath(ctx, s, args)
			if err == nil {
				query.Set("id", path[1])
			}
			return err
		},
		example: "  idp accounts enable crm liwei",
	})
}

func createAccount(a *App, first cobra.CompletionFunc, owner reference) *cobra.Command {
	return a.operation(operation{
		use: "create APP ACCOUNT --user USER", short: "Create a sub-account", operation: "create-account",
		view: accountView, arguments: 2, complete: first, references: []reference{owner},
		without: []string{"account", "password"},
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			return inApplication(ctx, s, args[:1])
		},
		body: func(_ context.Context, _ *session.Session, args []string, body members) error {
			body["account"] = args[1]
			return nil
		},
		example: "  idp accounts create crm liwei --user li.wei\n" +
			"  idp accounts create crm liwei --user li.wei -F password=@password.txt",
	})
}
