package password

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/argon2"
)

const (
	argon2SaltSize = 16
	argon2KeySize  = 32
)

// argon2Params is the cost of an argon2 hash (RFC 9106 §3.1): KiB, passes, lanes.
type argon2Params struct {
	memory, iterations uint32
	parallelism        uint8
}

func (p argon2Params) check() error {
	if p.iterations < 1 || p.parallelism < 1 || p.memory < 8*uint32(p.parallelism) {
		return errCost
	}
	if p.memory > maxMemory || uint64(p.memory)*uint64(p.iterations) > maxWork || p.parallelism > 16 {
		return errExpensive
	}
	return nil
}

type argon2Hash struct {
	wholePassword
	argon2Params
	id        bool // argon2id, otherwise argon2i
	salt, key []byte
}

func newArgon2id(p argon2Params, salt []byte, password string) *argon2Hash {
	h := &argon2Hash{argon2Params: p, id: true, salt: salt}
	h.key = h.derive(password, argon2KeySize)
	return h
}

func parseArgon2(id bool, fields []string) (hash, error) {
	if len(fields) != 4 || fields[0] != "v=19" {
		return nil, errArgon2
	}
	p, ok := parameters(fields[1], "m", "t", "p")
	if !ok {
		return nil, errArgon2
	}
	if p["p"] > 255 {
		return nil, errExpensive
	}
	h := &argon2Hash{argon2Params: argon2Params{p["m"], p["t"], uint8(p["p"])}, id: id}
	if err := h.check(); err != nil {
		return nil, err
	}
	var err error
	h.salt, h.key, err = saltAndKey(fields[2], fields[3])
	return h, err
}

// String returns the PHC string.
func (h *argon2Hash) String() string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.argon2Params.memory, h.iterations, h.parallelism, encode(h.salt), encode(h.key))
}

func (h *argon2Hash) memory() int64 { return int64(h.argon2Params.memory) }

func (h *argon2Hash) match(password string) bool {
	return subtle.ConstantTimeCompare(h.derive(password, len(h.key)), h.key) == 1
}

func (h *argon2Hash) derive(password string, size int) []byte {
	derive := argon2.Key
	if h.id {
		derive = argon2.IDKey
	}
	return derive([]byte(password), h.salt, h.iterations, h.argon2Params.memory, h.parallelism, uint32(size))
}
