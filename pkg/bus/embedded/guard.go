package embedded

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/nats-io/nats-server/v2/server"
)

// guard decides what a connection may do: everything if it comes from this process, otherwise what readers may.
type guard struct {
	user, password [sha256.Size]byte

	// closed when reader is set: clients may connect before a restarting server is ready, and must not be refused
	open   chan struct{}
	reader *server.User // nil if no TCP client is admitted
}

func newGuard(user, password string) *guard {
	return &guard{user: sha256.Sum256([]byte(user)), password: sha256.Sum256([]byte(password)),
		open: make(chan struct{})}
}

// Check implements server.Authentication. Only a pipe, which nobody outside the process can open, counts as this
// process.
func (g *guard) Check(c server.ClientAuthentication) bool {
	addr := c.RemoteAddress()
	if addr == nil {
		return false
	}
	if addr.Network() == "pipe" {
		c.RegisterUser(&server.User{Username: "platform"})
		return true
	}
	given := c.GetOpts()
	user, password := sha256.Sum256([]byte(given.Username)), sha256.Sum256([]byte(given.Password))
	<-g.open
	if subtle.ConstantTimeCompare(user[:], g.user[:])&subtle.ConstantTimeCompare(password[:], g.password[:]) == 0 ||
		g.reader == nil {
		return false
	}
	c.RegisterUser(g.reader)
	return true
}

// validUser accepts names that are one token of a subject, without wildcards.
func validUser(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}
