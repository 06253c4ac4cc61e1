package token

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Credentials are the parts of a request by which a client can authenticate.
type Credentials struct {
	clientauth.Credentials
	Address netip.Addr // of the sender
}

// Methods are all authentication methods.
var Methods = []string{clientauth.SecretBasic, clientauth.SecretPost, clientauth.PrivateKeyJWT}

// bearer returns the bearer token of a request without any proof of a client.
func (c Credentials) bearer() (token string, ok bool) {
	if len(c.Authorization) != 1 || c.ClientSecret != "" || c.Assertion != "" {
		return "", false
	}
	scheme, token, _ := strings.Cut(c.Authorization[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Authenticate returns the client that sends a request. The error is apperr.Unauthenticated for an invalid credential,
// InvalidParameters for a malformed one or RateLimited after too many invalid ones. A valid credential is not refused
// because of invalid ones: a generated secret has 256 bits, so it cannot be guessed, and the limit bounds the load and
// the events that attempts cause. Only secrets that people chose are not looked at after too many guesses: see guesses.
func (t *Tokens) Authenticate(ctx context.Context, c Credentials) (application.Client, error) {
	p, err := c.Proof()
	if err == nil && p.Method == clientauth.None {
		err = clientauth.ErrMissing
	}
	if err != nil {
		return application.Client{}, err
	}
	chosen := p.Method != clientauth.PrivateKeyJWT && t.Chosen(p.ClientID)
	if chosen {
		if wait := t.limits.guesses.wait(p.ClientID, c.Address); wait > 0 {
			return application.Client{}, tooMany("too many failed authentications", wait)
		}
	}
	client, err := t.Clients.Client(ctx, p.ClientID)
	if apperr.IsNotFound(err) {
		client, err = nobody(p.ClientID), nil // refused like a client with another secret
	}
	if err != nil {
		return application.Client{}, err
	}
	if p.Method == clientauth.PrivateKeyJWT {
		err = t.checkAssertion(ctx, client, p.Assertion)
	} else if !hasSecret(client, p.Secret, t.Store.Now()) {
		err = clientauth.ErrUnproven.Because(wrongSecret)
	}
	switch {
	case !chosen:
	case err != nil:
		t.limits.guesses.wrong(p.ClientID, c.Address)
	default:
		t.limits.guesses.right(p.ClientID, c.Address)
	}
	if err == nil && !client.Enabled {
		err = clientauth.ErrUnproven.Because(disabledClient)
	}
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return application.Client{}, t.failed(ctx, client, p.Method, c.Address, err)
	}
	return client, err
}

// TokenPath is the path of the token endpoint.
const TokenPath = "/v1/oauth2/token"

// checkAssertion verifies an assertion, for which this server is the audience.
func (t *Tokens) checkAssertion(ctx context.Context, c application.Client, assertion string) error {
	issuer := t.Signer.Issuer()
	of := clientauth.Client{ID: c.ClientID, JWKS: c.JWKS, JWKSURI: c.JWKSURI}
	err := t.Assertions.Check(request.System(ctx, c.Tenant), of, []string{issuer, issuer + TokenPath}, assertion)
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return clientauth.ErrUnproven.Because(fmt.Errorf("%w: %w", badAssertion, err))
	}
	return err
}

// hasSecret compares with every secret, so that the time does not tell which one matches.
func hasSecret(c application.Client, value string, now clock.Time) bool {
	found := false
	for _, s := range c.Secrets {
		good := s.Expires.IsZero() || now.Before(s.Expires)
		found = s.Matches(value) && good || found
	}
	return found
}
