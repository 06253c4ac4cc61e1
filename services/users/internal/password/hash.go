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
}

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
	errUnknown   = errors.New("is not of a supported form")
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
		return nil, errUnknown
	}
	fields := strings.Split(s, "$")
	if len(fields) < 3 || fields[0] != "" {
		return nil, errUnknown
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
	return nil, errUnknown
}

// parameters parses "m=1,t=2": exactly the named ones, each once, in any order.
func parameters(s string, names ...string) (map[string]uint32, error) {
	found := map[string]uint32{}
	for item := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(item, "=")
		n, err := strconv.ParseUint(value, 10, 32)
		if _, again := found[name]; again || err != nil {
			return nil, errUnknown
		}
		found[name] = uint32(n)
	}
	for _, name := range names {
		if _, ok := found[name]; !ok {
			return nil, errUnknown
		}
	}
	if len(found) != len(names) {
		return nil, errUnknown
	}
	return found, nil
}

// saltAndKey decodes the last two fields. Passlib writes . for base64's +.
func saltAndKey(salt, key string) (s, k []byte, err error) {
	s, errSalt := base64.RawStdEncoding.Strict().DecodeString(strings.ReplaceAll(salt, ".", "+"))
	k, errKey := base64.RawStdEncoding.Strict().DecodeString(strings.ReplaceAll(key, ".", "+"))
	if errSalt != nil || errKey != nil {
		return nil, nil, errUnknown
	}
	if len(s) < minSalt || len(s) > maxSalt {
		return nil, nil, fmt.Errorf("must have a salt of %d…%d bytes", minSalt, maxSalt)
	}
	if len(k) < minKey || len(k) > maxKey {
		return nil, nil, fmt.Errorf("must have %d…%d bytes of hash", minKey, maxKey)
	}
	return s, k, nil
}
