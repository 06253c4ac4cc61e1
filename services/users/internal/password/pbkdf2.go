package password

import (
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	stdhash "hash"
	"strconv"
)

// maxPBKDF2Work bounds the number of iterations multiplied by the blocks of output. OWASP recommends up to 1,300,000
// iterations (SHA-1).
const maxPBKDF2Work = 3_000_000

type pbkdf2Hash struct {
	wholePassword
	digest     func() stdhash.Hash
	iterations int
	salt, key  []byte
}

// parsePBKDF2 parses the PHC form i=…,l=…$salt$key (l may be missing) and passlib's iterations$salt$key.
func parsePBKDF2(scheme string, fields []string) (hash, error) {
	if len(fields) != 3 {
		return nil, errPBKDF2
	}
	h := &pbkdf2Hash{digest: sha1.New}
	switch scheme {
	case "pbkdf2-sha256":
		h.digest = sha256.New
	case "pbkdf2-sha512":
		h.digest = sha512.New
	}
	iterations, size, ok := pbkdf2Cost(fields[0])
	if !ok {
		return nil, errPBKDF2
	}
	var err error
	if h.salt, h.key, err = saltAndKey(fields[1], fields[2]); err != nil {
		return nil, err
	}
	if iterations < 1 || (size != 0 && int(size) != len(h.key)) {
		return nil, errPBKDF2
	}
	blockSize := h.digest().Size()
	if blocks := (len(h.key) + blockSize - 1) / blockSize; uint64(iterations)*uint64(blocks) > maxPBKDF2Work {
		return nil, errExpensive
	}
	h.iterations = int(iterations)
	return h, nil
}

func pbkdf2Cost(s string) (iterations, size uint32, ok bool) {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return uint32(n), 0, true
	}
	if p, ok := parameters(s, "i"); ok {
		return p["i"], 0, true
	}
	p, ok := parameters(s, "i", "l")
	return p["i"], p["l"], ok
}

func (h *pbkdf2Hash) memory() int64 { return 0 }

func (h *pbkdf2Hash) match(password string) bool {
	key, err := pbkdf2.Key(h.digest, password, h.salt, h.iterations, len(h.key))
	return err == nil && subtle.ConstantTimeCompare(key, h.key) == 1
}
