package connection

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/services/questions"
)

// Whoever makes or changes a connection, enables it, or makes a token for it, can let its client do what the connection
// can. So the caller must hold the scopes for that.

// acts are the scopes for what a connection's client does with users and groups.
func (c *Connection) acts() auth.Scopes {
	if c.ObjectCode != "" && !c.TreeMade {
		return auth.NewScopes(auth.UsersWrite, auth.OrganizationWrite)
	}
	return auth.NewScopes(auth.UsersWrite)
}

// can are all scopes for what a connection can do.
func (c *Connection) can() auth.Scopes {
	all := c.acts() | c.Given()
	if c.AcceptPassword == "1" || c.Adopt != AdoptNever {
		all |= auth.NewScopes(auth.UsersSecrets)
	}
	return all
}

// Given is the set of the connection's Scopes.
func (c *Connection) Given() auth.Scopes { return questions.Scopes{Scopes: c.Scopes}.Set() }

// mayLet refuses a caller who would let a connection do what the caller may not do.
func (c *Connection) mayLet(ctx context.Context) error { return errLacks(c.can().Lacking(ctx)) }

// MayAct refuses a caller who may not do what the client of a connection asks for.
func (c *Connection) MayAct(ctx context.Context) error { return errLacks(c.acts().Lacking(ctx)) }

func errLacks(scope auth.Scope) error {
	if scope == "" {
		return nil
	}
	return apperr.New(apperr.Forbidden, "the connection can do what needs the scope %s, which the caller lacks", scope)
}
