package token

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Credentials are the parts of a request by which a client can authenticate: client_secret_basic, client_secret_post
// (RFC 6749 §2.3.1) and private_key_jwt (RFC 7523 §2.2).
type Credentials struct {
	Authorization []string // every header of that name
	ClientID      string
	ClientSecret  string
	AssertionType string
	Assertion     string
	Address       netip.Addr // of the sender
}

// The authentication methods, with their names in RFC 8414.
const (
	secretBasic   = "client_secret_basic"
	secretPost    = "client_secret_post"
	privateKeyJWT = "private_key_jwt"
)

// Methods are all authentication methods.
var Methods = []string{secretBasic, secretPost, privateKeyJWT}

// assertionType is the only valid value of client_assertion_type.
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

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
		if c.AssertionType != assertionType {
			return proof{}, apperr.Invalid("client_assertion_type", "must be %s", assertionType)
		}
		id, err := claimedBy(c.Assertion)
		if err != nil {
			return proof{}, err
		}
		used = append(used, proof{method: privateKeyJWT, clientID: id, assertion: c.Assertion})
	}
	switch {
	case len(used) == 0:
		return proof{}, apperr.New(apperr.Unauthenticated, "the client must authenticate")
	case len(used) > 1:
		return proof{}, apperr.New(apperr.InvalidParameters, "the client must use exactly one authentication method")
	case used[0].clientID == "":
		return proof{}, apperr.Invalid("client_id", "is missing")
	case c.ClientID != "" && c.ClientID != used[0].clientID:
		return proof{}, apperr.Invalid("client_id", "is not the client that authenticates")
	}
	return used[0], nil
}

// repeats reports whether the form repeats the id and secret of the Authorization header. A client must not send both
// (RFC 6749 §2.3), but zitadel/oidc does when it revokes a token, and they are one credential.
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

// bearer returns the bearer token of a request without any proof of a client.
func (c Credentials) bearer() (token string, ok bool) {
	if len(c.Authorization) != 1 || c.ClientSecret != "" || c.Assertion != "" {
		return "", false
	}
	scheme, token, _ := strings.Cut(c.Authorization[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// errUnproven is the error for every invalid credential. Only the event client.authentication_failed tells the reason.
var errUnproven = apperr.New(apperr.Unauthenticated, "the client's credential is not valid")

// Authenticate returns the client that sends a request. The error is apperr.Unauthenticated for an invalid credential,
// InvalidParameters for a malformed one or RateLimited after too many invalid ones. A valid credential is not refused
// because of invalid ones: a generated secret has 256 bits, so it cannot be guessed, and the limit bounds the load and
// the events that attempts cause. Only secrets that people chose are not looked at after too many guesses: see guesses.
func (t *Tokens) Authenticate(ctx context.Context, c Credentials) (application.Client, error) {
	p, err := c.proof()
	if err != nil {
		return application.Client{}, err
	}
	chosen := p.method != privateKeyJWT && t.Chosen(p.clientID)
	if chosen {
		if wait := t.limits.guesses.wait(p.clientID, c.Address); wait > 0 {
			return application.Client{}, tooMany("too many failed authentications", wait)
		}
	}
	client, err := t.Clients.Client(ctx, p.clientID)
	if apperr.IsNotFound(err) {
		client, err = nobody(p.clientID), nil // refused like a client with another secret
	}
	if err != nil {
		return application.Client{}, err
	}
	if p.method == privateKeyJWT {
		err = t.checkAssertion(ctx, client, p.assertion)
	} else if !hasSecret(client, p.secret, t.Store.Now()) {
		err = errUnproven.Because(wrongSecret)
	}
	switch {
	case !chosen:
	case err != nil:
		t.limits.guesses.wrong(p.clientID, c.Address)
	default:
		t.limits.guesses.right(p.clientID, c.Address)
	}
	if err == nil && !client.Enabled {
		err = errUnproven.Because(disabledClient)
	}
	if apperr.KindOf(err) == apperr.Unauthenticated {
		return application.Client{}, t.failed(ctx, client, p.method, c.Address, err)
	}
	return client, err
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
