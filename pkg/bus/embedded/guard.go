package embedded

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/nats-io/nats-server/v2/server"
)

// guard decides what a connection may do: all if it comes from this process, else what a subscriber needs.
type guard struct {
	user, password [sha256.Size]byte
	subscriber     *server.User
}

func newGuard(user, password string) *guard {
	return &guard{
		user:       sha256.Sum256([]byte(user)),
		password:   sha256.Sum256([]byte(password)),
		subscriber: &server.User{Username: user, Permissions: subscriberRights(user)},
	}
}

// Check implements server.Authentication. Only a pipe, which no one outside can open, counts as this process.
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
	if subtle.ConstantTimeCompare(user[:], g.user[:])&subtle.ConstantTimeCompare(password[:], g.password[:]) == 0 {
		return false
	}
	c.RegisterUser(g.subscriber)
	return true
}

// subscriberRights allow to read events, and one consumer by the user's own name: with the right to name others, a subscriber
// could take messages from the platform's consumers. _INBOX is safe to give, since the platform's own replies go to _IDP.
func subscriberRights(user string) *server.Permissions {
	const stream = "IDP_EVENTS"
	return &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{"idp.events.>", "_INBOX.>"}},
		Publish: &server.SubjectPermission{Allow: []string{
			"$JS.API.INFO",
			"$JS.API.STREAM.NAMES",
			"$JS.API.STREAM.INFO." + stream,
			"$JS.API.CONSUMER.CREATE." + stream + "." + user,
			"$JS.API.CONSUMER.CREATE." + stream + "." + user + ".>",
			"$JS.API.CONSUMER.DURABLE.CREATE." + stream + "." + user,
			"$JS.API.CONSUMER.INFO." + stream + "." + user,
			"$JS.API.CONSUMER.DELETE." + stream + "." + user,
			"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + user,
			"$JS.ACK." + stream + "." + user + ".>",
		}},
	}
}

// validUser accepts names that are one token of a subject and no wildcard.
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
