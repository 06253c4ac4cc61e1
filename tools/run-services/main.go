//go:build unix

// Command run-services runs the platform as separate processes on one machine: NATS, each service and the gateway. It
// makes secrets at the first start, waits until all processes are ready, restarts those that end by themselves, and
// stops all at Ctrl-C. Databases are SQLite files in the data folder, or MongoDB if IDP_MONGO_URI is set.
//
//	run-services [flags] [-- command arguments…]
//
// With a command, it runs that once the platform is ready, and stops all when the command ends. The command finds the
// platform in IDP, IDP_PUBLIC_URL and IDP_BOOTSTRAP_….
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/secret"
)

type settings struct {
	BasePort   int           `mapstructure:"base_port" doc:"Port of the gateway; the ports of the others follow it; 0: any free ports"`
	DataDir    string        `mapstructure:"data_dir" doc:"Folder of secrets, SQLite files, events and logs"`
	Programs   string        `mapstructure:"programs" doc:"Folder of nats-server and the platform's programs"`
	NATSConfig string        `mapstructure:"nats_config" doc:"Configuration of NATS"`
	Mongo      mongoSettings `mapstructure:"mongo"`

	env map[string][]string // further settings of processes, by name; only tests have any
}

type mongoSettings struct {
	URI secret.String `mapstructure:"uri" doc:"MongoDB's connection string; empty: SQLite"`
}

func defaults() settings {
	return settings{BasePort: 8080, DataDir: "data-services", Programs: "bin", NATSConfig: "deploy/nats/nats.conf"}
}

// Validate is called by config.Load.
func (s settings) Validate() error {
	if s.BasePort < 0 || s.BasePort > highestBasePort {
		return fmt.Errorf("base_port must be 0…%d", highestBasePort)
	}
	return nil
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout)
	if exit, failed := errors.AsType[*exec.ExitError](err); failed { // the command has printed the reason
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, secret.MaskError(err))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var command []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, command = args[:i], args[i+1:]
	}
	s := defaults()
	err := config.Load(&s, config.Options{Program: "run-services", Environ: os.Environ(), Args: args})
	if errors.Is(err, config.ErrHelp) {
		_, err = fmt.Fprint(out, config.Usage("run-services", &s))
		return err
	}
	if err != nil {
		return err
	}
	p, err := start(ctx, s, out)
	if err != nil {
		if ctx.Err() != nil { // the program was told to stop meanwhile
			return nil
		}
		return err
	}
	defer p.stop()
	if len(command) > 0 {
		return p.do(ctx, command, out)
	}
	p.greet(ctx, out)
	<-ctx.Done()
	fmt.Fprintln(out, "stopping")
	return nil
}

// do runs a command that is given the platform's address and its administrator.
func (p *platform) do(ctx context.Context, command []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(foreign(os.Environ()), "IDP="+p.url, "IDP_PUBLIC_URL="+p.url, "IDP_DATA_DIR="+p.folder.path,
		"IDP_BOOTSTRAP_CLIENT_ID="+administrator,
		"IDP_BOOTSTRAP_CLIENT_SECRET_FILE="+p.folder.join(administratorSecret))
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}

// greet prints what runs where, and how to use it.
func (p *platform) greet(ctx context.Context, out io.Writer) {
	fmt.Fprintf(out, "idplatform is running as separate processes\n\n")
	for _, one := range slices.Concat(p.groups...) {
		fmt.Fprintf(out, "  %-17s %-22s process %d\n", one.name, one.address, one.pid.Load())
	}
	fmt.Fprintf(out, "\n  data      %s, with the logs in logs and the secrets in secrets\n", p.folder.path)
	fmt.Fprintf(out, "  docs      %s/docs\n", p.url)
	fmt.Fprintf(out, "  events    nats sub --server \"$(cat %s)\" 'idp.events.>'\n", p.folder.join(readersURL))
	fmt.Fprintf(out, "  metrics   http://127.0.0.1:<the process's port + %d>/metrics\n", adminOffset)
	const curl = `curl -u "%s:$(cat %s)" -d grant_type=client_credentials %s/v1/oauth2/token`
	fmt.Fprintf(out, "\nThe first token:\n\n  "+curl+"\n", administrator, p.folder.join(administratorSecret), p.url)
	if link := p.link(ctx); link != "" {
		fmt.Fprintf(out, "\nConsole: %s (signs in once, within two minutes)\n", link)
	}
	fmt.Fprintf(out, "\nCtrl-C stops all. A process that ends by itself or is killed is started again.\n")
}
