package clientauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/service"
)

// Algorithms are the signature algorithms of assertions (RFC 7518 §3.1, RFC 8037).
var Algorithms = []string{auth.EdDSA, auth.ES256, auth.RS256}

const (
	maxAssertion    = 8 << 10 // bytes
	maxAssertionAge = time.Hour
	maxTokenID      = 256 // of a jti, in bytes
	maxClientKeys   = 1000
)

// Client is what must be known of a client to check its assertions.
type Client struct {
	ID      string
	JWKS    []byte // its public keys; empty: at JWKSURI
	JWKSURI string
}

// Assertions checks the assertions of clients. It keeps the public keys of those that were seen lately.
type Assertions struct {
	store *docstore.Store
	http  *http.Client
	log   *slog.Logger
	keys  *cache.Cache[string, *clientKeys]
}

// NewAssertions makes a checker. Key sets at an address are fetched with the HTTP client.
func NewAssertions(store *docstore.Store, client *http.Client, log *slog.Logger) *Assertions {
	return &Assertions{store, client, log, cache.New[string, *clientKeys](maxClientKeys)}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{usedAssertions.Def()} }

// refuse makes the error for a bad assertion. Its details appear only in the log.
func refuse(format string, args ...any) error {
	return ErrUnproven.Because(fmt.Errorf(format, args...))
}

// claimedBy returns the subject of an assertion without verifying anything.
func claimedBy(assertion string) (clientID string, err error) {
	claims := jwt.RegisteredClaims{}
	if len(assertion) > maxAssertion {
		return "", refuse("not a JWT with a subject, of up to %d bytes", maxAssertion)
	}
	if _, _, err := jwt.NewParser().ParseUnverified(assertion, &claims); err != nil || claims.Subject == "" {
		return "", refuse("not a JWT with a subject, of up to %d bytes", maxAssertion)
	}
	return claims.Subject, nil
}

// Check verifies an assertion (RFC 7523 §3): a key of the client has signed it, the client is its issuer and subject,
// it is for one of the audiences, it is valid for an hour at most, and it was not used before. Its use is recorded for
// the context's tenant, in a dry run, too. The error is ErrUnproven, with the reason as its cause, or
// apperr.Unavailable if the client's keys cannot be fetched.
func (a *Assertions) Check(ctx context.Context, c Client, audiences []string, assertion string) error {
	keys, err := a.keysOf(c)
	if err != nil {
		return refuse("%w", err)
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods(Algorithms), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(),
		jwt.WithLeeway(auth.Leeway), jwt.WithTimeFunc(func() time.Time { return a.store.Now().Std() }),
		jwt.WithIssuer(c.ID), jwt.WithSubject(c.ID), jwt.WithIssuedAt(),
	)
	var claims jwt.RegisteredClaims
	_, err = parser.ParseWithClaims(assertion, &claims, func(token *jwt.Token) (any, error) {
		if _, ok := token.Header["crit"]; ok {
			return nil, errors.New("critical header members") // RFC 7515 §4.1.11
		}
		id, ok := token.Header["kid"].(string)
		if !ok && token.Header["kid"] != nil {
			return nil, errors.New("kid is not a string")
		}
		key, err := keys.Find(ctx, id, token.Method.Alg())
		if err == nil && key == nil {
			err = errors.New("unknown key")
		}
		return key, err
	})
	if away, ok := errors.AsType[*apperr.Error](err); ok {
		return apperr.Away("the client's jwks_uri", away)
	}
	if err != nil {
		return refuse("%w", err)
	}
	return a.useOnce(ctx, c, audiences, claims)
}

// usedAssertion prevents a second use of an assertion, until the assertion has expired.
type usedAssertion struct {
	docstore.Meta            // the id is a hash of client and jti
	Expires       clock.Time `json:"expires"`
}

var usedAssertions = docstore.Define(docstore.Schema[usedAssertion]{
	Name: "used_assertions", Noun: "used assertion",
	Due: func(a *usedAssertion) clock.Time { return a.Expires.Add(auth.Leeway) },
})

// Forgetting deletes used assertions that have expired.
func (a *Assertions) Forgetting() service.DueWork {
	return service.DueWork{
		Name: "forget used assertions", Every: time.Minute, Due: usedAssertions.Due,
		Do: func(ctx context.Context, id string) error {
			return docstore.Do(ctx, a.store, func(tx *docstore.Tx) error {
				used, err := usedAssertions.Load(ctx, tx, id)
				if err == nil {
					_, err = usedAssertions.Delete(ctx, tx, used)
				}
				return err
			})
		},
	}
}

// useOnce refuses an assertion that is for another server, valid for too long or used before. Otherwise it records the
// use.
func (a *Assertions) useOnce(ctx context.Context, c Client, audiences []string, claims jwt.RegisteredClaims) error {
	expires := clock.Of(claims.ExpiresAt.Time)
	here := func(audience string) bool { return slices.Contains(audiences, audience) }
	switch {
	case !slices.ContainsFunc(claims.Audience, here):
		return refuse("for another server")
	case claims.ID == "" || len(claims.ID) > maxTokenID:
		return refuse("no jti, or one over %d bytes", maxTokenID)
	case expires.After(a.store.Now().Add(maxAssertionAge + auth.Leeway)):
		return refuse("valid for longer than %v", maxAssertionAge)
	}
	sum := sha256.Sum256([]byte(c.ID + "\x00" + claims.ID))
	id := base64.RawURLEncoding.EncodeToString(sum[:])
	err := docstore.Do(docstore.Guarding(ctx), a.store, func(tx *docstore.Tx) error {
		_, err := usedAssertions.Insert(ctx, tx, &usedAssertion{Meta: docstore.Meta{ID: id}, Expires: expires})
		return err
	})
	if _, ok := errors.AsType[*docstore.DuplicateError](err); ok {
		return refuse("used before")
	}
	return err
}

// clientKeys are the public keys of a client.
type clientKeys struct {
	from string // the key set, or its address
	keys *auth.PublicKeys
}

func (a *Assertions) keysOf(c Client) (*auth.PublicKeys, error) {
	var source auth.KeySource
	from := c.JWKSURI
	switch {
	case len(c.JWKS) > 0:
		source, from = auth.StaticKeys(c.JWKS), string(c.JWKS)
	case from != "":
		source = auth.KeyURL{URL: from, Client: a.http}
	default:
		return nil, errors.New("the client has no keys")
	}
	if held, ok := a.keys.Get(c.ID); ok && held.from == from {
		return held.keys, nil
	}
	keys, err := auth.OpenKeys(source, clockOf{a.store}, a.log)
	if err == nil {
		a.keys.Set(c.ID, &clientKeys{from, keys})
	}
	return keys, err
}

// clockOf is the clock of a store.
type clockOf struct{ *docstore.Store }
