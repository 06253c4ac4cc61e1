package secret

import (
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// The suite of RFC 9180 that values travel under. Its KEM (X-Wing) joins ML-KEM-768 and X25519, so that a recording is
// no use to quantum computers either.
var (
	transitKEM  = hpke.MLKEM768X25519()
	transitKDF  = hpke.HKDFSHA256()
	transitAEAD = hpke.ChaCha20Poly1305()
)

const transitFormat = "t1."

// Recipient opens values that others sealed for it on their way, such as a password in a message. Its public key is no
// secret, so sender and recipient need to share none.
type Recipient struct {
	private hpke.PrivateKey
	public  TransitKey
}

// TransitKey is a recipient's public key.
type TransitKey struct {
	ID     string `json:"id"`
	Public string `json:"public"` // base64url, in the form of the KEM (RFC 9180 §4)
}

// NewRecipient derives the key pair from a seed of at least 32 secret bytes: the same seed makes the same pair.
func NewRecipient(seed []byte) (*Recipient, error) {
	private, err := transitKEM.DeriveKeyPair(seed)
	if err != nil {
		return nil, fmt.Errorf("derive the key pair of a recipient: %w", err)
	}
	public := private.PublicKey().Bytes()
	sum := sha256.Sum256(public)
	return &Recipient{private, TransitKey{
		ID: hex.EncodeToString(sum[:8]), Public: base64.RawURLEncoding.EncodeToString(public),
	}}, nil
}

// Key is the key that senders need.
func (r *Recipient) Key() TransitKey { return r.public }

// Seal encrypts a value for the recipient with this key. The recipient must name the same use to open it.
func (k TransitKey) Seal(value, use string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(k.Public)
	if err != nil {
		return "", fmt.Errorf("the public key of a recipient: %w", err)
	}
	public, err := transitKEM.NewPublicKey(raw)
	if err != nil {
		return "", fmt.Errorf("the public key of a recipient: %w", err)
	}
	box, err := hpke.Seal(public, transitKDF, transitAEAD, []byte(use), []byte(value))
	if err != nil {
		return "", fmt.Errorf("seal for a recipient: %w", err)
	}
	return transitFormat + k.ID + "." + base64.RawURLEncoding.EncodeToString(box), nil
}

// Open decrypts a value that was sealed for this recipient and use. Its only error is ErrOpen.
func (r *Recipient) Open(sealed, use string) (String, error) {
	text, ok := strings.CutPrefix(sealed, transitFormat+r.public.ID+".")
	box, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil {
		return String{}, ErrOpen
	}
	plain, err := hpke.Open(r.private, transitKDF, transitAEAD, []byte(use), box)
	if err != nil {
		return String{}, ErrOpen
	}
	return New(string(plain)), nil
}
