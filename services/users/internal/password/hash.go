package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// hash is a parsed password hash whose cost is within the bounds.
type hash interface {
	memory() int64 // KiB that match needs, apart from a small constant
	match(password string) bool
	saw(password string) bool // a match depends on the whole password
}

// wholePassword is for hashes that depend on all bytes of a password.
type wholePassword struct{}

func (wholePassword) saw(string) bool { return true }

// Limits for every hash, so that a hostile imported one takes neither the machine's memory nor a processor for long:
// about a second.
const (
	maxMemory = 256 << 10 // KiB
	maxWork   = 1 << 20   // KiB multiplied by the passes over them

	maxHashText = 512
	minSalt     = 8
	maxSalt     = 64
	minKey      = 16 // bytes; shorter ones could match by chance
	maxKey      = 64
)

var (
	errText      = fmt.Errorf("must have up to %d ASCII characters without blanks", maxHashText)
	errScheme    = errors.New("must begin with $argon2id$, $argon2i$, $2a$, $2b$, $2y$, $pbkdf2…$ or $scrypt$")
	errArgon2    = errors.New("must be $argon2id$v=19$m=…,t=…,p=…$salt$hash")
	errCost      = errors.New("must have one pass and one lane or more, and 8 KiB or more for each lane")
	errBcrypt    = errors.New("must have a cost of 4…31 and then 53 characters, as in $2b$12$…")
	errPBKDF2    = errors.New("must be $pbkdf2-sha256$i=…,l=…$salt$hash or $pbkdf2-sha256$iterations$salt$hash")
	errScrypt    = errors.New("must be $scrypt$ln=…,r=…,p=…$salt$hash")
	errSalt      = fmt.Errorf("must have a salt of %d…%d bytes", minSalt, maxSalt)
	errKey       = fmt.Errorf("must have %d…%d bytes of hash", minKey, maxKey)
	errBase64    = errors.New("must have salt and hash in base64 without padding")
	errExpensive = errors.New("costs too much to verify")
)

// ParseHash checks whether Verify supports a hash from another system: argon2id and argon2i (PHC, version 19), bcrypt
// ($2a$, $2b$, $2y$, cost up to 14), PBKDF2 with SHA-1, SHA-256 or SHA-512, and scrypt (PHC or passlib). The error
// completes a sentence that starts with the hash's name, and does not repeat the hash.
func ParseHash(s string) error {
	_, err := parse(s)
	return err
}

func parse(s string) (hash, error) {
	// The second test refuses line ends, which base64 decoding would skip.
	if len(s) > maxHashText || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errText
	}
	fields := strings.Split(s, "$")
	if len(fields) < 3 || fields[0] != "" {
		return nil, errScheme
	}
	switch scheme, rest := fields[1], fields[2:]; scheme {
	case "argon2id", "argon2i":
		return parseArgon2(scheme == "argon2id", rest)
	case "2a", "2b", "2y":
		return parseBcrypt(s)
	case "pbkdf2", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512":
		return parsePBKDF2(scheme, rest)
	case "scrypt":
		return parseScrypt(rest)
	}
	return nil, errScheme
}

// parameters parses "m=1,t=2": exactly the named ones, each once, in any order.
func parameters(s string, names ...string) (found map[string]uint32, ok bool) {
	found = map[string]uint32{}
	for item := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(item, "=")
		n, err := strconv.ParseUint(value, 10, 32)
		if _, again := found[name]; again || err != nil {
			return nil, false
		}
		found[name] = uint32(n)
	}
	for _, name := range names {
		if _, ok := found[name]; !ok {
			return nil, false
		}
	}
	return found, len(found) == len(names)
}

// saltAndKey decodes the last two fields. Passlib writes . for base64's +.
func saltAndKey(salt, key string) (s, k []byte, err error) {
	s, badSalt := base64.RawStdEncoding.Strict().DecodeString(strings.ReplaceAll(salt, ".", "+"))
	k, badKey := base64.RawStdEncoding.Strict().DecodeString(strings.ReplaceAll(key, ".", "+"))
	if badSalt != nil || badKey != nil {
		return nil, nil, errBase64
	}
	if len(s) < minSalt || len(s) > maxSalt {
		return nil, nil, errSalt
	}
	if len(k) < minKey || len(k) > maxKey {
		return nil, nil, errKey
	}
	return s, k, nil
}
