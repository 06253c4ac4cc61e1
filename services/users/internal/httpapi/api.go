// Package httpapi is the users service's operations: wire forms, their conversion to the domain's, one file a noun. It holds
// no rules and no storage.
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
	transfer    *transfer.Transfer
}

// Register adds all operations to the server.
func Register(s *rest.Server, users *user.Users, credentials *credential.Credentials, t *transfer.Transfer) {
	a := &api{users, credentials, t}
	a.registerUsers(s)
	a.registerStates(s)
	a.registerPasswords(s)
	a.registerNames(s)
	a.registerAvatars(s)
	a.registerCredentials(s)
	a.registerTransfer(s)
}
