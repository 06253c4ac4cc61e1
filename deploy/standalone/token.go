package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/pkg/auth"
)

// token prints a bearer token of the administrator, alone on the last line of out. It asks the running platform for it,
// as every client does.
func token(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("token", pflag.ContinueOnError)
	flags.SetOutput(notes)
	tenant := flags.String("tenant", "", "the token's tenant (default: the configured one)")
	scope := flags.String("scope", string(auth.PlatformAdmin), "scopes, separated by spaces")
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("token: there is no argument %q; scopes go into one: --scope \"users:read users:write\"",
			flags.Arg(0))
	}
	_, unknown := auth.ParseScopes(*scope)
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("token: there is no scope %q; the scopes are %s", unknown[0], auth.AllScopes)
	case *tenant != "" && !auth.ValidTenant(*tenant):
		return fmt.Errorf("token: --tenant must be 1…63 of a-z, 0-9, _ and -")
	}
	api, err := findAPI(*dataDir, notes)
	if err != nil {
		return err
	}
	given, err := api.token(ctx, *tenant, *scope)
	if err != nil {
		return err
	}
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		until := time.Now().Add(time.Duration(given.ExpiresIn) * time.Second)
		fmt.Fprintf(notes, "scope %s, good until %s:\n", given.Scope, until.Format(time.RFC3339))
	}
	fmt.Fprintln(out, given.AccessToken)
	return nil
}

// keys rotates the signing keys.
func keys(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("keys", pflag.ContinueOnError)
	flags.SetOutput(notes)
	atOnce := flags.Bool("at-once", false,
		"end the older keys and all their tokens now: for keys that others may know")
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() != 1 || flags.Arg(0) != "rotate" {
		return errors.New("keys: the command is: keys rotate")
	}
	api, err := findAPI(*dataDir, notes)
	if err != nil {
		return err
	}
	given, err := api.token(ctx, "", string(auth.PlatformAdmin))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/v1/oauth2/keys/rotate?at_once=%t", api.url, *atOnce), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+given.AccessToken)
	var answer json.RawMessage
	if err := api.ask(r, &answer); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", answer)
	return nil
}

// addressFile has the URL that the running platform listens on.
const addressFile = "api.url"

// api is the running platform, and who its administrator is.
type api struct {
	url, clientID, clientSecret string
	client                      *http.Client
}

// findAPI finds the platform that runs on a data folder. If none does, it takes the public URL and the administrator of
// the settings.
func findAPI(dataDir string, notes io.Writer) (*api, error) {
	s, err := load(nil, notes)
	if err != nil {
		return nil, err
	}
	if dataDir == "" {
		dataDir = s.DataDir
	}
	f, unlock, err := lookAtFolder(dataDir)
	if err == nil { // nobody holds the lock
		unlock()
		if s.PublicURL != "" && s.Bootstrap.ClientID != "" {
			return &api{s.PublicURL, s.Bootstrap.ClientID, s.Bootstrap.ClientSecret.Reveal(), newClient(nil)}, nil
		}
		return nil, fmt.Errorf(
			"no platform runs on the data folder %s: start it first, or choose another folder with IDP_DATA_DIR",
			f.path)
	}
	if !errors.Is(err, errRuns) {
		return nil, err
	}
	address, err := os.ReadFile(f.join(addressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the platform on the data folder %s is starting: try again", f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if s.Bootstrap.ClientID == "" && !exists(f.join(administratorFile)) {
		return nil, errors.New("the administrator is configured elsewhere: " +
			"set IDP_BOOTSTRAP_CLIENT_ID and IDP_BOOTSTRAP_CLIENT_SECRET here too")
	}
	admin, err := f.administrator(s.Bootstrap)
	if err != nil {
		return nil, err
	}
	// The certificate is not checked, because it is for another name than this machine's address. The program that
	// holds the folder's lock is the one that listens there.
	client := newClient(&tls.Config{InsecureSkipVerify: true}) // see above
	return &api{strings.TrimSpace(string(address)), admin.ClientID, admin.ClientSecret.Reveal(), client}, nil
}

func newClient(t *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: t, DisableKeepAlives: true},
		Timeout: 30 * time.Second}
}

// given is what the token endpoint answers.
type given struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
}

// token gets a token by client credentials (RFC 6749 §4.4).
func (a *api) token(ctx context.Context, tenant, scope string) (given, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/oauth2/token",
		strings.NewReader(form.Encode()))
	if err != nil {
		return given{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(a.clientID), url.QueryEscape(a.clientSecret))
	if tenant != "" {
		r.Header.Set(auth.TenantHeader, tenant)
	}
	var answer given
	return answer, a.ask(r, &answer)
}

func (a *api) ask(r *http.Request, into any) error {
	response, err := a.client.Do(r)
	if err != nil {
		return fmt.Errorf("the platform does not answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("the platform does not answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the platform refuses with %d: %s", response.StatusCode, body)
	}
	return json.Unmarshal(body, into)
}
