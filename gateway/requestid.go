package gateway

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
)

const maxRequestID = 128

var requestIDText = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// requestID gives the caller's id if it is sane ([A-Za-z0-9._-]{1,128}), else a new one of 128 random bits. The generator is the
// runtime's ChaCha8: fast, and a request id is no secret.
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
