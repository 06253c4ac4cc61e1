package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
	"github.com/idplatform/idplatform/cli/internal/transfer"
)

// addTransfers adds import and export to the nouns whose records files can hold.
func (a *App) addTransfers(root *cobra.Command) {
	for _, kind := range transfer.Kinds() {
		noun, _, err := root.Find([]string{kind.Noun})
		if err != nil || noun == root {
			noun = group(kind.Noun, kind.Short)
			noun.GroupID = nounGroup
			root.AddCommand(noun)
		}
		noun.AddCommand(a.importCommand(kind), a.exportCommand(kind))
	}
}

// importCommand imports records of a kind.
func (a *App) importCommand(kind *transfer.Kind) *cobra.Command {
	o := transfer.ImportOptions{}
	command := &cobra.Command{
		Use: "import FILE", Short: "Import " + kind.Things + " from CSV or JSON lines", Args: exactly(1),
		Example: kind.ImportExample,
		Long: "Import " + kind.Things + " from CSV or JSON lines; - is standard input.\n\n" +
			"Columns: " + strings.Join(kind.Columns(), ", ") + ".\n" + kind.Notes + "\n\n" +
			kind.Conflict + "\n\n" +
			"What was done is kept in FILE.progress: after an interruption, the same command goes on, and nothing\n" +
			"is lost or done twice. Records that fail are in a file FILE.failed, with the reasons, ready to be\n" +
			"imported when they are mended; the exit code is 9 then.\n\nScopes: " + kind.ImportScopes,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"csv", "jsonl", "ndjson"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.Map, "map", nil, "COLUMN=NAME: what a column of the file is here; COLUMN= leaves it out")
	flags.StringArrayVar(&o.Set, "set", nil, "NAME=VALUE: a column that all records have")
	flags.StringVar(&o.Format, "format", "", "csv or jsonl, if the name of the file does not tell")
	flags.StringVar(&o.Progress, "progress", "", "where to keep what was done, instead of FILE.progress")
	flags.StringVar(&o.Failed, "failed", "", "where to write what failed, instead of FILE.failed.csv")
	flags.StringVar(&o.OnConflict, "on-conflict", kind.Conflicts[0],
		"what happens to records that are there already: "+strings.Join(kind.Conflicts, ", "))
	_ = command.RegisterFlagCompletionFunc("on-conflict", // the flag is there
		cobra.FixedCompletions(kind.Conflicts, cobra.ShellCompDirectiveNoFileComp))
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		o.File = args[0]
		return kind.Import(ctx, s, o)
	})
	return command
}

// exportCommand exports records of a kind.
func (a *App) exportCommand(kind *transfer.Kind) *cobra.Command {
	filters := map[string]*string{}
	command := &cobra.Command{
		Use: "export [FILE]", Short: "Export " + kind.Things + " as CSV or JSON lines, which import reads",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 1 {
				return failure.Usagef("%s takes one file: idp %s %s", command.CommandPath(), kind.Noun, command.Use)
			}
			return nil
		},
		Example: kind.ExportExample,
		Long: "Export " + kind.Things + " as CSV or JSON lines, by the name of the file or -o csv|jsonl, to\n" +
			"standard output if no file is named. import reads what it writes. A file has its name only when it\n" +
			"is whole.\n\nScopes: " + kind.ExportScopes,
	}
	for _, f := range kind.Filters {
		filters[f.Name] = command.Flags().String(f.Name, "", f.Usage)
	}
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		given := map[string]string{}
		for name, value := range filters {
			if *value != "" {
				given[name] = *value
			}
		}
		return kind.Export(ctx, s, strings.Join(args, ""), given)
	})
	return command
}
