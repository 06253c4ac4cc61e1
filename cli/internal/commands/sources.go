package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var sourceView = output.View{
	Columns: append(columns("id"), eitherColumn("NAME", "display_name", "name"),
		eitherColumn("PROVIDER", "provider_code"), eitherColumn("TYPE", "type"), statusColumn,
		timeColumn("MODIFIED", "time_modified")),
	Wide: append(columns("config_fields", "developer_id"), timeColumn("CREATED", "time_created")),
	Name: "display_name",
}

var providerView = output.View{
	Columns: []output.Column{
		eitherColumn("PROVIDER", "provider_code"), eitherColumn("NAME", "name"), eitherColumn("TYPE", "type"),
		eitherColumn("NEEDS", "config_schema.required"),
	},
	Wide: columns("documentation"), Name: "provider_code",
}

var settingView = output.View{
	Columns: []output.Column{
		eitherColumn("SETTING", "name"), eitherColumn("TYPE", "type"), eitherColumn("NEEDED", "needed"),
		eitherColumn("SECRET", "secret"), eitherColumn("WHAT", "description", "title"),
	},
	Wide: columns("pattern", "default"), Name: "name",
}

var stepView = output.View{
	Columns: []output.Column{
		inWords("RESULT", "ok", map[string]string{"true": "ok", "false": "failed"}), eitherColumn("STEP", "name"),
		eitherColumn("MS", "duration_ms"), eitherColumn("MESSAGE", "message"),
	},
	Name: "name",
}

var (
	knownSources   = known{"sources", sourcesLike}
	knownProviders = kind{noun: "provider", list: "list-providers", name: "provider_code"}.known()
)

// sources makes the commands for identity sources: connections to providers.
func sources(a *App) *cobra.Command {
	source, words := firstOf(sourceID), a.words(knownSources)
	return group("sources", "Identity sources: connections to where people sign in, and tests of them",
		a.operation(operation{
			use: "list", short: "List the connections to providers", operation: "list-connections", view: sourceView,
			example: "  idp sources list\n  idp sources list --type enterprise --status 1",
		}),
		a.operation(operation{
			use: "get SOURCE", short: "Show a connection", operation: "get-connection", view: sourceView, arguments: 1,
			path: source, complete: words, example: "  idp sources get github/Our\n  idp sources get Our -o json",
		}),
		a.createSource(),
		a.operation(operation{
			use: "update SOURCE SETTING=VALUE...", short: "Change settings of a connection",
			operation: "replace-connection", view: sourceView, arguments: 1, more: true, keeps: true,
			complete: words, without: []string{"provider_code", "config_fields"},
			path: source,
			body: func(ctx context.Context, s *session.Session, args []string, body members) error {
				return connectionSettings(ctx, s, body, args[1:])
			},
			example: "  idp sources update Our ClientId=Iv1.8a61f9b3a7aba766 ClientSecret=@secret.txt\n" +
				"  idp sources update Our --display-name GitHub --dry-run",
		}),
		a.operation(operation{
			use: "test SOURCE", short: "Test a connection, step by step", operation: "test-connection", view: stepView,
			arguments: 1, path: source, complete: words, answer: tested, example: "  idp sources test Our",
		}),
		a.operation(operation{
			use: "enable SOURCE", short: "Switch a connection on", operation: "enable-connection", view: sourceView,
			arguments: 1, path: source, complete: words, example: "  idp sources enable Our",
		}),
		a.operation(operation{
			use: "disable SOURCE", short: "Switch a connection off", operation: "disable-connection", view: sourceView,
			arguments: 1, path: source, complete: words, example: "  idp sources disable Our",
		}),
		a.operation(operation{
			use: "delete SOURCE", short: "Delete a connection", operation: "delete-connection", arguments: 1,
			path: source, complete: words, example: "  idp sources delete Our --yes",
		}),
		attachSource(a), detachSource(a),
		a.operation(operation{
			use: "providers", short: "List what there can be connections to", operation: "list-providers",
			view: providerView, example: "  idp sources providers",
		}),
		a.providerSettings(),
	)
}

func (a *App) createSource() *cobra.Command {
	provider := reference{
		flag: "provider", usage: "to whom, as idp sources providers lists them", id: "provider_code",
		find: providerCode, known: knownProviders, required: true,
	}
	return a.operation(operation{
		use: "create --provider PROVIDER SETTING=VALUE...", short: "Create a connection to a provider",
		operation: "create-connection", view: sourceView, more: true, path: noPath,
		without: []string{"config_fields"}, references: []reference{provider},
		body: func(ctx context.Context, s *session.Session, args []string, body members) error {
			return connectionSettings(ctx, s, body, args)
		},
		example: "  idp sources create --provider github --display-name Our ClientId=Iv1.8a61f9b3a7aba766 " +
			"ClientSecret=@secret.txt\n  idp sources settings github",
	})
}

// providerSettings makes the command that lists what settings a provider has.
func (a *App) providerSettings() *cobra.Command {
	command := &cobra.Command{
		Use: "settings PROVIDER", Short: "List the settings of a provider's connections", Args: exactly(1),
		Long:              "List the settings of a provider's connections.\n\nScope: identity-sources:read",
		ValidArgsFunction: a.words(knownProviders), Example: "  idp sources settings github",
	}
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		if s.Curl {
			return s.Run(ctx, &session.Call{Operation: session.Operation("list-providers")})
		}
		provider, err := providerOf(ctx, s, args[0])
		if err != nil {
			return err
		}
		rows, err := settingRows(provider)
		if err != nil {
			return err
		}
		return s.Show(rows, settingView)
	})
	return command
}

