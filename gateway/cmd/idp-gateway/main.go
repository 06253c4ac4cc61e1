// Command idp-gateway runs the gateway as a process of its own, in front of services in other processes.
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
	"github.com/idplatform/idplatform/pkg/health"
	"github.com/idplatform/idplatform/pkg/secret"
)

const program = "idp-gateway"

func main() {
	// SIGHUP does not end the gateway: it comes when a terminal closes, or from a tool that wants files to be read
	// again. The gateway notices by itself when its certificate changes.
	signal.Ignore(syscall.SIGHUP)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := start(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, secret.MaskError(err))
		os.Exit(1)
	}
}

// start loads the configuration and runs the gateway. With --help it prints the help instead; "idp-gateway health"
// asks the running gateway whether it is ready.
func start(ctx context.Context, args, environ []string, out, logs io.Writer) error {
	s := defaults()
	probing := len(args) > 0 && args[0] == "health"
	if probing {
		args = args[1:]
	}
	err := config.Load(&s, config.Options{Program: program, Environ: environ, Args: args})
	if errors.Is(err, config.ErrHelp) {
		_, err = fmt.Fprint(out, config.Usage(program, &s))
		return err
	}
	if err != nil {
		return err
	}
	if probing {
		return health.Probe(ctx, s.Listen, s.TLS.CertFile != "")
	}
	return run(ctx, s, logs)
}
