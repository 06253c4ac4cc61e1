package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Client returns the client of the context that the flags, the variables or the file name.
func (s *Session) Client() (*idp.Client, error) {
	if s.client != nil {
		return s.client, nil
	}
	if err := s.choose(); err != nil {
		return nil, err
	}
	c := s.context
	if err := CheckURL(c.URL); c.DataDir == "" && err != nil {
		return nil, err
	}
	source, transport, err := s.credential(c)
	if err != nil {
		return nil, err
	}
	s.transport = s.logged(transport)
	s.client, err = idp.New(idp.Config{
		URL: c.URL, Tokens: source, Tenant: s.TenantName(), HTTP: &http.Client{Transport: s.knownTenant(s.transport)},
		UserAgent: "idp-cli", MaxWait: s.wait(), Attempts: manyTimes, Timeout: s.Timeout,
	})
	return s.client, err
}

// wait is --wait as the SDK takes it, to which 0 means the usual time.
func (s *Session) wait() time.Duration {
	if s.Wait == 0 {
		return -1
	}
	return s.Wait
}

// manyTimes leaves it to --wait how often a request is sent.
const manyTimes = 1_000_000

// CheckURL returns an error for a server that is not written as a URL. It does not guess the scheme, because a wrong
// guess sends the credential to another server.
func CheckURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return failure.Usagef("the platform's URL must begin with https:// (or http://), and have a host")
	}
	return nil
}

// Glance asks for a page that needs no token, such as /readyz, once, and returns the answer whatever its status is. The
// client must have been made.
func (s *Session) Glance(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.context.URL, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	return s.transport.RoundTrip(r)
}

// choose finds the context: --context, then the variables, then the current one.
func (s *Session) choose() error {
	if s.context != nil {
		return nil
	}
	name := cmp.Or(s.Options.Context, s.Getenv("IDPCLI_CONTEXT"))
	if address := s.Getenv("IDPCLI_URL"); address != "" && name == "" {
		s.context = &config.Context{
			URL: address, Tenant: s.Getenv("IDPCLI_TENANT"), ClientID: s.Getenv("IDPCLI_CLIENT_ID"),
		}
		return nil
	}
	file, err := config.Load(s.ConfigPath)
	if err != nil {
		return err
	}
	s.name, s.context, err = file.Find(name)
	if err == nil && s.Tenant == "" {
		s.Tenant = s.Getenv("IDPCLI_TENANT")
	}
	return err
}

// Use makes the session go somewhere else than the file and the variables say: idp login tries a context before it is
// kept.
func (s *Session) Use(name string, c *config.Context) {
	s.name, s.context, s.client, s.given = name, c, nil, true
}

// ContextName returns the name of the context; "" if it is made of variables.
func (s *Session) ContextName() (string, *config.Context, error) {
	err := s.choose()
	return s.name, s.context, err
}

// connections keeps a connection for each request that is sent at the same time as others: net/http keeps two.
var connections = func() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	return transport
}()

// credential makes the token source of a context, and the transport that reaches its server.
func (s *Session) credential(c *config.Context) (idp.TokenSource, http.RoundTripper, error) {
	transport := http.RoundTripper(connections)
	if token := s.Getenv("IDPCLI_TOKEN"); token != "" && s.Options.Context == "" && !s.given {
		return idp.StaticToken(strings.TrimSpace(token)), transport, nil
	}
	if c.OIDC != nil {
		return s.personTokens(s.name, c.OIDC), transport, nil
	}
	credentials := idp.ClientCredentials{
		URL: c.URL, ClientID: c.ClientID, Secret: c.ClientSecret, Audience: c.Audience, Tenant: s.Tenant,
		MaxWait: s.wait(), Attempts: manyTimes,
	}
	if c.DataDir != "" {
		var err error
		if credentials.URL, credentials.ClientID, credentials.Secret, err = DataDir(c.DataDir); err != nil {
			return nil, nil, err
		}
		c.URL = credentials.URL // it changes when the platform listens elsewhere
		transport = trustingItself(c.URL)
	}
	credentials.HTTP = &http.Client{Transport: s.logged(transport), Timeout: 30 * time.Second}
	if s.name != "" && !s.given { // idp login tries the credential itself
		source := func() (*idp.CachedTokens, error) { return s.tokens(c, credentials) }
		return &keptTokens{session: s, file: s.tokenFile(credentials), source: source}, transport, nil
	}
	source, err := s.tokens(c, credentials)
	if err != nil {
		return nil, nil, err
	}
	return source, transport, nil
}

