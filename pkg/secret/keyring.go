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

// ErrOpen means that a sealed text cannot be opened: its key is not in the ring, or the text was altered or is bound
// to other data.
var ErrOpen = errors.New("secret: cannot be opened")

var keyID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Keyring encrypts small values at rest with XChaCha20-Poly1305, whose nonces are long enough to be random for any
// number of values. The first key seals; the others only open what they sealed earlier. To rotate keys: put a new key
// first, on every replica; reseal each value for which NeedsReseal is true; then remove the old key. A Keyring is
// safe for concurrent use.
type Keyring struct {
	primary string
	ciphers map[string]cipher.AEAD
}

// NewKey makes an entry for ParseKeyring with a random id and key.
func NewKey() String {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return New("k" + Token(6) + ":" + base64.StdEncoding.EncodeToString(key))
}

// ParseKeyring reads entries of the form "id:key", separated by commas. An id has 1 to 32 letters, digits, _ or -; a
// key is 32 bytes in base64. Errors name an entry by its position and never quote it.
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
		// The configured key itself is not used as a cipher key: sealing has a key of its own.
		aead, err := chacha20poly1305.NewX(derive(root, "seal"))
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		ring.ciphers[id] = aead
		if i == 0 {
			ring.primary = id
		}
	}
	return ring, nil
}

// Seal encrypts plaintext with the primary key into a URL-safe text: v1.<key id>.<base64url(nonce and ciphertext)>.
// Open needs the same associatedData, such as the record's tenant, id and member, so that a sealed text cannot be
// used in another place.
func (k *Keyring) Seal(plaintext, associatedData []byte) string {
	aead := k.ciphers[k.primary]
	header := format + k.primary + "."
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plaintext)+aead.Overhead())
	_, _ = rand.Read(nonce) // never fails (crypto/rand)
	box := aead.Seal(nonce, nonce, plaintext, bind(header, associatedData))
	return header + base64.RawURLEncoding.EncodeToString(box)
}

// Open decrypts a text from Seal with the key of the ring that sealed it. Its only error is ErrOpen.
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

// Primary is the id of the key that seals.
func (k *Keyring) Primary() string { return k.primary }

// NeedsReseal reports whether sealed was not sealed with the primary key.
func (k *Keyring) NeedsReseal(sealed string) bool {
	id, _, ok := split(sealed)
	return !ok || id != k.primary
}

// Format prints the number of keys and the primary key's id, whatever the verb.
func (k *Keyring) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "keyring of %d, primary %s", len(k.ciphers), k.primary)
}

// encoding is strict, so that a sealed text has only one form: otherwise the unused bits of the last character could
// have any value. It still skips line ends, which Open refuses.
var encoding = base64.RawURLEncoding.Strict()

func derive(root []byte, info string) []byte {
	key, err := hkdf.Key(sha256.New, root, nil, "idplatform "+info, keySize)
	if err != nil {
		panic(err) // only for lengths over 255 hashes
	}
	return key
}

// bind joins the header to the data that is authenticated. A header ends with its second dot, so no two pairs give
// the same bytes.
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
