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
	"github.com/idplatform/idplatform/pkg/clientproof"
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
var Methods = []string{
	clientproof.SecretBasic, clientproof.SecretPost, clientproof.PrivateKeyJWT, clientproof.None,
}

// Of takes the credentials from a form. headers are all Authorization headers.
func Of(form url.Values, headers []string) clientproof.Credentials {
	return clientproof.Credentials{
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
	*clientproof.Assertions
	store   *docstore.Store
	clients Clients
}

// New makes an authenticator. Key sets at jwks_uri are fetched with the HTTP client.
func New(store *docstore.Store, clients Clients, client *http.Client, log *slog.Logger) *Authenticator {
	return &Authenticator{clientproof.NewAssertions(store, client, log), store, clients}
}

// Authenticate returns the enabled application that sends a request to an endpoint of an issuer. audiences are the
// values of aud by which an assertion may name the endpoint. The error is apperr.Unauthenticated (invalid_client) for
// an invalid credential, InvalidParameters for a malformed one, with the code unauthorized_client for a backend
// service, or Unavailable.
func (a *Authenticator) Authenticate(
	ctx context.Context, audiences []string, c clientproof.Credentials,
) (questions.Client, error) {
	p, err := c.Proof()
	if err != nil {
		return questions.Client{}, err
	}
	client, err := a.clients.Of(ctx, questions.ClientName{ClientID: p.ClientID})
	if apperr.IsNotFound(err) {
		return questions.Client{}, clientproof.ErrUnproven
	}
	if err != nil {
		return questions.Client{}, err
	}
	if err := a.prove(ctx, client, audiences, p); err != nil {
		return questions.Client{}, err
	}
	if !client.Enabled || client.OIDC == nil {
		return questions.Client{}, clientproof.ErrUnproven
	}
	return client, nil
}

func (a *Authenticator) prove(
	ctx context.Context, client questions.Client, audiences []string, p clientproof.Proof,
) error {
	switch {
	case client.Category == BackendService:
		return apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"backend services get their tokens at /v1/oauth2/token")
	case client.Category != StandardWeb:
		if p.Method != clientproof.None {
			return clientproof.ErrUnproven // it has no secret, and nobody must believe that it has
		}
		return nil
	case p.Method == clientproof.PrivateKeyJWT:
		of := clientproof.Client{ID: client.ClientID, JWKS: client.JWKS, JWKSURI: client.JWKSURI}
		return a.Check(ctx, of, audiences, p.Assertion)
	case p.Method != clientproof.None && hasSecret(client, p.Secret, a.store.Now()):
		return nil
	}
	return clientproof.ErrUnproven
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
