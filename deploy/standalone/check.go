package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// check prints the settings, secrets masked, and looks for damage in the stores and the event stream. The platform must not run.
func check(ctx context.Context, args []string, out, notes io.Writer) error {
	s, err := load(args, out)
	if err != nil {
		return err
	}
	standard := defaults()
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, setting := range config.Describe(&s, &standard) {
		fmt.Fprintf(table, "%s\t%s\n", setting.Env, setting.Value)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	f, unlock, err := takeFolder(s.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Fprintf(out, "\ndata folder %s\n", f.path)

	keys, err := f.keyring(s.EncryptionKeys)
	if err == nil {
		_, err = f.signer(keys)
	}
	failures := report(out, "keys", err)
	log := telemetry.NewLogger(notes, s.Log.Level, s.Log.Format)
	for _, spec := range s.specs() {
		failures += report(out, "store of "+spec.Name, checkStore(ctx, f, spec, log))
	}
	server, err := embedded.Start(embedded.Config{StoreDir: f.join("nats"), Log: log})
	if err == nil {
		defer server.Stop()
		failures += report(out, "event stream", checkStream(ctx, bus.Config{InProcess: server.Conn(), Name: "idp-standalone check", Log: log}, out))
	} else {
		failures += report(out, "event stream", err)
	}
	if failures > 0 {
		return fmt.Errorf("check: %d part(s) of the platform are not well", failures)
	}
	return nil
}

func report(out io.Writer, part string, err error) (failures int) {
	if err != nil {
		fmt.Fprintf(out, "  %-16s %v\n", part, err)
		return 1
	}
	fmt.Fprintf(out, "  %-16s ok\n", part)
	return 0
}

func checkStore(ctx context.Context, f folder, spec service.Spec, log *slog.Logger) error {
	engine, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: f.join(spec.Name + ".db"), Log: log})
	if err != nil {
		return err
	}
	store, err := spec.Open(ctx, engine, clock.System, nil)
	if err != nil {
		return err
	}
	return errors.Join(store.Check(ctx), store.Close())
}

// checkStream reads every event that the stream keeps.
func checkStream(ctx context.Context, c bus.Config, out io.Writer) (err error) {
	b, err := bus.Connect(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(ctx)) }()

	n, err := b.CheckEvents(ctx, func(read, total uint64) { fmt.Fprintf(out, "  event stream     %d of %d events read\n", read, total) })
	if err == nil {
		fmt.Fprintf(out, "  event stream     %d events\n", n)
	}
	return err
}