// tokens makes the token source of a context that signs in with a secret or a key.
func (s *Session) tokens(c *config.Context, credentials idp.ClientCredentials) (*idp.CachedTokens, error) {
	var err error
	switch {
	case c.DataDir != "":
	case c.KeyFile != "":
		credentials.Key, err = readKey(c.KeyFile)
	case len(c.CredentialCommand) > 0:
		credentials.Secret, err = s.runCommand(c.CredentialCommand)
	case s.name == "":
		credentials.Secret, err = s.secretOfVariable()
	}
	if err != nil {
		return nil, err
	}
	source, err := credentials.Source()
	if err != nil {
		return nil, failure.NotSignedInf("%w: idp login %s", err, c.URL)
	}
	return source, nil
}

func (s *Session) secretOfVariable() (string, error) {
	file := s.Getenv("IDPCLI_CLIENT_SECRET_FILE")
	if file == "" {
		return "", failure.NotSignedInf(
			"IDPCLI_URL needs IDPCLI_TOKEN, or IDPCLI_CLIENT_ID and IDPCLI_CLIENT_SECRET_FILE")
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// DataDir reads where the one program listens, and its administrator, from its data folder.
func DataDir(folder string) (address, clientID, secret string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "api.url"))
	if err != nil {
		return "", "", "", failure.NotSignedInf("%w: no platform has run on this data folder, or it is not yours", err)
	}
	administrator, err := os.ReadFile(filepath.Join(folder, "administrator.json"))
	if err != nil {
		return "", "", "", failure.NotSignedInf("%w: the administrator is configured elsewhere: idp login URL", err)
	}
	var kept struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if json.Unmarshal(administrator, &kept) != nil {
		return "", "", "", errors.New("administrator.json is damaged")
	}
	return strings.TrimSpace(string(text)), kept.ClientID, kept.ClientSecret, nil
}

// trustingItself does not check the certificate of this very machine, which is for the name that others use.
func trustingItself(address string) http.RoundTripper {
	parsed, err := url.Parse(address)
	if err != nil {
		return connections
	}
	if ip := net.ParseIP(parsed.Hostname()); ip == nil || !ip.IsLoopback() {
		return connections
	}
	transport := connections.Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // see above
	return transport
}

func readKey(file string) (*idp.SigningKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, failure.NotSignedInf("the key: %w", err)
	}
	key, err := idp.ParseSigningKey(text)
	if err != nil {
		return nil, failure.Usagef("%s: %w", file, err)
	}
	return key, nil
}

// runCommand runs the command of a vault; what it says to people reaches them, and what they type reaches it.
func (s *Session) runCommand(command []string) (string, error) {
	ctx, cancel := AwaitedBy(context.Background(), cmp.Or(s.Hasty, time.Minute))
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = &out, s.Err
	if s.InIsTerminal { // otherwise it is the data of the command
		c.Stdin = os.Stdin
	}
	if err := c.Run(); err != nil {
		return "", failure.NotSignedInf("credential_command %s: %w", command[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}

// logged shows requests with -v, without secrets.
func (s *Session) logged(next http.RoundTripper) http.RoundTripper {
	if !s.Verbose {
		return next
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		fmt.Fprintf(s.Err, "> %s %s\n", r.Method, r.URL)
		for _, name := range []string{"X-Tenant-Id", "If-Match", "Idempotency-Key", "Content-Type", "Last-Event-Id"} {
			if value := r.Header.Get(name); value != "" {
				fmt.Fprintf(s.Err, ">   %s: %s\n", name, value)
			}
		}
		response, err := next.RoundTrip(r)
		took := time.Since(began).Round(time.Millisecond)
		if err != nil {
			fmt.Fprintf(s.Err, "< %v (%v)\n", err, took)
			return nil, err
		}
		fmt.Fprintf(s.Err, "< %s (%v) request %s\n", response.Status, took, response.Header.Get("X-Request-Id"))
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
