package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/pkg/auth"
)

// maxTTL bounds tokens made by hand: nothing takes them back before they end.
const maxTTL = 30 * 24 * time.Hour

// token prints a bearer token, alone on the last line of out. It needs the data folder, not the running platform.
func token(_ context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("token", pflag.ContinueOnError)
	flags.SetOutput(notes)
	tenant := flags.String("tenant", "", "the token's tenant (default: the configured one)")
	scope := flags.String("scope", string(auth.PlatformAdmin), "scopes, separated by spaces")
	ttl := flags.Duration("ttl", time.Hour, "how long the token is good")
	subject := flags.String("subject", "admin", "who the token says is asking")
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("token: there is no argument %q; scopes go into one: --scope \"users:read users:write\"", flags.Arg(0))
	}
	s, err := load(nil, notes)
	if err != nil {
		return err
	}
	scopes, unknown := auth.ParseScopes(*scope)
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("token: there is no scope %q; the scopes are %s", unknown[0], auth.AllScopes)
	case *ttl <= 0 || *ttl > maxTTL:
		return fmt.Errorf("token: --ttl must lie between 1s and %s", maxTTL)
	case *tenant != "" && !auth.ValidTenant(*tenant):
		return fmt.Errorf("token: --tenant must be 1…63 of a-z, 0-9, _ and -")
	}
	if *tenant == "" {
		*tenant = s.Tenant
	}
	if *dataDir == "" {
		*dataDir = s.DataDir
	}
	f, err := openFolder(*dataDir)
	if err != nil {
		return err
	}
	keys, err := f.keyring(s.EncryptionKeys)
	if err != nil {
		return err
	}
	signer, err := f.signer(keys)
	if err != nil {
		return err
	}
	text, err := signer.Mint(auth.Claims{Subject: *subject, ClientID: *subject, Tenant: *tenant, Scopes: scopes, TTL: *ttl})
	if err != nil {
		return err
	}
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(notes, "tenant %s, scope %s, good until %s:\n", *tenant, scopes, time.Now().Add(*ttl).Format(time.RFC3339))
	}
	fmt.Fprintln(out, text)
	return nil
}
