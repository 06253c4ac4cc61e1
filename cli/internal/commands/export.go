package commands

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// export makes the command that writes files which apply reads.
func export(a *App) *cobra.Command {
	folder, wanted := "", []string{}
	command := &cobra.Command{
		Use: "export -f DIR", Short: "Write what runs as files that apply reads", Args: exactly(0),
		Long: "Write what runs as files that idp apply reads; applying them changes nothing. Secrets are not in\n" +
			"them, but places from which apply takes them. Files of other names stay as they are.",
		Example: "  idp export -f config\n  idp export -f config --kind Application,Resource,ResourceSet,Rule",
	}
	command.Flags().StringVarP(&folder, "file", "f", "", "the folder (required)")
	command.Flags().StringSliceVar(&wanted, "kind", nil, "only these kinds: "+strings.Join(plan.Kinds(), ", "))
	a.completeWords(command, "kind", plan.Kinds()...)
	command.RunE = a.run(func(ctx context.Context, s *session.Session, _ []string) error {
		if folder == "" {
			return failure.Usagef("-f is needed: the folder of the files")
		}
		for _, kind := range wanted {
			if !slices.Contains(plan.Kinds(), kind) {
				return failure.Usagef("there is no kind %q: one of %s", kind, strings.Join(plan.Kinds(), ", "))
			}
		}
		scope := plan.Everything(wanted)
		actual, err := plan.Read(ctx, &platform{s: s}, scope)
		if err != nil {
			return err
		}
		files, err := actual.Export(scope)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if err := write(filepath.Join(folder, filepath.FromSlash(name)), files[name]); err != nil {
				return failure.Usagef("-f: %w", err)
			}
			fmt.Fprintln(s.Out, filepath.ToSlash(filepath.Join(folder, name)))
		}
		return nil
	})
	return command
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
