package auth

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Key is an Ed25519 key pair. Printing it shows only its ID.
type Key struct {
	ID      string // kid: the JWK's SHA-256 thumbprint (RFC 7638)
	private ed25519.PrivateKey
}

// GenerateKey makes a new key pair.
func GenerateKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("generate a signing key: %w", err)
	}
	return newKey(private)
}

func newKey(private ed25519.PrivateKey) (Key, error) {
	thumbprint, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		return Key{}, fmt.Errorf("the thumbprint of a signing key: %w", err)
	}
	return Key{base64.RawURLEncoding.EncodeToString(thumbprint), private}, nil
}

// String returns the key's ID.
func (k Key) String() string { return k.ID }

// GoString returns the key's ID.
func (k Key) GoString() string { return k.ID }

// Keys is an immutable set of signing keys. The first one signs; all of them verify. To rotate without a refused token:
// Add a key; wait until every verifier has fetched the set (an hour at most, see KeyURL); Activate it; wait until the
// last token of the old key has expired; Remove the old key.
type Keys struct{ list []Key }

// NewKeys makes a set of one key, which signs.
func NewKeys(k Key) Keys { return Keys{[]Key{k}} }

// IDs lists the ids of the keys, the signing one first.
func (s Keys) IDs() []string {
	ids := make([]string, len(s.list))
	for i, k := range s.list {
		ids[i] = k.ID
	}
	return ids
}

// String lists the ids of the keys.
func (s Keys) String() string { return fmt.Sprint(s.IDs()) }

// GoString lists the ids of the keys.
func (s Keys) GoString() string { return s.String() }

// Add returns the set with one more key, which does not sign yet.
func (s Keys) Add(k Key) Keys { return Keys{append(slices.Clip(s.list), k)} }

// Activate returns the set with the key of that id as the signing one.
func (s Keys) Activate(id string) (Keys, error) {
	i := slices.Index(s.IDs(), id)
	if i < 0 {
		return s, fmt.Errorf("no signing key %q", id)
	}
	list := []Key{s.list[i]}
	list = append(list, s.list[:i]...)
	return Keys{append(list, s.list[i+1:]...)}, nil
}

// Remove returns the set without the key of that id, which must not be the signing one. Its tokens are no longer valid
// then.
func (s Keys) Remove(id string) (Keys, error) {
	i := slices.Index(s.IDs(), id)
	if i < 0 {
		return s, fmt.Errorf("no signing key %q", id)
	}
	if i == 0 {
		return s, fmt.Errorf("the key %q signs; activate another one first", id)
	}
	return Keys{slices.Delete(slices.Clone(s.list), i, i+1)}, nil
}

// PrivateJWKS returns the set with its private parts, the signing key first. It must be encrypted before it is stored.
func (s Keys) PrivateJWKS() ([]byte, error) {
	return s.marshal(func(k Key) any { return k.private })
}

// PublicJWKS returns the public set (RFC 7517).
func (s Keys) PublicJWKS() ([]byte, error) {
	return s.marshal(func(k Key) any { return k.private.Public() })
}

func (s Keys) marshal(part func(Key) any) ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, k := range s.list {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: part(k), KeyID: k.ID, Algorithm: EdDSA, Use: "sig"})
	}
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("marshal the signing keys: %w", err)
	}
	return raw, nil
}

// ParsePrivateJWKS parses what PrivateJWKS returned. Its errors never contain key material.
func ParsePrivateJWKS(raw []byte) (Keys, error) {
	var set jose.JSONWebKeySet
	if json.Unmarshal(raw, &set) != nil {
		return Keys{}, fmt.Errorf("the signing keys are not a private JWK set")
	}
	var s Keys
	for i, jwk := range set.Keys {
		private, ok := jwk.Key.(ed25519.PrivateKey)
		if !ok {
			return Keys{}, fmt.Errorf("signing key %d is not a private Ed25519 key", i)
		}
		// go-jose does not check the public part that it reads. Signing with a pair that does not match would leak the
		// private key.
		k, err := newKey(ed25519.NewKeyFromSeed(private.Seed()))
		if err != nil {
			return Keys{}, err
		}
		if !k.private.Equal(private) || k.ID != jwk.KeyID || slices.Contains(s.IDs(), k.ID) {
			return Keys{}, fmt.Errorf("signing key %d is damaged or repeated", i)
		}
		s.list = append(s.list, k)
	}
	if len(s.list) == 0 || len(s.list) > maxKeys {
		return Keys{}, fmt.Errorf("%d signing keys; there must be 1 to %d", len(s.list), maxKeys)
	}
	return s, nil
}

