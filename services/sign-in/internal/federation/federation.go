// Package federation signs people in at other providers: those of the tenant's connections.
//
//	flow                    provider
//	  │ Begin ── address ──▶ │  the person signs in there
//	  │ ◀──── callback ───── │
//	  │ End ─── the code ──▶ │
//	  ▼ Identity
//
// What Begin keeps stays with the flow, in the browser that has begun: an answer for another flow, another browser or
// another connection is good for nothing. Who the identity is here, the users service knows.
package federation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/questions/directory"
)

var (
	// ErrAway is in the chain of every error that means: the provider does not answer.
	ErrAway = errors.New("the provider does not answer")
	// ErrRefused is in the chain of every error that means: what the provider has answered is good for nothing, or the
	// connection is not set up as the provider wants it. What it wraps is for administrators.
	ErrRefused = errors.New("the provider's answer cannot be used")
	// ErrClient is in the chain of an ErrRefused that means: the provider does not take the connection's client or its
	// secret, whatever the person has brought.
	ErrClient = errors.New("the provider does not know the client")
)

const (
	// patience is how long a page waits for a provider in all.
	patience = 10 * time.Second
	// reread is how long a provider's metadata is used.
	reread = 10 * time.Minute
	// rest is how long a provider is not asked again that has answered nothing good.
	rest = 5 * time.Second
	// maxProviders bounds the metadata that a replica keeps. The least used is dropped first.
	maxProviders = 1000
)

// Config is what Connections need.
type Config struct {
	Bus  *bus.Bus
	HTTP *http.Client // reaches providers
	// Dialer reaches directories.
	Dialer *net.Dialer
	Now    func() clock.Time
}

// Connections sign people in through the connections of all tenants. They are safe for concurrent use.
type Connections struct {
	Config
	recipient *secret.Recipient
	known     *cache.Cache[string, discovered] // by issuer
}

// discovered is a provider's metadata, or why there is none, and when it was asked for.
type discovered struct {
	provider *oidc.Provider
	failure  error
	read     clock.Time
}

// New makes Connections.
func New(c Config) (*Connections, error) {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails (crypto/rand)
	recipient, err := secret.NewRecipient(seed)
	if err != nil {
		return nil, err
	}
	return &Connections{c, recipient, cache.New[string, discovered](maxProviders)}, nil
}

// Supports reports whether people can sign in through connections to a provider.
func Supports(providerCode string) bool {
	return slices.Contains(questions.SignInProviders, providerCode)
}

// Request is a sign-in that is to begin at a provider.
type Request struct {
	Callback  string // the address that the person comes back to
	State     string // comes back with the person
	Fresh     bool   // the provider must ask the person, whatever session they have there
	MaxAge    *int64 // how many seconds ago the person may have signed in there; nil: any
	LoginHint string
	Locales   []string
}

// Kept is what stays with the flow until the person comes back. Its JSON form is kept compatible.
type Kept struct {
	Callback string     `json:"callback"`
	Nonce    string     `json:"nonce,omitempty"`
	Verifier string     `json:"verifier"` // PKCE
	Oldest   clock.Time `json:"oldest,omitzero"`
	Fresh    bool       `json:"fresh,omitempty"` // the provider had to ask the person
}

// Answer is what the person has brought back.
type Answer struct {
	Code   string
	Issuer string // RFC 9207; empty if it came without
	// AllClaims asks for whatever the provider tells of the person, which may cost one more request.
	AllClaims bool
}

// Identity is who a provider has signed in.
type Identity struct {
	Subject     string
	Subject2    string // a further marker, such as one that is the same in all applications of a company
	Username    string
	DisplayName string
	Email       string   // one that the provider says it has verified; empty without one
	Session     string   // at the provider (sid); empty if it tells none
	TwoFactors  bool     // the provider says that it has asked for two
	AMR         []string // as the provider says (RFC 8176)
	// Claims are all that the provider has told, a JSON object: the claims of an ID token and, with Answer.AllClaims,
	// of userinfo. Of other providers they are sub, name, preferred_username and email. An address that the provider
	// has not verified is missing.
	Claims json.RawMessage
}

// maxSubject bounds an identity's subject, in characters: OpenID Connect Core §2 allows 255.
const maxSubject = 256

// Begin returns the address at which a person signs in through a connection, and what End needs. The error is
// ErrAway, ErrRefused, apperr.NotFound (no such connection is enabled) or Unavailable.
func (c *Connections) Begin(ctx context.Context, connectionID string, r Request) (string, Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := c.client(ctx, connectionID)
	if err != nil {
		return "", Kept{}, err
	}
	to, kept := client.begin(r, c.Now())
	return to, kept, nil
}

