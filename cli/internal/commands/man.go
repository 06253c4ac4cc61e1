package commands

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// man makes the command that writes the manual: a page for each command, of the texts that --help prints.
func man(a *App) *cobra.Command {
	command := &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages", Args: exactly(1),
		Long: "Write a manual page for each command into a folder, which is made if it is not there.\n" +
			"man finds them where the folder is called man1 and the one above it is in MANPATH.",
		Example: "  idp man /usr/local/share/man/man1\n  idp man ~/.local/share/man/man1",
	}
	command.RunE = a.run(func(_ context.Context, s *session.Session, args []string) error {
		count, err := writeManual(command.Root(), args[0])
		if err != nil {
			return failure.Usagef("the manual: %w", err)
		}
		_, err = fmt.Fprintf(s.Out, "%d pages in %s\n", count, args[0])
		return err
	})
	return command
}

// writeManual writes the pages. They have no date, so that the same program writes the same pages.
func writeManual(root *cobra.Command, folder string) (int, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	root.DisableAutoGenTag = true
	count := escapeTexts(root)
	never := time.Unix(0, 0)
	header := &doc.GenManHeader{Section: "1", Source: "idp " + version(), Manual: "idp", Date: &never}
	return count, doc.GenManTree(root, header, folder)
}

// escapeTexts keeps what the manual's generator would take for Markdown, such as the * of user.*, and counts commands.
func escapeTexts(command *cobra.Command) int {
	markdown := strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "`", "")
	command.Short, command.Long = markdown.Replace(command.Short), markdown.Replace(command.Long)
	count := 1
	for _, inner := range command.Commands() {
		if !inner.IsAvailableCommand() {
			continue // help, which has no page
		}
		count += escapeTexts(inner)
	}
	return count
}
