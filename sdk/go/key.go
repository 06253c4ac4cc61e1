package idp

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// SigningKey is a private key whose public half an application's jwks has.
type SigningKey struct{ signer jose.Signer }

// ParseSigningKey reads a private key: PEM (PKCS #8, PKCS #1 or SEC 1), or a JWK (RFC 7517). It must be Ed25519, ECDSA
// P-256 or RSA. A JWK's kid goes into what is signed.
func ParseSigningKey(text []byte) (*SigningKey, error) {
	key, id, err := parsePrivate(text)
	if err != nil {
		return nil, err
	}
	var algorithm jose.SignatureAlgorithm
	switch key := key.(type) {
	case ed25519.PrivateKey:
		algorithm = jose.EdDSA
	case *rsa.PrivateKey:
		algorithm = jose.RS256
	case *ecdsa.PrivateKey:
		if key.Curve != elliptic.P256() {
			return nil, errors.New("the key's curve must be P-256")
		}
		algorithm = jose.ES256
	default:
		return nil, errors.New("the key must be a private key for Ed25519, ECDSA P-256 or RSA")
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id},
	}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("the key cannot sign: %w", err)
	}
	return &SigningKey{signer}, nil
}

func parsePrivate(text []byte) (key any, id string, err error) {
	block, _ := pem.Decode(text)
	if block == nil {
		var jwk jose.JSONWebKey
		if jwk.UnmarshalJSON(text) != nil || !jwk.Valid() {
			return nil, "", errors.New("the key is neither PEM nor a JWK")
		}
		return jwk.Key, jwk.KeyID, nil
	}
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, "", fmt.Errorf("the PEM block is %q, not a private key without a password", block.Type)
	}
	if err != nil {
		return nil, "", errors.New("the PEM block is not the private key that it says it is")
	}
	return key, "", nil
}

// sign makes a JWT.
func (k *SigningKey) sign(claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := k.signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
