package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// The signature algorithms that an Issuer may allow (RFC 7518 §3.1, RFC 8037). Symmetric ones and "none" are never
// accepted.
const (
	EdDSA = "EdDSA"
	RS256 = "RS256"
	ES256 = "ES256"
)

const (
	maxKeys   = 100  // of one issuer
	minRSABit = 2048 // RFC 7518 §3.3
	maxRSABit = 8192 // so that a verification takes less than a millisecond
)

// keySet is one version of an issuer's public keys. It is immutable, so its address identifies the version.
type keySet struct {
	raw  []byte
	keys []publicKey
}

type publicKey struct {
	id, algorithm string
	key           crypto.PublicKey
}

// find returns the key with the id for the algorithm. A token without a kid is accepted only if exactly one key fits.
func (s *keySet) find(id, algorithm string) (*publicKey, bool) {
	var found *publicKey
	for i := range s.keys {
		k := &s.keys[i]
		if k.algorithm != algorithm || (id != "" && k.id != id) {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = k
	}
	return found, found != nil
}

// ReadKeySet reads the public keys of a JWK set. As RFC 7517 §5 asks, it skips keys that it does not understand; they
// are among all. Private keys are an error, also those that it does not understand; symmetric ones are not.
func ReadKeySet(raw []byte) (keys []jose.JSONWebKey, all int, err error) {
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, 0, fmt.Errorf("not a JWK set: %w", err)
	}
	if len(doc.Keys) > maxKeys {
		return nil, 0, fmt.Errorf("a JWK set of %d keys, the limit is %d", len(doc.Keys), maxKeys)
	}
	for _, text := range doc.Keys {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		for _, secret := range []string{"d", "priv"} { // RFC 7518 §6, and the drafts for AKP
			if _, has := members[secret]; has {
				return nil, 0, errors.New("a private key in a public JWK set")
			}
		}
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) == nil && k.Valid() {
			keys = append(keys, k)
		}
	}
	return keys, len(doc.Keys), nil
}

// parseKeySet parses a public JWK set (RFC 7517). It skips keys that ReadKeySet does not understand, keys that are too
// weak, and those for other uses. A set without any usable key is an error.
func parseKeySet(raw []byte) (*keySet, error) {
	keys, _, err := ReadKeySet(raw)
	if err != nil {
		return nil, err
	}
	set := &keySet{raw: raw}
	for _, k := range keys {
		if k.Use != "" && k.Use != "sig" {
			continue
		}
		algorithm := algorithmOf(k.Key)
		if algorithm == "" || (k.Algorithm != "" && k.Algorithm != algorithm) {
			continue
		}
		set.keys = append(set.keys, publicKey{k.KeyID, algorithm, k.Key})
	}
	if len(set.keys) == 0 {
		return nil, fmt.Errorf("no usable key in the JWK set")
	}
	return set, nil
}

// UsableKeys reports whether signatures can be verified with at least one key of a public JWK set.
func UsableKeys(set []byte) bool {
	_, err := parseKeySet(set)
	return err == nil
}

// algorithmOf returns the one algorithm that a key is used with, "" if there is none: the key decides, never the token.
func algorithmOf(key crypto.PublicKey) string {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return EdDSA
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n >= minRSABit && n <= maxRSABit {
			return RS256
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return ES256
		}
	}
	return ""
}
