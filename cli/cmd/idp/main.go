// Idp is the command line of the identity platform.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/idplatform/idplatform/cli/internal/commands"
	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	path, err := config.Path()
	if err != nil {
		fmt.Fprintln(os.Stderr, "idp:", err)
		os.Exit(failure.Fault)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	before, _ := term.GetState(int(os.Stdin.Fd())) // nil: it is no terminal
	code := commands.Main(ctx, session.Terminal{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		ConfigPath: path, CachePath: filepath.Join(cache, "idp"),
		InIsTerminal: isTerminal(os.Stdin), OutIsTerminal: isTerminal(os.Stdout), Width: width(),
		ErrIsTerminal: isTerminal(os.Stderr),
		ReadPassword: func() (string, error) {
			secret, err := term.ReadPassword(int(os.Stdin.Fd()))
			return string(secret), err
		},
	}, os.Args[1:])
	if ctx.Err() != nil && before != nil { // a password was asked for, without showing it
		_ = term.Restore(int(os.Stdin.Fd()), before)
	}
	os.Exit(code)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// width is how many columns the terminal has; 0 if there is none.
func width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
