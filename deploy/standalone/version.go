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

// version prints what this program was made of, as JSON.
func version(_ context.Context, _ []string, out, _ io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(telemetry.ReadBuild())
}

// helped makes one error of the two ways to ask for help.
func helped(err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return config.ErrHelp
	}
	return err
}

// program is how the user called this program, for messages to be copied.
func program() string { return os.Args[0] }
