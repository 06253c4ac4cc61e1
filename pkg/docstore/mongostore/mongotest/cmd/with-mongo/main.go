// Command with-mongo runs a command with a MongoDB: it starts one in a container, tells its URI in IDP_TEST_MONGO_URI, and ends it
// afterwards.
//
//	with-mongo go test ./services/...
//
// It exits with the command's code; with 2 if it was called wrongly, and with 3 if there is no Docker engine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest"
)

const (
	exitUsage   = 2
	exitNoMongo = 3
	// graceful is how long an interrupted command may take to end.
	graceful = 10 * time.Second
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with-mongo command [argument ...]")
		os.Exit(exitUsage)
	}
	os.Exit(run(os.Args[1], os.Args[2:]))
}

func run(name string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	uri, end, err := mongotest.Start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-mongo: there is no MongoDB for", name+":", err)
		return exitNoMongo
	}
	defer func() {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "with-mongo: stop MongoDB:", err)
		}
	}()
	command := exec.CommandContext(ctx, name, args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), mongotest.EnvURI+"="+uri, mongotest.EnvRequired+"=1")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = graceful
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-mongo:", err)
		return 1
	}
	return 0
}
