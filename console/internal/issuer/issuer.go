// Package issuer signs people in at an OIDC issuer (OpenID Connect Core, authorization code flow with PKCE), renews
// their tokens and ends them. It keeps nothing about a person.
package issuer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/idplatform/idplatform/pkg/outbound"
)

const (
	// requestTimeout bounds each request to the issuer.
	requestTimeout = 10 * time.Second
	// discoverEvery is how long a discovery document is used, retryAfter how long a failure is.
	discoverEvery = time.Hour
	retryAfter    = 5 * time.Second
)

// ErrAway means that the issuer does not answer, or answers that it cannot.
var ErrAway = errors.New("console: the issuer does not answer")

// Config says who the issuer is, and as whom the console is known to it.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string            // empty: a public client
	Scopes       []string          // beside openid
	Params       map[string]string // further parameters of the authorization request
}

// Issuer is the issuer. It is safe for concurrent use.
type Issuer struct {
	config Config
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	found *metadata // nil before the issuer has answered once
	next  time.Time // when it is asked again
}

// metadata is what the issuer tells about itself (OpenID Connect Discovery, RP-Initiated Logout).
type metadata struct {
	provider   *oidc.Provider
	Revocation string   `json:"revocation_endpoint"`
	EndSession string   `json:"end_session_endpoint"`
	Methods    []string `json:"token_endpoint_auth_methods_supported"`
}

// New makes an issuer, which is asked when it is first needed: it need not be there when the console starts.
func New(config Config, client *http.Client, log *slog.Logger, now func() time.Time) *Issuer {
	bounded := *client
	bounded.Timeout = requestTimeout
	return &Issuer{config: config, client: &bounded, log: log.With("issuer", config.Issuer), now: now}
}

// Name is the issuer's identifier.
func (i *Issuer) Name() string { return i.config.Issuer }

// context gives the libraries the client.
func (i *Issuer) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, i.client)
}

// discover returns what the issuer tells about itself. While it does not answer, what it told before goes on.
func (i *Issuer) discover(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if now.Before(i.next) {
		if i.found == nil {
			return nil, ErrAway
		}
		return i.found, nil
	}
	found, err := i.ask(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // the person has left; that says nothing about the issuer
	}
	if err != nil {
		i.log.Warn("the issuer's discovery document cannot be read", "error", brief(err))
		i.next = now.Add(retryAfter)
		if i.found == nil {
			return nil, ErrAway
		}
		return i.found, nil
	}
	i.found, i.next = found, now.Add(discoverEvery)
	return found, nil
}

func (i *Issuer) ask(ctx context.Context) (*metadata, error) {
	provider, err := oidc.NewProvider(i.context(ctx), i.config.Issuer)
	if err != nil {
		return nil, err
	}
	m := &metadata{provider: provider}
	if err := provider.Claims(m); err != nil {
		return nil, err
	}
	for _, endpoint := range []string{provider.Endpoint().AuthURL, provider.Endpoint().TokenURL} {
		if !isWeb(endpoint) {
			return nil, errors.New("it has no authorization_endpoint or token_endpoint")
		}
	}
	for _, endpoint := range []*string{&m.Revocation, &m.EndSession} {
		if !isWeb(*endpoint) {
			*endpoint = ""
		}
	}
	return m, nil
}

// isWeb reports whether an endpoint is an address that a browser or a client may be sent to.
func isWeb(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func (i *Issuer) oauth(m *metadata, callback string) *oauth2.Config {
	endpoint := m.provider.Endpoint()
	// Not found out by trying: a code is good for one attempt.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if i.config.ClientSecret == "" || len(m.Methods) > 0 && !slices.Contains(m.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: i.config.ClientID, ClientSecret: i.config.ClientSecret, Endpoint: endpoint, RedirectURL: callback,
		Scopes: append([]string{oidc.ScopeOpenID}, i.config.Scopes...),
	}
}

// maxReason bounds what of an error is logged: the libraries quote whole answers.
const maxReason = 200

// brief is an error in a few words, without the URL.
func brief(err error) string {
	text := []rune(outbound.Cause(err).Error())
	return string(text[:min(len(text), maxReason)])
}
