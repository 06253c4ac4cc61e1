package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// Command is a command of a service's program that works with NATS, beside or without the running service.
type Command struct {
	Name string
	// Run gets the words after the command's name; settings are flags and not among them.
	Run func(ctx context.Context, b *bus.Bus, words []string, out io.Writer) error
}

var errNoCommand = errors.New("it is not one of the commands")

// command runs the command that the first argument names. The error is errNoCommand if none of them has that name.
func command(ctx context.Context, name string, args, environ []string, settings any, common *Config,
	commands []Command, out, log io.Writer) error {
	for _, c := range commands {
		if len(args) == 0 || args[0] != c.Name {
			continue
		}
		words := args[1:]
		for i, word := range words {
			if strings.HasPrefix(word, "-") {
				words = words[:i]
				break
			}
		}
		flags := args[1+len(words):]
		err := config.Load(settings, config.Options{Program: "idp-" + name, Environ: environ, Args: flags})
		if err != nil {
			return err
		}
		b, err := common.NATS.open(ctx, name, telemetry.NewLogger(log, slog.LevelWarn, common.Log.Format))
		if err != nil {
			return err
		}
		return errors.Join(c.Run(ctx, b, words, out), b.Close(context.WithoutCancel(ctx)))
	}
	return errNoCommand
}
