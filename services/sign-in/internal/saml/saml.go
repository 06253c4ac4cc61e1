// Package saml is the identity provider of SAML 2.0 for the applications of a tenant, without HTTP. The context of each
// call has the tenant (package request); issuer is <public URL>/sign-in/<tenant>.
//
// An operation is mounted so, below <issuer>/saml:
//   - GET /metadata: Metadata, as MetadataType.
//   - GET and POST /sso: SSO with Inbound makes the request of the flow. Then the flow calls Grant, or Refuse. A GET
//     stores nothing. A POST comes from another site, so cookies do not: store the request, and go on with a GET.
//   - GET /start/<application id>: Start makes the request; the query may have RelayState.
//   - GET and POST /slo: SLO reads a LogoutRequest or a LogoutResponse; see there.
//   - Errors of these are *protocol.PageError and protocol.ErrUnknown (pages with status 400), *protocol.AnswerError
//     (its answer goes to the application), and apperr.Unavailable.
//   - When a session ends, Take gives, in the same transaction, what applications must be told. FrontRequest makes the
//     message for each through the browser, one after the other, BackRequest from server to server (package signout).
//     The browser comes back to /slo with a LogoutResponse. The application that has asked for the logout gets
//     AnswerLogout at last.
//   - Due and Expire are the work of two service.DueTasks, for each of Expiring.
package saml

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/singleflight"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Clients finds the applications of the tenant. The error is apperr.NotFound, or Unavailable without an answer.
type Clients interface {
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// Config is what a Provider needs.
type Config struct {
	Store   *docstore.Store // with the Collections
	Clients Clients
	// Groups returns the groups of a user. The error is apperr.Unavailable if nobody answers.
	Groups func(ctx context.Context, userID string) ([]string, error)
	// SigningKey asks questions.SigningKeyOf. The answer is sealed for Recipient, which belongs to this replica.
	SigningKey func(context.Context, questions.SigningKeyQuestion) (questions.SigningKey, error)
	Recipient  *secret.Recipient
	// HasApplications reports whether the tenant has any: nobody else gets a key. If nil, each tenant has some.
	HasApplications func(context.Context) (bool, error)
}

// Provider is the identity provider of all tenants, for one replica. It implements protocol.Protocol.
type Provider struct {
	Config
	tenants *cache.Cache[string, *tenantKey] // by tenant
	own     *cache.Cache[string, *signer]    // of applications, by tenant and certificate
	making  singleflight.Group
	newKey  func() (*rsa.PrivateKey, error)
}

// maxKeys bounds the keys that a replica has in memory, of tenants and of applications. The least used go first.
const maxKeys = 1000

// New makes a provider.
func New(c Config) *Provider {
	return &Provider{
		Config:  c,
		newKey:  func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) },
		tenants: cache.New[string, *tenantKey](maxKeys),
		own:     cache.New[string, *signer](maxKeys),
	}
}

// The addresses below an issuer.
func entityID(issuer string) string { return issuer + "/saml/metadata" }
func ssoURL(issuer string) string   { return issuer + "/saml/sso" }
func sloURL(issuer string) string   { return issuer + "/saml/slo" }

// message is the request of an application, as the flow keeps it.
type message struct {
	ID           string   `json:"id,omitempty"` // empty if the application has not asked
	ACS          string   `json:"acs"`
	RelayState   string   `json:"relay_state,omitempty"`
	NameIDFormat string   `json:"name_id_format,omitempty"`
	Subject      *NameID  `json:"subject,omitempty"`  // who must sign in
	Contexts     []string `json:"contexts,omitempty"` // acceptable classes of the sign-in, the best first
	Level        int      `json:"level,omitempty"`    // the least level of the sign-in
}

// client returns an application that uses SAML.
func (p *Provider) client(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	c, err := p.Clients.Of(ctx, name)
	if apperr.IsNotFound(err) || err == nil && (!c.Enabled || c.SAML == nil) {
		err = protocol.ErrUnknown
	}
	return c, err
}

// read returns the message of a request with its application, once its ACS is known to be still the application's.
func (p *Provider) read(ctx context.Context, r protocol.Request) (message, questions.Client, error) {
	var m message
	if err := json.Unmarshal(r.Message, &m); err != nil {
		return m, questions.Client{}, fmt.Errorf("the request of an application: %w", err)
	}
	c, err := p.client(ctx, questions.ClientName{AppID: r.AppID})
	if err == nil && !isACS(c, m.ACS) {
		err = protocol.ErrUnknown
	}
	return m, c, err
}

// Start makes the request of a sign-in that begins here (SAML profiles §4.1.5), for applications that allow it.
func (p *Provider) Start(ctx context.Context, appID, relayState string) (protocol.Request, error) {
	c, err := p.client(ctx, questions.ClientName{AppID: appID})
	if err != nil {
		return protocol.Request{}, err
	}
	if !c.SignIn.IdPInitiated {
		return protocol.Request{}, page("The application does not allow that a sign-in begins here. Open it itself.")
	}
	if len(relayState) > maxRelayState {
		return protocol.Request{}, page("The RelayState is too long.")
	}
	return requestOf(c, message{ACS: c.SAML.ACSURL, RelayState: relayState})
}

func requestOf(c questions.Client, m message) (protocol.Request, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return protocol.Request{}, fmt.Errorf("the request of an application: %w", err)
	}
	return protocol.Request{Protocol: protocol.SAML, AppID: c.AppID, Message: body}, nil
}

func page(text string) *protocol.PageError { return &protocol.PageError{Message: text} }
