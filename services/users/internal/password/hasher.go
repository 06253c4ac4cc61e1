// Package password hashes passwords, verifies them against hashes of this and other systems, and finds passwords that
// are too weak.
package password

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"

	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/pkg/fair"
)

// Config says how passwords are hashed. Zero members take the default, which for the first three is OWASP's
// recommendation for argon2id.
type Config struct {
	Memory        uint32 // KiB for one hash; default 19456
	Iterations    uint32 // default 2
	Parallelism   uint8  // threads of one hash; default 1
	MaxConcurrent int    // hashes at the same time, each with its Memory; default: the number of processors
	MaxWaiting    int    // callers that may wait for their turn; more are refused; default 128
}

// Hasher hashes and verifies passwords within the configured memory and processor time. It is safe for concurrent use.
type Hasher struct {
	params     argon2Params
	gate       *fair.Semaphore // its capacity is KiB of memory
	concurrent int
}

// New makes a Hasher. It refuses parameters that ParseHash would refuse.
func New(c Config) (*Hasher, error) {
	c.Memory = cmp.Or(c.Memory, 19456)
	c.Iterations = cmp.Or(c.Iterations, 2)
	c.Parallelism = cmp.Or(c.Parallelism, 1)
	c.MaxConcurrent = cmp.Or(c.MaxConcurrent, runtime.GOMAXPROCS(0))
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 128)
	params := argon2Params{c.Memory, c.Iterations, c.Parallelism}
	if err := params.check(); err != nil {
		return nil, fmt.Errorf("password hashing: the configured cost %w", err)
	}
	if c.MaxConcurrent < 0 || c.MaxWaiting < 0 {
		return nil, fmt.Errorf("password hashing: the numbers of hashes at a time and waiting must not be negative")
	}
	room := int64(c.MaxConcurrent) * int64(c.Memory)
	return &Hasher{params, fair.NewSemaphore("passwords are being checked", room, c.MaxConcurrent+c.MaxWaiting),
		c.MaxConcurrent}, nil
}

// Concurrency is how many hashes are computed at the same time; more callers have to wait.
func (h *Hasher) Concurrency() int { return h.concurrent }

// normalize makes equal the forms in which keyboards and systems send one password: NFKC. RFC 8265 §4.2 uses NFC; NFKC
// also unifies width and ligatures.
func normalize(password string) string { return norm.NFKC.String(password) }

// forms are what a typed password may have been when it was hashed: its normal form or, if another system hashed it or
// before passwords were normalized, the typed bytes.
func forms(password string) []string {
	if normal := normalize(password); normal != password {
		return []string{normal, password}
	}
	return []string{password}
}

// Hash returns the PHC string of a password's NFKC form: argon2id with a random salt. The error is apperr.Unavailable
// if too many callers wait or ctx ends before its turn.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, argon2SaltSize)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("make a salt: %w", err)
	}
	var text string
	err := h.run(ctx, int64(h.params.memory), func() {
		text = newArgon2id(h.params, salt, normalize(password)).String()
	})
	return text, err
}

// Verify reports whether password, in its NFKC form or as it is, is the hashed one. If so, it also reports whether Hash
// should make a new hash, because this one has another algorithm, cost or form. A hash that does not depend on all that
// was typed stays: the rest may be wrong, and a new hash would refuse the right password. The error is
// apperr.Unavailable as with Hash, or about a stored hash that ParseHash refuses.
func (h *Hasher) Verify(ctx context.Context, stored, password string) (ok, rehash bool, err error) {
	parsed, err := parse(stored)
	if err != nil {
		return false, false, fmt.Errorf("a stored password hash %w", err)
	}
	for i, form := range forms(password) {
		if err := h.run(ctx, parsed.memory(), func() { ok = parsed.match(form) }); err != nil {
			return false, false, err
		}
		if ok {
			return true, parsed.saw(form) && (i > 0 || !h.isCurrent(parsed)), nil
		}
	}
	return false, false, nil
}

// Dummy takes as long as Verify with a hash made by Hash. It is for unknown users, so that the time does not tell them
// apart.
func (h *Hasher) Dummy(ctx context.Context, password string) error {
	for _, form := range forms(password) {
		if err := h.run(ctx, int64(h.params.memory), func() { newArgon2id(h.params, dummySalt[:], form) }); err != nil {
			return err
		}
	}
	return nil
}

var dummySalt [argon2SaltSize]byte

func (h *Hasher) isCurrent(parsed hash) bool {
	a, ok := parsed.(*argon2Hash)
	return ok && a.id && a.argon2Params == h.params && len(a.salt) >= argon2SaltSize && len(a.key) == argon2KeySize
}

// run does the work when there is memory for it. Work that needs little memory still takes the place of one hash, for
// its processor time.
func (h *Hasher) run(ctx context.Context, memory int64, work func()) error {
	return h.gate.Do(ctx, max(memory, int64(h.params.memory)), work)
}
