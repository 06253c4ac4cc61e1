// Package httpapi contains the operations of the users service: JSON forms and their conversion to the domain's, one
// file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/credential"
	"github.com/idplatform/idplatform/services/users/internal/transfer"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

type api struct {
	users       *user.Users
	credentials *credential.Credentials
	transfers   *transfer.Transfers
}

// Register adds all operations to the server.
func Register(s *rest.Server, users *user.Users, credentials *credential.Credentials, transfers *transfer.Transfers) {
	a := &api{users, credentials, transfers}
	noun := s.Tagged("Users",
		"The people whom the platform knows: creating, finding and changing them, locks and resignations.")
	a.registerUsers(noun)
	a.registerLocks(noun)
	a.registerStates(noun)
	a.registerPasswords(s.Tagged("Passwords", "Setting and changing passwords, and verifying logins with them."))
	a.registerNames(s.Tagged("Login names", "Whether a login name is valid and available, and whether a user exists."))
	a.registerAvatars(s.Tagged("Avatars", "The pictures of users."))
	a.registerCredentials(s.Tagged("Stored credentials", "Social identities that are bound to users."))
	a.registerTenants(s.Tagged("Tenants", "The separate organizations that the platform serves."))
	a.registerSettings(s.Tagged("Settings of users", "What a tenant allows its users."))
	a.registerTransfer(s.Tagged("Transfers", "Users in bulk, in and out, as streams."))
}
