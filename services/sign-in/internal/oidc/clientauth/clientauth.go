// Package clientauth finds out which application sends a request to an endpoint of the provider: by a client secret
// (client_secret_basic and client_secret_post, RFC 6749 §2.3.1) or an assertion that it has signed (private_key_jwt,
// RFC 7523 §2.2), which standard web applications must have, or by its client id alone for those that can keep no
// secret.
package clientauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// The categories of applications (contract of the applications service).
const (
	StandardWeb    = "1"
	SinglePage     = "2"
	ClientProgram  = "3"
	BackendService = "4"
)

// Methods are the names of the methods (RFC 8414 §2).
var Methods = []string{secretBasic, secretPost, privateKeyJWT, none}

const (
	secretBasic   = "client_secret_basic"
	secretPost    = "client_secret_post"
	privateKeyJWT = "private_key_jwt"
	none          = "none"
)

// AssertionType is the only valid value of client_assertion_type.
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Credentials are the parts of a request by which a client can authenticate.
type Credentials struct {
	Authorization []string // every header of that name
	ClientID      string
	ClientSecret  string
	AssertionType string
	Assertion     string
}

// Of takes the credentials from a form. headers are all Authorization headers.
func Of(form url.Values, headers []string) Credentials {
	return Credentials{
		Authorization: headers, ClientID: form.Get("client_id"), ClientSecret: form.Get("client_secret"),
		AssertionType: form.Get("client_assertion_type"), Assertion: form.Get("client_assertion"),
	}
}

// Clients finds applications of the context's tenant.
type Clients interface {
	// Of returns an application. The error is apperr.NotFound or Unavailable.
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// Authenticator authenticates clients.
type Authenticator struct {
	store   *docstore.Store
	clients Clients
	http    *http.Client
	log     *slog.Logger
	keys    *cache.Cache[string, *clientKeys]
}

// New makes an authenticator. Key sets at jwks_uri are fetched with the HTTP client.
func New(store *docstore.Store, clients Clients, client *http.Client, log *slog.Logger) *Authenticator {
	return &Authenticator{store, clients, client, log, cache.New[string, *clientKeys](maxClientKeys)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{usedAssertions.Def()} }

// errUnproven is the error for every invalid credential: nobody learns whether it was the id or the secret.
var errUnproven = apperr.New(apperr.Unauthenticated, "the client's credential is not valid")

// Authenticate returns the enabled application that sends a request to an endpoint of an issuer. audiences are the
// values of aud by which an assertion may name the endpoint. The error is apperr.Unauthenticated (invalid_client) for
// an invalid credential, InvalidParameters for a malformed one, with the code unauthorized_client for a backend
// service, or Unavailable.
func (a *Authenticator) Authenticate(ctx context.Context, audiences []string, c Credentials) (questions.Client, error) {
	p, err := c.proof()
	if err != nil {
		return questions.Client{}, err
	}
	client, err := a.clients.Of(ctx, questions.ClientName{ClientID: p.clientID})
	if apperr.IsNotFound(err) {
		return questions.Client{}, errUnproven
	}
	if err != nil {
		return questions.Client{}, err
	}
	if err := a.prove(ctx, client, audiences, p); err != nil {
		return questions.Client{}, err
	}
	if !client.Enabled || client.OIDC == nil {
		return questions.Client{}, errUnproven
	}
	return client, nil
}

func (a *Authenticator) prove(ctx context.Context, client questions.Client, audiences []string, p proof) error {
	switch {
	case client.Category == BackendService:
		return apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"backend services get their tokens at /v1/oauth2/token")
	case client.Category != StandardWeb:
		if p.method != none {
			return errUnproven // it has no secret, and nobody must believe that it has
		}
		return nil
	case p.method == privateKeyJWT:
		return a.checkAssertion(ctx, client, audiences, p.assertion)
	case p.method != none && hasSecret(client, p.secret, a.store.Now()):
		return nil
	}
	return errUnproven
}

// hasSecret compares with every secret, so that the time does not tell which one matches.
func hasSecret(c questions.Client, value string, now clock.Time) bool {
	sum := sha256.Sum256([]byte(value))
	given, found := hex.EncodeToString(sum[:]), false
	for _, s := range c.Secrets {
		good := s.TimeExpires.IsZero() || now.Before(s.TimeExpires)
		found = subtle.ConstantTimeCompare([]byte(s.SHA256), []byte(given)) == 1 && good || found
	}
	return found
}

// proof is the client id and the evidence that a request contains.
type proof struct {
	method    string
	clientID  string
	secret    string
	assertion string
}

// proof returns the proof of the one method that the request uses.
func (c Credentials) proof() (proof, error) {
	var used []proof
	if len(c.Authorization) > 0 {
		id, secret, err := c.basic()
		if err != nil {
			return proof{}, err
		}
		used = append(used, proof{method: secretBasic, clientID: id, secret: secret})
	}
	if c.ClientSecret != "" && !repeats(used, c.ClientID, c.ClientSecret) {
		used = append(used, proof{method: secretPost, clientID: c.ClientID, secret: c.ClientSecret})
	}
	if c.Assertion != "" || c.AssertionType != "" {
		if c.AssertionType != AssertionType {
			return proof{}, apperr.Invalid("client_assertion_type", "must be %s", AssertionType)
		}
		id, err := claimedBy(c.Assertion)
		if err != nil {
			return proof{}, err
		}
		used = append(used, proof{method: privateKeyJWT, clientID: id, assertion: c.Assertion})
	}
	switch {
	case len(used) > 1:
		return proof{}, apperr.New(apperr.InvalidParameters, "the client must use exactly one authentication method")
	case len(used) == 0 && c.ClientID == "":
		return proof{}, apperr.New(apperr.Unauthenticated, "the client must authenticate")
	case len(used) == 0:
		return proof{method: none, clientID: c.ClientID}, nil
	case used[0].clientID == "":
		return proof{}, apperr.Invalid("client_id", "is missing")
	case c.ClientID != "" && c.ClientID != used[0].clientID:
		return proof{}, apperr.Invalid("client_id", "is not the client that authenticates")
	case used[0].method == secretBasic && used[0].secret == "":
		used[0].method = none // some libraries send public clients' ids so
	}
	return used[0], nil
}

// repeats reports whether the form repeats the id and secret of the Authorization header. A client must not send both
// (RFC 6749 §2.3), but some do, and they are one credential.
func repeats(used []proof, clientID, secret string) bool {
	return len(used) == 1 && used[0].clientID == clientID && used[0].secret == secret
}

// basic parses client_secret_basic. Id and secret are form-encoded before they are joined (RFC 6749 §2.3.1).
func (c Credentials) basic() (id, secret string, err error) {
	if len(c.Authorization) > 1 {
		return "", "", apperr.New(apperr.InvalidParameters, "there must be exactly one Authorization header")
	}
	r := http.Request{Header: http.Header{"Authorization": c.Authorization}}
	user, password, ok := r.BasicAuth()
	if !ok {
		return "", "", apperr.New(apperr.Unauthenticated,
			"the Authorization header must be: Basic, a space, id:secret in base64")
	}
	id, idErr := url.QueryUnescape(user)
	secret, secretErr := url.QueryUnescape(password)
	if idErr != nil || secretErr != nil { // the cause would quote them
		return "", "", apperr.New(apperr.Unauthenticated, "the client's id and secret must be form-encoded")
	}
	return id, secret, nil
}
