package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// version prints how this program was built, as JSON.
func version(_ context.Context, _ []string, out, _ io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(telemetry.ReadBuild())
}

// helped returns config.ErrHelp if err is pflag's error for --help, otherwise err.
func helped(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return config.ErrHelp
	}
	return err
}

// program is the name under which the user called this program, for commands in messages.
func program() string { return os.Args[0] }
