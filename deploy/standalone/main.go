// Command idp-standalone is the whole platform as one program: every service, the gateway, SQLite for the databases
// and NATS for the events between them, with one data folder. It is a complete deployment for a single machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/automation"
)

const usage = `idp-standalone is the whole identity platform as one program.

  idp-standalone serve      start the platform; --accept-loss STORE to start without a store that was lost
  idp-standalone token      print a bearer token of the running platform; --tenant T, --scope "users:read …"
  idp-standalone console    print a link that signs in to the web console, once
  idp-standalone keys       keys rotate: sign tokens with a new key; --at-once if others may know the old one
  idp-standalone check      check the configuration and, while the platform is stopped, its data;
                            --rotate-keys first encrypts all secrets under a new key
  idp-standalone backup     backup DIR: copy everything into a new folder, of a running or stopped platform
  idp-standalone restore    restore DIR: fill the empty data folder with what backup has copied
  idp-standalone version    print how this program was built

"idp-standalone serve --help" lists the settings.
`

// command is a sub-command. Its result goes to out, everything else (logs, explanations) to notes.
type command func(ctx context.Context, args []string, out, notes io.Writer) error

var commands = map[string]command{
	"serve": serve, "token": token, "console": link, "keys": keys, "check": check, "backup": backup,
	"restore": restore, "version": version,
}

func main() {
	automation.RunIfWorker()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, notes io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(notes, usage)
		return 2
	}
	do, ok := commands[args[0]]
	if !ok {
		if args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
			fmt.Fprint(out, usage)
			return 0
		}
		fmt.Fprintf(notes, "there is no command %q\n\n%s", args[0], usage)
		return 2
	}
	restrictFiles()
	err := do(ctx, args[1:], out, notes)
	if errors.Is(err, config.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(notes, secret.MaskError(err))
		return 1
	}
	return 0
}