// tested prints the steps of a test for people, and makes the exit code say whether all were passed.
func tested(s *session.Session, body []byte) ([]byte, error) {
	var result idp.Result
	if err := json.Unmarshal(body, &result); err != nil {
		return body, fmt.Errorf("the answer is not as documented: %w", err)
	}
	printer, err := s.Printer()
	if err != nil {
		return body, err
	}
	if printer.ForPeople() && len(s.Fields) == 0 {
		if body, err = json.Marshal(result.Steps); err != nil {
			return body, err
		}
	}
	if !result.Ok {
		return body, failure.ErrNo
	}
	return body, nil
}

// sourceID finds a connection by its id, by what it is called, by its provider, or by both: github/Our.
func sourceID(ctx context.Context, s *session.Session, name string) (string, error) {
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	all, err := client.ListConnections(ctx, idp.ListConnectionsParams{})
	if err != nil {
		return "", failure.WithScope(err, "identity-sources:read")
	}
	var called, ofProvider []found
	var names []string
	for _, c := range all {
		full := c.ProviderCode + "/" + c.DisplayName
		names = append(names, c.DisplayName, c.ProviderCode)
		switch name {
		case c.ID, c.DisplayName, full:
			called = append(called, found{c.ID, full})
		case c.ProviderCode:
			ofProvider = append(ofProvider, found{c.ID, full})
		}
	}
	if len(called) == 0 {
		called = ofProvider
	}
	if len(called) == 0 {
		slices.Sort(names)
		return "", none("source", name, near(name, slices.Compact(names)))
	}
	return one("source", name, called)
}

// sourcesLike completes a connection by what it is called.
func sourcesLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	all, err := client.ListConnections(ctx, idp.ListConnectionsParams{})
	var out []string
	for _, c := range all {
		if name := cmp.Or(c.DisplayName, c.ProviderCode); strings.HasPrefix(name, prefix) {
			out = append(out, name+"\t"+c.Name)
		}
	}
	return out, err
}

// providerOf finds a provider by its code.
func providerOf(ctx context.Context, s *session.Session, code string) (*idp.Provider, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	all, err := client.ListProviders(ctx)
	if err != nil {
		return nil, failure.WithScope(err, "identity-sources:read")
	}
	var codes []string
	for _, p := range all {
		if p.ProviderCode == code {
			return &p, nil
		}
		codes = append(codes, p.ProviderCode)
	}
	return nil, none("provider", code, near(code, codes))
}

func providerCode(ctx context.Context, s *session.Session, name string) (string, error) {
	provider, err := providerOf(ctx, s, name)
	if err != nil {
		return "", err
	}
	return provider.ProviderCode, nil
}

// settingRows are the settings of a provider, in the order of its schema.
func settingRows(p *idp.Provider) ([]output.Object, error) {
	value, err := output.Parse(p.ConfigSchema)
	if err != nil {
		return nil, err
	}
	schema, _ := value.(output.Object)
	properties, _ := schema.Get("properties").(output.Object)
	required, _ := schema.Get("required").([]any)
	yes := map[bool]string{true: "yes"}
	rows := []output.Object{}
	for _, property := range properties {
		kind, _ := property.Value.(output.Object)
		rows = append(rows, append(output.Object{
			{Name: "name", Value: property.Name},
			{Name: "needed", Value: yes[slices.Contains(required, any(property.Name))]},
			{Name: "secret", Value: yes[kind.Text("writeOnly") == "true"]},
		}, kind...))
	}
	return rows, nil
}

// connectionSettings puts settings of a provider into the body of a connection.
func connectionSettings(ctx context.Context, s *session.Session, body members, args []string) error {
	if len(args) == 0 && body["config_fields"] != nil {
		return nil
	}
	var code string
	if raw, isRaw := body["provider_code"].(json.RawMessage); isRaw {
		_ = json.Unmarshal(raw, &code) // the platform says what is wrong with another value
	}
	provider, err := providerOf(ctx, s, code)
	if err != nil {
		return err
	}
	var schema struct{ Properties map[string]settingKind }
	if err := json.Unmarshal(provider.ConfigSchema, &schema); err != nil {
		return fmt.Errorf("the schema of %s: %w", code, err)
	}
	return body.settings(s, "config_fields", args, schema.Properties)
}

func attachSource(a *App) *cobra.Command {
	return a.operation(operation{
		use: "attach SOURCE APP", short: "Let people sign in to an application by a connection",
		operation: "attach-source", view: appView, arguments: 2, complete: a.words(knownSources, knownApplications),
		without: []string{"config_id", "config_ids"},
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			return inApplication(ctx, s, args[1:])
		},
		body: func(ctx context.Context, s *session.Session, args []string, body members) (err error) {
			body["config_id"], err = sourceID(ctx, s, args[0])
			return err
		},
		example: "  idp sources attach Our crm",
	})
}

func detachSource(a *App) *cobra.Command {
	return a.operation(operation{
		use: "detach SOURCE APP", short: "Take a connection away from an application", operation: "detach-source",
		arguments: 2, verb: "Detach", complete: a.words(knownSources, knownApplications),
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			path, err := inApplication(ctx, s, args[1:])
			if err != nil {
				return nil, err
			}
			id, err := sourceID(ctx, s, args[0])
			return append(path, id), err
		},
		example: "  idp sources detach Our crm --yes",
	})
}
