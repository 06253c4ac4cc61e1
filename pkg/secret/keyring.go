package secret

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	keySize = 32 // bytes
	format  = "v1."
)

// ErrOpen says that a sealed text can't be opened: made with a key that is not in the ring, altered, or bound to other data.
var ErrOpen = errors.New("secret: cannot be opened")

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Keyring encrypts small values at rest (XChaCha20-Poly1305: its nonces are long enough to be random for any number of values).
// The first key seals; the others only open what they sealed before. To rotate: put a new key first, on every replica; reseal
// what NeedsReseal; then drop the old key. It is safe for concurrent use.
type Keyring struct {
	primary string
	derive  func(info string) []byte // from the primary key; a closure, since fmt would print the bytes of a field
	ciphers map[string]cipher.AEAD
}

// NewKey makes one entry for ParseKeyring, with a random id and key.
func NewKey() String {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return New("k" + Token(6) + ":" + base64.StdEncoding.EncodeToString(key))
}

// ParseKeyring reads "id:key" entries, separated by commas. An id is 1 to 32 letters, digits, _ or -; a key is 32 bytes in base64.
// Errors name entries by position, never by content.
func ParseKeyring(entries String) (*Keyring, error) {
	ring := &Keyring{ciphers: map[string]cipher.AEAD{}}
	for i, entry := range strings.Split(entries.Reveal(), ",") {
		id, encoded, _ := strings.Cut(strings.TrimSpace(entry), ":")
		if !keyID.MatchString(id) {
			return nil, fmt.Errorf("key %d: must be id:key, the id 1 to 32 letters, digits, _ or -", i+1)
		}
		if _, twice := ring.ciphers[id]; twice {
			return nil, fmt.Errorf("key %d: an earlier key has the same id", i+1)
		}
		root, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(root) != keySize {
			return nil, fmt.Errorf("key %d: must be %d bytes in base64", i+1, keySize)
		}
		// The configured key itself meets no cipher: sealing and every Derive purpose have keys of their own.
		aead, err := chacha20poly1305.NewX(derive(root, "seal"))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		ring.ciphers[id] = aead
		if i == 0 {
			ring.primary, ring.derive = id, func(info string) []byte { return derive(root, info) }
		}
	}
	return ring, nil
}

// Seal encrypts plaintext with the primary key into URL-safe text: v1.<key id>.<base64url(nonce and ciphertext)>. Open needs the
// same associatedData (the record's tenant, id and member, say), so that a sealed value is worth nothing in another place.
func (k *Keyring) Seal(plaintext, associatedData []byte) string {
	aead := k.ciphers[k.primary]
	header := format + k.primary + "."
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plaintext)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails (crypto/rand)
	return header + base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, plaintext, bind(header, associatedData)))
}

// Open decrypts what Seal made, with any key of the ring. Its only error is ErrOpen.
func (k *Keyring) Open(sealed string, associatedData []byte) ([]byte, error) {
	id, body, ok := split(sealed)
	aead := k.ciphers[id]
	if !ok || aead == nil {
		return nil, ErrOpen
	}
	box, err := encoding.DecodeString(body)
	if err != nil || strings.ContainsAny(body, "\r\n") || len(box) < aead.NonceSize() {
		return nil, ErrOpen
	}
	header := sealed[:len(sealed)-len(body)]
	plaintext, err := aead.Open(nil, box[:aead.NonceSize()], box[aead.NonceSize():], bind(header, associatedData))
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}

// NeedsReseal reports whether sealed was made with another key than the primary one.
func (k *Keyring) NeedsReseal(sealed string) bool {
	id, _, ok := split(sealed)
	return !ok || id != k.primary
}

// Derive gives 32 bytes for one purpose (HKDF-SHA256, RFC 5869), the same on every replica and after every start. They come from
// the primary key, so they change when it does: use them for what may be lost then, such as signed page tokens.
func (k *Keyring) Derive(purpose string) []byte { return k.derive("derive " + purpose) }

// Format prints the primary key's id and the number of keys, whatever the verb.
func (k *Keyring) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "keyring of %d, primary %s", len(k.ciphers), k.primary)
}

// encoding is strict, so that a sealed text has one form only: else the unused bits of the last character may be anything. (It still
// skips line ends; Open does not.)
var encoding = base64.RawURLEncoding.Strict()

func derive(root []byte, info string) []byte {
	key, err := hkdf.Key(sha256.New, root, nil, "idplatform "+info, keySize)
	if err != nil {
		panic(err) // only for lengths over 255 hashes
	}
	return key
}

// bind makes the header part of what is authenticated. A header ends with its second dot, so no two pairs give the same bytes.
func bind(header string, associatedData []byte) []byte {
	return append([]byte(header), associatedData...)
}

func split(sealed string) (id, body string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, format)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ".")
}
