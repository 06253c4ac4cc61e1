// Package oidc is the provider of OpenID Connect and OAuth 2.0: OpenID Connect Core, Discovery, RP-Initiated, Front-
// and Back-Channel Logout 1.0; RFC 6749, 6750, 7009, 7523, 7636 (S256 only), 7662, 8414, 8628, 8707, 9068, 9126, 9207.
//
// It has no HTTP handlers: it takes what a request has, and returns what the answer has. Contexts carry the tenant
// (package request), and an issuer is <public URL>/sign-in/<tenant>. Package httpapi mounts, below the issuer:
//
//	GET, POST /authorize            Authorize. *protocol.PageError: a page with status 400. *protocol.AnswerError: its
//	                                Answer. apperr.Unavailable: the page with status 503. Else the flow runs, and ends
//	                                with Grant or Refuse.
//	POST /par                       Push, status 201
//	POST /token                     Token
//	GET, POST /userinfo             UserInfo, with the token of the Authorization header or, for a form, access_token
//	POST /introspect, /revoke       Introspect, Revoke (status 200 with an empty body)
//	POST /device_authorization      Device
//	GET, POST /device               a page: the person enters a user code, or sees that of the query and confirms it;
//	                                DeviceRequest; then the flow runs, and Grant and Refuse lead back with done=1|0
//	GET, POST /logout               Logout
//	GET /jwks                       Keys.JWKS
//	GET /.well-known/openid-configuration, and /.well-known/oauth-authorization-server/sign-in/<tenant>: Discovery
//
// Errors of the endpoints that applications call are *apperr.Error with codes of OAuth, which package rest writes as
// bodies of RFC 6749 §5.2. Answers of /token, /par, /introspect, /userinfo and /device_authorization must not be cached
// (Cache-Control: no-store). Pages of other origins call them in a browser, without cookies: MayRead. /jwks and the
// discovery documents are for all origins.
//
// Codes, refresh tokens, pushed requests and assertions are used once in the store, by any replica.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/ratelimit"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/backchannel"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Deps are what the provider needs. All are required unless they say otherwise.
type Deps struct {
	Store *docstore.Store
	Keys  *keys.Keys
	// Clients finds applications of the context's tenant: *client.Clients.
	Clients Clients

	// Person returns a user as of now, for a session, or for none if sessionID is "". The error is apperr.NotFound if
	// there is no such user or session, or the session is not the user's, and Forbidden if the user may not sign in: is
	// disabled, resigned or locked. Of the person only UserID and User are used.
	Person func(ctx context.Context, userID, sessionID string) (protocol.Person, error)
	// Exist reports whether the factors and links behind a user's proofs are still there.
	Exist func(ctx context.Context, userID string, proofs []proof.Proof) (bool, error)
	// MayUse returns nil if a user may use an application. The error is apperr.Forbidden, or Unavailable if nobody
	// answers.
	MayUse func(ctx context.Context, userID, appID string) error
	// Groups returns the groups of a user. The error is apperr.Unavailable if nobody answers.
	Groups func(ctx context.Context, userID string) ([]string, error)
	// Consent returns the id of the consent by which a person agrees to all scopes for an application; "" if there is
	// none. A consent that is given again after it was withdrawn has another id.
	Consent func(ctx context.Context, userID, appID string, scopes []string) (id string, err error)
	// Holds returns those scopes of the platform for which a user has a rule in an application. The error is
	// apperr.Unavailable. Without it no application gets tokens for the platform's API.
	Holds func(ctx context.Context, userID, appID string, scopes []string) ([]string, error)

	// HasApplications reports whether the tenant has any: else there is no provider. If nil, each tenant has some.
	HasApplications func(context.Context) (bool, error)

	// Seed is 32 secret bytes that never change (service.Deps.DataKey), from which refresh tokens are made.
	Seed []byte
	// PublicURL is the platform's, which names its API as a resource.
	PublicURL string
	// AccessTTL is how long access tokens are valid; 0 means 10 min.
	AccessTTL time.Duration
	// MaxFamilies bounds the token families of a user: a new one ends the least used ones; 0 means 500.
	MaxFamilies int
	// HTTP fetches key sets of applications and sends logout tokens: the client for requests that leave the platform.
	HTTP    *http.Client
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Provider is the provider, for one replica and all tenants. It implements protocol.Protocol.
type Provider struct {
	Deps
	auth    *authenticator
	logouts *backchannel.Sender
	begins  *ratelimit.Buckets[string] // by address
	exists  *cache.Cache[string, bool] // the tenants that had applications when they were asked about
}

var _ protocol.Protocol = (*Provider)(nil)

// accessTTL is how long access tokens are valid, if the configuration does not say.
const accessTTL = 10 * time.Minute

// maxFamilies is far above what people have: one for each sign-in of each application on each of their devices.
const maxFamilies = 500

// New makes a provider.
func New(d Deps) *Provider {
	if d.AccessTTL == 0 {
		d.AccessTTL = accessTTL
	}
	if d.MaxFamilies == 0 {
		d.MaxFamilies = maxFamilies
	}
	return &Provider{d, newAuthenticator(d.Store, d.Clients, d.HTTP, d.Log), backchannel.New(backchannel.Deps{
		Store: d.Store, Keys: d.Keys, Clients: d.Clients, HTTP: d.HTTP, Log: d.Log, Metrics: d.Metrics,
		Algorithm: Algorithm,
	}), ratelimit.New[string](beginsPerSecond, beginsAtOnce, maxAddresses), cache.New[string, bool](maxTenants)}
}

const maxTenants = 100_000

// Exists makes sure that the tenant has a provider. Only a tenant with applications has one, so that people notice a
// mistyped tenant. The error is apperr.NotFound or Unavailable.
func (p *Provider) Exists(ctx context.Context) error {
	tenant := request.Tenant(ctx)
	if _, known := p.exists.Get(tenant); known || p.HasApplications == nil {
		return nil
	}
	has, err := p.HasApplications(ctx)
	if err == nil && !has {
		err = apperr.New(apperr.NotFound, "the tenant has no applications")
	}
	if err == nil {
		p.exists.Set(tenant, true)
	}
	return err
}

// JWKS returns the tenant's key set. It first makes the keys for access tokens, and for ID tokens by the default
// algorithm, because proxies keep the answer for minutes. The error is one of Exists.
func (p *Provider) JWKS(ctx context.Context) (keys.JWKS, error) {
	err := p.Exists(ctx)
	if err == nil {
		err = p.Keys.Prepare(docstore.WithoutCommitHook(ctx), keys.ES256, defaultAlgorithm)
	}
	if err != nil {
		return keys.JWKS{}, err
	}
	return p.Keys.JWKS(ctx)
}

// The pushed requests and device codes that an address may have stored without a secret.
const (
	beginsAtOnce    = 60
	beginsPerSecond = 1
	maxAddresses    = 100_000
)

// mayStore bounds what is stored for applications that do not authenticate: anybody can send their requests. The error
// is apperr.RateLimited. Loopback addresses are a proxy on the same machine, or its owner.
func (p *Provider) mayStore(ctx context.Context, client questions.Client, r TokenRequest) error {
	addr, err := netip.ParseAddr(r.Address)
	if client.Category == questions.StandardWeb || err != nil || addr.IsLoopback() {
		return nil
	}
	wait := p.begins.Take(request.Tenant(ctx) + " " + ratelimit.Network(addr).String())
	if wait == 0 {
		return nil
	}
	full := apperr.New(apperr.RateLimited, "there were too many requests of this kind from this address")
	full.RetryAfter = wait
	return full
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return slices.Concat(keys.Collections(), clientauth.Collections(),
		backchannel.Collections(),
		[]*docstore.Def{pushedRequests.Def(), codes.Def(), families.Def(), grantRecords.Def(), devices.Def()})
}

// Work is what falls due.
func (p *Provider) Work() []service.DueWork {
	return []service.DueWork{
		p.Keys.Rotation(), p.auth.Forgetting(), forgetting(p.Store, pushedRequests, "forget pushed requests"),
		forgetting(p.Store, codes, "forget codes"), forgetting(p.Store, devices, "forget device codes"),
		{
			Name: "end token families", Every: 10 * time.Second, Due: families.Due, AtOnce: 100,
			Do: func(ctx context.Context, id string) error {
				return endFamilies(ctx, p.Store, []string{id}, grantExpired)
			},
			DoAll: func(ctx context.Context, ids []string) error {
				return endFamilies(ctx, p.Store, ids, grantExpired)
			},
		},
	}
}

// Logouts is the task that tells applications of logouts.
func (p *Provider) Logouts() service.Task { return service.QueueTask(p.logouts.Name, p.logouts) }

// TellLogout stores, in the transaction that ends a session or its part in some applications, that these applications
// are told (OpenID Connect Back-Channel Logout 1.0). Those without a back channel are left out later.
func TellLogout(ctx context.Context, tx *docstore.Tx, e backchannel.Ended) error {
	return backchannel.Tell(ctx, tx, e)
}

// forgetting is the work of deleting documents whose time is over.
func forgetting[T any](store *docstore.Store, c *docstore.Collection[T], name string) service.DueWork {
	return service.DueWork{
		Name: name, Every: 10 * time.Second, Due: c.Due, AtOnce: 100,
		Do:    func(ctx context.Context, id string) error { return forget(ctx, store, c, []string{id}) },
		DoAll: func(ctx context.Context, ids []string) error { return forget(ctx, store, c, ids) },
	}
}

func forget[T any](ctx context.Context, store *docstore.Store, c *docstore.Collection[T], ids []string) error {
	return docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		found, err := c.LoadMany(ctx, tx, ids)
		for _, doc := range found {
			if err == nil {
				_, err = c.Delete(ctx, tx, doc)
			}
		}
		return err
	})
}

// client returns an enabled application that uses OpenID Connect. The error is protocol.ErrUnknown for others, or
// apperr.Unavailable.
func (p *Provider) client(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	c, err := p.Clients.Of(ctx, name)
	if err == nil && (!c.Enabled || c.OIDC == nil) || isNotFound(err) {
		return c, protocol.ErrUnknown
	}
	return c, err
}

// tokenBytes is the length of random codes: 256 bits.
const tokenBytes = 32

// newToken makes a random text, and the id under which it is stored: its SHA-256, so that the store does not have it.
func newToken() (text, id string) {
	text = secret.Token(tokenBytes)
	return text, hashOf(text)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
