package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// clientMethods are the ways in which clients authenticate (RFC 8414 §2).
var clientMethods = []string{
	clientauth.SecretBasic, clientauth.SecretPost, clientauth.PrivateKeyJWT, clientauth.None,
}

// credentialsIn takes the credentials from a form. headers are all Authorization headers.
func credentialsIn(form url.Values, headers []string) clientauth.Credentials {
	return clientauth.Credentials{
		Authorization: headers, ClientID: form.Get("client_id"), ClientSecret: form.Get("client_secret"),
		AssertionType: form.Get("client_assertion_type"), Assertion: form.Get("client_assertion"),
	}
}

// Clients finds applications of the context's tenant.
type Clients interface {
	// Of returns an application. The error is apperr.NotFound or Unavailable.
	Of(ctx context.Context, name questions.ClientName) (questions.Client, error)
}

// authenticator finds out which application sends a request to an endpoint of the provider: by a client secret
// (client_secret_basic and client_secret_post, RFC 6749 §2.3.1) or an assertion that it has signed (private_key_jwt,
// RFC 7523 §2.2), which standard web applications must have, or by its client id alone for those that can keep no
// secret.
type authenticator struct {
	*clientauth.Assertions
	store   *docstore.Store
	clients Clients
}

// newAuthenticator makes an authenticator. Key sets at jwks_uri are fetched with the HTTP client.
func newAuthenticator(store *docstore.Store, clients Clients, client *http.Client, log *slog.Logger) *authenticator {
	return &authenticator{clientauth.NewAssertions(store, client, log), store, clients}
}

// authenticate returns the enabled application that sends a request to an endpoint of an issuer. audiences are the
// values of aud by which an assertion may name the endpoint. The error is apperr.Unauthenticated (invalid_client) for
// an invalid credential, InvalidParameters for a malformed one, with the code unauthorized_client for a backend
// service, or Unavailable.
func (a *authenticator) authenticate(
	ctx context.Context, audiences []string, c clientauth.Credentials,
) (questions.Client, error) {
	p, err := c.Proof()
	if err != nil {
		return questions.Client{}, err
	}
	client, err := a.clients.Of(ctx, questions.ClientName{ClientID: p.ClientID})
	if apperr.IsNotFound(err) {
		return questions.Client{}, clientauth.ErrUnproven
	}
	if err != nil {
		return questions.Client{}, err
	}
	if err := a.prove(ctx, client, audiences, p); err != nil {
		return questions.Client{}, err
	}
	if !client.Enabled || client.OIDC == nil {
		return questions.Client{}, clientauth.ErrUnproven
	}
	return client, nil
}

func (a *authenticator) prove(
	ctx context.Context, client questions.Client, audiences []string, p clientauth.Proof,
) error {
	switch {
	case client.Category == questions.BackendService:
		return apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"backend services get their tokens at /v1/oauth2/token")
	case client.Category != questions.StandardWeb:
		if p.Method != clientauth.None {
			return clientauth.ErrUnproven // it has no secret, and nobody must believe that it has
		}
		return nil
	case p.Method == clientauth.PrivateKeyJWT:
		of := clientauth.Client{ID: client.ClientID, JWKS: client.JWKS, JWKSURI: client.JWKSURI}
		return a.Check(ctx, of, audiences, p.Assertion)
	case p.Method != clientauth.None && hasSecret(client, p.Secret, a.store.Now()):
		return nil
	}
	return clientauth.ErrUnproven
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
