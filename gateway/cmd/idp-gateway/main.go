// Command idp-gateway is the gateway as a process of its own, in front of services in other processes.
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
	// Not a wish to end it: the terminal is gone, or a tool means "read your files again". The certificate is, whenever it changes.
	signal.Ignore(syscall.SIGHUP)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := start(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, secret.MaskError(err))
		os.Exit(1)
	}
}

// start loads the configuration and runs, or prints the help that was asked for, or, as "idp-gateway health", asks the running gateway
// whether it is ready.
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
