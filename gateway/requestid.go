package gateway

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

const maxRequestID = 128

var requestIDText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// requestID returns the id that the client sent if it has 1…128 letters, digits and the characters . _ -, otherwise a
// new one with 128 random bits. The generator (the runtime's ChaCha8) is fast; request ids are not secret.
func requestID(sent string) string {
	if saneRequestID(sent) {
		return sent
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rand.Uint64())
	return requestIDText.EncodeToString(b[:])
}

func saneRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
