// Package commands is the tree of commands. Each noun has a file of its own.
package commands

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// App is what all commands share.
type App struct {
	options  session.Options
	terminal session.Terminal
	table    *operations.Table
	session  *session.Session // of the command that runs; nil before
}

// nouns makes the commands of each noun. A new noun is a file, and a line here.
var nouns = []func(*App) *cobra.Command{
	users, invitations, factors, nodes, check, events,
	orgs, membersCommands, groups, resources, sets, grants, jobs, functions, components, kv,
	apps, protocols, credentials, accounts, sources, subscriptions, audit,
}

// tools makes the commands that are not about records.
var tools = []func(*App) *cobra.Command{login, contexts, api, doctor, export, diff, apply, man}

const (
	nounGroup = "nouns"
	toolGroup = "tools"
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, t session.Terminal, args []string) int {
	table, err := tableFor(ctx, t, args)
	if err != nil {
		failure.Print(output.Safe(t.Err), err, false, false)
		return failure.CodeOf(err, false)
	}
	root, app := Root(t, table)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	code, asJSON := failure.Done, wantsJSON(app.options.Format)
	switch {
	case err == nil:
	case app.session == nil: // cobra refused it: an unknown command, flag or number of arguments
		if _, known := err.(*failure.Error); !known {
			err = failure.Usagef("%w", err)
		}
		code, asJSON = failure.CodeOf(err, false), wantsJSON(looseOptions(args).Format)
	case ctx.Err() != nil && failure.CodeOf(err, app.session.Changes()) != failure.OutcomeUnknown:
		code = failure.Interrupted
		if failure.CodeOf(err, false) != failure.Partly { // a partly done command says what is done
			return code
		}
	default:
		code = failure.CodeOf(err, app.session.Changes())
	}
	changes := app.session != nil && app.session.Changes()
	failure.Print(output.Safe(t.Err), err, changes, asJSON)
	return code
}

func wantsJSON(format string) bool { return format == "json" || format == "jsonl" }

// looseOptions are the flags that all commands have, as far as they can be read: others may be wrong, or unknown.
func looseOptions(args []string) session.Options {
	app, flags := looseFlags()
	for rest := args; flags.Parse(rest) != nil && len(rest) > 0; { // what stands before a wrong value is read
		rest = rest[1:]
	}
	return app.options
}

func looseFlags() (*App, *pflag.FlagSet) {
	app := &App{}
	flags := pflag.NewFlagSet("idp", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.SetOutput(io.Discard)
	app.addFlags(flags)
	return app, flags
}

// tableFor returns the table of operations: the program's own, or the platform's with idp api --from-server. The flags
// of idp api come from the table, so it is read before the flags are parsed.
func tableFor(ctx context.Context, t session.Terminal, args []string) (*operations.Table, error) {
	if !slices.Contains(args, "--"+fromServer) || !slices.Contains(args, "api") {
		return operations.CompiledIn(), nil
	}
	app, flags := looseFlags()
	if err := flags.Parse(args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return nil, failure.Usagef("%w", err)
	}
	return session.New(t, app.options).ServerTable(ctx)
}

// Root makes the tree of commands.
func Root(t session.Terminal, table *operations.Table) (*cobra.Command, *App) {
	app := &App{terminal: t, table: table}
	root := &cobra.Command{
		Use: "idp", Short: "The command line of the identity platform", SilenceUsage: true, SilenceErrors: true,
		Version: version(),
		Long: "The command line of the identity platform: users, organization, permissions, events.\n\n" +
			"Data goes to standard output, all else to standard error. Exit codes: 0 done or yes, 1 fault of idp,\n" +
			"2 wrong usage, 3 not found, 4 not signed in or not allowed, 5 refused, 6 changed meanwhile,\n" +
			"7 unavailable and nothing changed, 8 outcome unknown, 9 partly done, 10 no, 130 interrupted.",
		Example: "  idp login https://idp.example\n  idp users list --keyword li\n" +
			"  idp check li.wei read crm:invoice --explain",
	}
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.Err)
	app.addFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("context", app.contextNames) // the flag is there
	app.completeWords(root, "output", output.Formats...)
	app.completeFlag(root, "tenant", known{"tenants", tenantsLike})
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	root.AddGroup(&cobra.Group{ID: nounGroup, Title: "Records:"}, &cobra.Group{ID: toolGroup, Title: "Tools:"})
	root.SetHelpCommandGroupID(toolGroup)
	root.SetCompletionCommandGroupID(toolGroup)
	for group, of := range map[string][]func(*App) *cobra.Command{nounGroup: nouns, toolGroup: tools} {
		for _, make := range of {
			command := make(app)
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	app.addTransfers(root)
	return root, app
}

func (a *App) addFlags(flags *pflag.FlagSet) {
	o := &a.options
	flags.StringVar(&o.Context, "context", "", "the context to use instead of the current one")
	flags.StringVar(&o.Tenant, "tenant", "", "another tenant, for platform administrators")
	flags.BoolVar(&o.CreateTenant, "create-tenant", false, "go on although nothing is in the tenant yet")
	flags.StringVarP(&o.Format, "output", "o", "table", strings.Join(output.Formats, ", ")+", or template=… (Go's)")
	flags.StringVar(&o.JQ, "jq", "", "print what this jq program makes of the answer")
	flags.StringSliceVar(&o.Fields, "fields", nil, "print only these members, joined by commas")
	flags.BoolVar(&o.All, "all", false, "print all pages of a list, and every step of a plan")
	flags.BoolVar(&o.DryRun, "dry-run", false, "show what a change would change, without making it")
	flags.StringVar(&o.IfVersion, "if-version", "", "change the record only if it still has this version")
	flags.StringVar(&o.IdempotencyKey, "idempotency-key", "", "the key of a change, to find out what became of it")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "do not ask before a deletion")
	flags.BoolVar(&o.Curl, "curl", false, "print the curl command instead of sending the request")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "show requests, without secrets, on standard error")
	flags.DurationVar(&o.Timeout, "timeout", time.Minute, "how long to wait for one answer")
	flags.DurationVar(&o.Wait, "wait", 30*time.Second, "how long to wait for a platform that is busy or away")
}

// action is what a command does.
type action func(ctx context.Context, s *session.Session, args []string) error

// run makes cobra's form of an action.
func (a *App) run(do action) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		// An empty variable in a script would otherwise change another tenant, or without a condition.
		for _, name := range []string{"if-version", "idempotency-key", "tenant", "context"} {
			if flag := command.Flags().Lookup(name); flag != nil && flag.Changed && flag.Value.String() == "" {
				return failure.Usagef("--%s is empty", name)
			}
		}
		if a.options.Wait < 0 || a.options.Timeout < 0 {
			return failure.Usagef("--wait and --timeout must not be negative")
		}
		a.session = session.New(a.terminal, a.options)
		a.session.Interrupted = command.Context().Done()
		return do(command.Context(), a.session, args)
	}
}

// group makes a command that has only subcommands.
func group(use, short string, of ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return failure.Usagef("%s has no command %q: %s", command.CommandPath(), args[0],
				strings.Join(names(command.Commands()), ", "))
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(of...)
	return command
}

func names(of []*cobra.Command) []string {
	var out []string
	for _, command := range of {
		out = append(out, command.Name())
	}
	slices.Sort(out)
	return out
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
