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

// Key is an Ed25519 key pair. Printing it shows its ID alone.
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

// String is the key's ID.
func (k Key) String() string { return k.ID }

// GoString is the key's ID.
func (k Key) GoString() string { return k.ID }

// Keys is a set of signing keys that never changes. The first one signs; every one of them verifies. To rotate without a refused
// token: Add a key, wait until every verifier has fetched the set (an hour at most, see KeyURL), Activate it, wait until the last
// token of the old key has expired, Remove the old one.
type Keys struct{ list []Key }

// NewKeys makes a set of one key, which signs.
func NewKeys(k Key) Keys { return Keys{[]Key{k}} }

// IDs lists the keys, the signing one first.
func (s Keys) IDs() []string {
	ids := make([]string, len(s.list))
	for i, k := range s.list {
		ids[i] = k.ID
	}
	return ids
}

// String lists the keys' IDs.
func (s Keys) String() string { return fmt.Sprint(s.IDs()) }

// GoString lists the keys' IDs.
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

// Remove returns the set without the key of that id, which must not be the signing one. Its tokens end with it.
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

// PrivateJWKS is the set with its private parts, the signing key first. It must be encrypted before it is stored.
func (s Keys) PrivateJWKS() ([]byte, error) {
	return s.marshal(func(k Key) any { return k.private })
}

// PublicJWKS is the set as anyone may see it (RFC 7517).
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

// ParsePrivateJWKS reads what PrivateJWKS wrote. Its errors never show key material.
func ParsePrivateJWKS(raw []byte) (Keys, error) {
	var set jose.JSONWebKeySet
	if json.Unmarshal(raw, &set) != nil {
		return Keys{}, fmt.Errorf("the signing keys are no private JWK set")
	}
	var s Keys
	for i, jwk := range set.Keys {
		private, ok := jwk.Key.(ed25519.PrivateKey)
		if !ok {
			return Keys{}, fmt.Errorf("signing key %d is no private Ed25519 key", i)
		}
		// go-jose believes the public part that it reads; a pair that does not match would leak the private one by signing.
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

// MaxTokenTTL bounds how long a minted token may live.
const MaxTokenTTL = 24 * time.Hour

// Claims is what Mint puts into a token.
type Claims struct {
	Subject  string
	ClientID string
	Tenant   string
	Scopes   Scopes
	// ClientVersion is that of the client's record when its credential was checked; see Ended.
	ClientVersion int64
	TTL           time.Duration // 1 s … MaxTokenTTL; parts of a second are cut off
}

// Signer mints tokens. It is also the KeySource for a Verifier in the same process, which sees a rotation at once.
type Signer struct {
	issuer string
	clock  clock.Clock
	ring   atomic.Pointer[ring]
}

// ring is one version of the signer's keys with all forms that are needed of it.
type ring struct {
	keys   Keys
	public *keySet
}

// NewSigner makes the signer of one issuer, whose tokens carry that name as iss.
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

// Issuer is the iss of the signer's tokens, and their aud: they are for the platform itself.
func (s *Signer) Issuer() string { return s.issuer }

// Use changes the keys, for tokens minted and verified from now on.
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

// Keys is the set in use.
func (s *Signer) Keys() Keys { return s.ring.Load().keys }

// PublicJWKS is what the issuer publishes (RFC 7517). The caller must not change it.
func (s *Signer) PublicJWKS() []byte { return s.ring.Load().public.raw }

// Mint makes an access token (RFC 9068) with a new random jti, valid from now on.
func (s *Signer) Mint(c Claims) (string, error) {
	if c.Subject == "" || len(c.Subject) > maxSubjectSize || !ValidTenant(c.Tenant) || c.TTL < time.Second || c.TTL > MaxTokenTTL {
		return "", fmt.Errorf("mint a token: it needs a subject, a tenant and a lifetime of 1 s to %v", MaxTokenTTL)
	}
	now := s.clock.Now()
	claims := jwt.MapClaims{
		"iss": s.issuer, "aud": s.issuer, "sub": c.Subject, "client_id": c.ClientID, "jti": rand.Text(),
		"iat": now.Millis() / 1000, "exp": now.Add(c.TTL).Millis() / 1000,
		DefaultTenantClaim: c.Tenant, DefaultScopeClaim: c.Scopes.String(), clientVersionClaim: c.ClientVersion,
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

func (s *Signer) find(_ context.Context, id, algorithm string) (crypto.PublicKey, *keySet, error) {
	set := s.current()
	key, _ := set.find(id, algorithm)
	return key, set, nil
}
