package commands

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// contexts makes the commands for contexts.
func contexts(a *App) *cobra.Command {
	return group("context", "Choose and list contexts",
		&cobra.Command{
			Use: "list", Short: "List the contexts", Args: cobra.NoArgs, Example: "  idp context list",
			RunE: a.run(listContexts),
		},
		a.changeContexts("use NAME", "Make a context the current one", "  idp context use production", 1,
			func(f *config.File, args []string) error {
				_, _, err := f.Find(args[0])
				f.Current = args[0]
				return err
			}),
		a.changeContexts("rename NAME NEW", "Rename a context", "  idp context rename idp.example production", 2,
			func(f *config.File, args []string) error {
				session.ForgetTokens(a.terminal.CachePath, args[0])
				return f.Rename(args[0], args[1])
			}),
		a.changeContexts("delete NAME", "Forget a context and its credential", "  idp context delete test --yes", 1,
			func(f *config.File, args []string) error {
				session.ForgetTokens(a.terminal.CachePath, args[0])
				return f.Delete(args[0])
			}),
	)
}

func (a *App) changeContexts(
	use, short, example string, arguments int, change func(*config.File, []string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: exactly(arguments), ValidArgsFunction: a.contextNames,
		RunE: a.run(func(ctx context.Context, s *session.Session, args []string) error {
			if strings.HasPrefix(use, "delete ") {
				if err := s.Confirm("Delete the context " + args[0] + " and its credential"); err != nil {
					return err
				}
			}
			return config.Change(ctx, s.ConfigPath, func(f *config.File) error { return change(f, args) })
		}),
	}
}

func listContexts(_ context.Context, s *session.Session, _ []string) error {
	file, err := config.Load(s.ConfigPath)
	if err != nil {
		return err
	}
	type row struct {
		Name      string `json:"name"`
		Current   bool   `json:"current"`
		URL       string `json:"url"`
		Tenant    string `json:"tenant"`
		SignsIn   string `json:"signs_in"`
		Protected bool   `json:"protected"`
	}
	rows := []row{}
	for _, name := range slices.Sorted(maps.Keys(file.Contexts)) {
		c := file.Contexts[name]
		rows = append(rows, row{name, name == file.Current, c.URL, c.Tenant, c.How(), c.Protected})
	}
	body, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	view := output.View{Columns: columns("name", "current", "url", "tenant", "signs_in", "protected")}
	return printer.Body(body, view)
}

// columns makes columns of members.
func columns(names ...string) []output.Column {
	out := make([]output.Column, len(names))
	for i, name := range names {
		out[i] = output.MemberColumn(name)
	}
	return out
}