// MaxTokenTTL is the longest lifetime of a minted token.
const MaxTokenTTL = 24 * time.Hour

// Claims are the claims that Mint puts into a token.
type Claims struct {
	Subject  string
	ClientID string
	Tenant   string
	Scopes   Scopes
	// ClientVersion is the version of the client's record when its credential was checked; see Ended.
	ClientVersion int64
	ApplicationID string        // the application that the client belongs to; empty: none
	TTL           time.Duration // 1 s … MaxTokenTTL; fractions of a second are cut off
}

// Signer mints tokens. It is also the KeySource for a Verifier in the same process, which uses rotated keys at once.
type Signer struct {
	issuer string
	clock  clock.Clock
	ring   atomic.Pointer[ring]
}

// ring is one version of the signer's keys, in all forms that are needed.
type ring struct {
	keys   Keys
	public *keySet
}

// NewSigner makes the signer of one issuer. The name is the iss of its tokens.
func NewSigner(issuer string, s Keys, clk clock.Clock) (*Signer, error) {
	if issuer == "" {
		return nil, fmt.Errorf("a token signer needs the issuer's name")
	}
	signer := &Signer{issuer: issuer, clock: clk}
	if err := signer.Use(s); err != nil {
		return nil, err
	}
	return signer, nil
}

// Issuer returns the iss of the signer's tokens. It is also their aud: they are for the platform itself.
func (s *Signer) Issuer() string { return s.issuer }

// Use replaces the keys, for tokens minted and verified from now on.
func (s *Signer) Use(set Keys) error {
	raw, err := set.PublicJWKS()
	if err != nil {
		return err
	}
	public, err := parseKeySet(raw)
	if err != nil {
		return fmt.Errorf("use signing keys: %w", err)
	}
	s.ring.Store(&ring{set, public})
	return nil
}

// Keys returns the set in use.
func (s *Signer) Keys() Keys { return s.ring.Load().keys }

// PublicJWKS returns the set that the issuer publishes (RFC 7517). The caller must not change it.
func (s *Signer) PublicJWKS() []byte { return s.ring.Load().public.raw }

// Mint makes an access token (RFC 9068) with a new random jti, valid from now on.
func (s *Signer) Mint(c Claims) (string, error) {
	if c.Subject == "" || len(c.Subject) > maxSubjectSize || !ValidTenant(c.Tenant) || c.TTL < time.Second ||
		c.TTL > MaxTokenTTL {
		return "", fmt.Errorf("mint a token: it needs a subject, a tenant and a lifetime of 1 s to %v", MaxTokenTTL)
	}
	now := s.clock.Now()
	claims := jwt.MapClaims{
		"iss": s.issuer, "aud": s.issuer, "sub": c.Subject, "client_id": c.ClientID, "jti": rand.Text(),
		"iat": now.Millis() / 1000, "exp": now.Add(c.TTL).Millis() / 1000,
		DefaultTenantClaim: c.Tenant, DefaultScopeClaim: c.Scopes.String(), clientVersionClaim: c.ClientVersion,
	}
	if c.ApplicationID != "" {
		claims[applicationClaim] = c.ApplicationID
	}
	key := s.ring.Load().keys.list[0]
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["typ"], token.Header["kid"] = "at+jwt", key.ID
	text, err := token.SignedString(key.private)
	if err != nil {
		return "", fmt.Errorf("mint a token: %w", err)
	}
	return text, nil
}

func (s *Signer) open(clock.Clock, *slog.Logger) (keys, error) { return s, nil }

func (s *Signer) current() *keySet { return s.ring.Load().public }

func (s *Signer) find(_ context.Context, id, algorithm string) (*publicKey, *keySet, error) {
	set := s.current()
	key, _ := set.find(id, algorithm)
	return key, set, nil
}
