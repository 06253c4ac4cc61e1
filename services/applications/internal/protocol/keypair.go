package protocol

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // some products only know fingerprints of SHA-1
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
)

// The kinds of keys.
const (
	rsaKey     = "rsa"
	ecdsaKey   = "ecdsa"
	ed25519Key = "ed25519"
)

const (
	maxPEM  = 32 << 10 // bytes
	minBits = 2048     // of an RSA key, NIST SP 800-131A
	maxBits = 8192     // a signature takes a few milliseconds at most
)

// checkKeyPair checks that certificate and key can be parsed, match each other and suit the signature algorithm, and
// that the fingerprint is the certificate's. A fingerprint that is missing, or that of the previous certificate, is
// replaced by the new certificate's.
func (p *Prop) checkKeyPair(faults *apperr.Faults, kind string, was Prop, oldKey secret.String) {
	const keyAt, certAt, printAt = signingKey, "saml_response_signing_cert", "saml_response_signing_cert_fingerprint"
	keyText, given := p.SigningKey.Given()
	if !given && p.SigningKey.IsSet() {
		keyText = oldKey.Reveal()
	}
	if p.SigningCert == "" {
		faults.Check(keyText == "", keyAt, "needs its certificate")
		faults.Check(p.Fingerprint == "" || p.Fingerprint == was.Fingerprint, printAt, "needs the certificate")
		p.Fingerprint = ""
		return
	}
	cert, err := parseCertificate(p.SigningCert)
	if err != nil {
		faults.Add(certAt, "%s", err)
		return
	}
	public, name, err := publicKey(cert.PublicKey)
	if err != nil {
		faults.Add(certAt, "%s", err)
		return
	}
	if keyText != "" {
		private, err := parseKey(keyText)
		switch {
		case err != nil:
			faults.Add(keyAt, "%s", err)
		default:
			faults.Check(public.Equal(private.Public()), keyAt, "is not the key of the certificate")
		}
	}
	if a := find(signatures, p.SignatureAlgorithm); a != nil && kind != OIDC && kind != OAuth2 {
		faults.Check(a.key == name, "signature_algorithm", "does not sign with the certificate's key, which is of %s",
			name)
	}
	if p.Fingerprint != "" && (p.Fingerprint != was.Fingerprint || p.SigningCert == was.SigningCert) {
		faults.Check(isFingerprint(p.Fingerprint, cert.Raw), printAt, "is not the certificate's")
	}
	p.Fingerprint = fingerprint(cert.Raw)
}

func parseCertificate(text string) (*x509.Certificate, error) {
	block, err := onlyBlock(text, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("must be an X.509 certificate") // the parser's message could quote the content
	}
	return cert, nil
}

// CheckCertificate checks a certificate (X.509, PEM) by which a SAML service provider signs.
func CheckCertificate(text string) error {
	cert, err := parseCertificate(text)
	if err != nil {
		return err
	}
	_, name, err := publicKey(cert.PublicKey)
	if err == nil && name != rsaKey {
		err = errors.New("must have an RSA key: no other signatures are checked")
	}
	return err
}

// RSAKey returns a private key that was checked as PKCS #8 (PEM). ok is false if it is not of RSA.
func RSAKey(text secret.String) (pkcs8 string, ok bool) {
	key, err := parseKey(text.Reveal())
	if err != nil {
		return "", false
	}
	if _, ok := key.(*rsa.PrivateKey); !ok {
		return "", false
	}
	body, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: body})), err == nil
}

// onlyBlock decodes PEM (RFC 7468) with exactly one block.
func onlyBlock(text string, suffix string) (*pem.Block, error) {
	if len(text) > maxPEM {
		return nil, errors.New("must have at most 32 KiB")
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || !strings.HasSuffix(block.Type, suffix) || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("must be one PEM block of a " + strings.ToLower(suffix))
	}
	return block, nil
}

// signer is implemented by the private keys of the standard library.
type signer interface{ Public() crypto.PublicKey }

// parseKey parses a private key in PKCS #8, PKCS #1 (RSA) or SEC 1 (elliptic curves).
func parseKey(text string) (signer, error) {
	block, err := onlyBlock(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if s, ok := key.(signer); ok {
			return s, nil
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errors.New("must be a private key that is not encrypted")
}

// comparableKey is implemented by the public keys of the standard library.
type comparableKey interface{ Equal(crypto.PublicKey) bool }

func publicKey(key any) (comparableKey, string, error) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minBits || bits > maxBits {
			return nil, "", errors.New("must have an RSA key of 2048…8192 bits")
		}
		return k, rsaKey, nil
	case *ecdsa.PublicKey:
		return k, ecdsaKey, nil
	case ed25519.PublicKey:
		return k, ed25519Key, nil
	}
	return nil, "", errors.New("must have a key of RSA, an elliptic curve or Ed25519")
}

// fingerprint returns the SHA-256 of a certificate in the notation of OpenSSL.
func fingerprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	var b strings.Builder
	for i, c := range sum {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{c})))
	}
	return b.String()
}

// isFingerprint also accepts SHA-1: the fingerprint only has to identify the certificate beside it.
func isFingerprint(text string, certificate []byte) bool {
	plain, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil {
		return false
	}
	long, short := sha256.Sum256(certificate), sha1.Sum(certificate) //nolint:gosec // see the import
	return string(plain) == string(long[:]) || string(plain) == string(short[:])
}