// End returns who has signed in. The error is as Begin's.
func (c *Connections) End(ctx context.Context, connectionID string, kept Kept, a Answer) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := c.client(ctx, connectionID)
	if err != nil {
		return Identity{}, err
	}
	who, err := client.end(ctx, kept, a)
	who.Username, who.DisplayName = cut(who.Username), cut(who.DisplayName)
	if err == nil && who.Claims == nil {
		who.Claims, err = who.claims()
	}
	return who, err
}

// LoggedOut is who has signed out at a provider: of the session there, if it is not empty, and otherwise of all that
// the subject had. Subject may be empty if Session is not.
type LoggedOut struct{ ProviderCode, Subject, Session string }

// Logout reads a logout token of the provider of a connection (OpenID Connect Back-Channel Logout 1.0 §2.6). The error
// is as Begin's.
func (c *Connections) Logout(ctx context.Context, connectionID, token string) (LoggedOut, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := c.client(ctx, connectionID)
	if err != nil {
		return LoggedOut{}, err
	}
	provider, ok := client.(*oidcClient)
	if !ok {
		return LoggedOut{}, refused("the provider of the connection has no logout tokens")
	}
	return provider.logout(ctx, token)
}

// cut is a name as far as pages and records have room for it.
func cut(name string) string {
	if runes := []rune(name); len(runes) > maxSubject {
		return string(runes[:maxSubject])
	}
	return name
}

func (i *Identity) claims() (json.RawMessage, error) {
	told := map[string]string{}
	for name, value := range map[string]string{
		"sub": i.Subject, "name": i.DisplayName, "preferred_username": i.Username, "email": i.Email,
	} {
		if value != "" {
			told[name] = value
		}
	}
	return json.Marshal(told)
}

// client is this platform as a client of a provider, for one connection.
type client interface {
	// begin is Begin.
	begin(r Request, now clock.Time) (string, Kept)
	// end is End. The error is ErrAway or ErrRefused.
	end(ctx context.Context, kept Kept, a Answer) (Identity, error)
}

// client finds the provider of a connection.
func (c *Connections) client(ctx context.Context, connectionID string) (client, error) {
	code, fields, err := c.settings(ctx, connectionID)
	if err != nil {
		return nil, err
	}
	if !Supports(code) {
		return nil, refused("nobody can sign in through the provider %s", code)
	}
	if IsDirectory(code) {
		return nil, refused("nobody goes to a directory to sign in")
	}
	if code == "cas" {
		return &casClient{fields, caller{c.HTTP}}, nil
	}
	if d, ok := dialects[code]; ok {
		return &oauthClient{d, fields, caller{c.HTTP}}, nil
	}
	return c.oidcClient(ctx, code, fields)
}

// fields are the members of config_fields of all providers.
type fields struct {
	Issuer               string
	TenantID             string `json:"TenantId"`
	HostedDomain         string
	ClientID             string `json:"ClientId"`
	ClientSecret         string
	ClientAuthentication string
	Scopes               []string
	EnterpriseURL        string `json:"EnterpriseUrl"`
	AppID                string `json:"AppId"`
	AppSecret            string
	CorpID               string `json:"CorpId"`
	CorpSecret           string
	AgentID              string `json:"AgentId"`

	// Of CAS.
	ServerURL string `json:"ServerUrl"`
	Version   string
	// Of directories.
	directory.Settings
	URL        string            `json:"Url"`
	BaseDN     string            `json:"BaseDn"`
	UserFilter string            `json:"UserFilter"`
	Attributes map[string]string `json:"Attributes"` // by the member of a user
	Domain     string            `json:"Domain"`
}

// settings returns a connection's provider and its config_fields with the secrets.
func (c *Connections) settings(ctx context.Context, connectionID string) (provider string, fields fields, err error) {
	sealed, err := questions.SettingsOfConnection.Ask(ctx, c.Bus, questions.SettingsQuestion{
		ConnectionID: connectionID, To: c.recipient.Key(),
	})
	if err != nil {
		return "", fields, err
	}
	text, err := c.recipient.Open(sealed.Sealed, questions.ForSettings)
	if err != nil {
		return "", fields, err
	}
	return sealed.ProviderCode, fields, json.Unmarshal([]byte(text.Reveal()), &fields)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}
