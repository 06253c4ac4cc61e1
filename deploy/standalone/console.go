package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/pflag"
)

// link prints a link that signs in to the running platform's console as its administrator, once, within two minutes.
func link(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("console", pflag.ContinueOnError)
	flags.SetOutput(notes)
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("console: there is no argument %q", flags.Arg(0))
	}
	s, err := load(nil, notes)
	if err != nil {
		return err
	}
	api, err := findAPI(*dataDir, notes)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, api.url+"/console/~/links", nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(url.QueryEscape(api.clientID), url.QueryEscape(api.clientSecret))
	var answer struct {
		Path string `json:"path"`
	}
	if err := api.ask(r, &answer); err != nil {
		return err
	}
	fmt.Fprintln(out, cmp.Or(s.PublicURL, api.url)+answer.Path)
	return nil
}
