package password

import (
	"crypto/subtle"

	"golang.org/x/crypto/scrypt"
)

type scryptHash struct {
	wholePassword
	logN, r, p uint32
	salt, key  []byte
}

// parseScrypt parses ln=…,r=…,p=…$salt$key, where N is 2 to the power of ln (RFC 7914 §2).
func parseScrypt(fields []string) (hash, error) {
	if len(fields) != 3 {
		return nil, errScrypt
	}
	p, ok := parameters(fields[0], "ln", "r", "p")
	if !ok {
		return nil, errScrypt
	}
	h := &scryptHash{logN: p["ln"], r: p["r"], p: p["p"]}
	if h.logN < 1 || h.r < 1 || h.p < 1 {
		return nil, errScrypt
	}
	// maxWork is halved because scrypt passes over its memory twice
	if h.logN > 20 || h.r > 64 || h.p > 16 || h.memory() > maxMemory || h.memory()*int64(h.p) > maxWork/2 {
		return nil, errExpensive
	}
	var err error
	h.salt, h.key, err = saltAndKey(fields[1], fields[2])
	return h, err
}

// memory is 128·N·r bytes (RFC 7914 §5).
func (h *scryptHash) memory() int64 { return (128 * int64(h.r) << h.logN) >> 10 }

func (h *scryptHash) match(password string) bool {
	key, err := scrypt.Key([]byte(password), h.salt, 1<<h.logN, int(h.r), int(h.p), len(h.key))
	return err == nil && subtle.ConstantTimeCompare(key, h.key) == 1
}
