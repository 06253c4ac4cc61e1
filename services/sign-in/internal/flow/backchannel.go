package flow

import (
	"cmp"
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/link"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// LogOut ends the sessions of somebody who has signed out at the provider of a connection, which sends a logout token.
// A sign-in that is under way comes to nothing. The error is apperr.InvalidParameters, RateLimited or Unavailable.
func (e *Engine) LogOut(ctx context.Context, connectionID, token string, v Visitor) error {
	out, err := e.readLogout(ctx, connectionID, token, v)
	if err != nil {
		return err
	}
	session := ""
	if out.Session != "" {
		session = proof.HashSession(connectionID, out.Session)
	}
	if out.Subject == "" {
		if err := link.End(ctx, e.Store, link.LoggedOut(session)); err != nil {
			return err
		}
		return e.Sessions.EndUpstream(ctx, session)
	}
	linked, err := questions.FindLinked.Ask(ctx, e.Bus, questions.ForeignIdentity{
		ConnectionID: connectionID, ProviderCode: out.ProviderCode, Subject: out.Subject,
	})
	if err != nil || linked.Reason != "" { // whoever cannot sign in has no session
		return err
	}
	user, err := person.Parse(linked.User)
	if err != nil {
		return err
	}
	credential := proof.OfLink(linked.LinkID)
	if err := link.End(ctx, e.Store, link.LoggedOut(cmp.Or(session, credential))); err != nil {
		return err
	}
	return e.Sessions.EndLinked(ctx, user.ID, credential, session)
}

// LogOutOfCAS ends the sessions that began by a ticket of a CAS server, which sends a logout request. Who knows the
// ticket is that server. The error is apperr.InvalidParameters.
func (e *Engine) LogOutOfCAS(ctx context.Context, connectionID, request string) error {
	ticket, err := federation.TicketOf(request)
	if err != nil {
		return apperr.Invalid("logoutRequest", "is not that of a CAS server").Because(err)
	}
	return e.Sessions.EndUpstream(ctx, proof.HashSession(connectionID, ticket))
}

// readLogout reads a logout token, within the limits of guesses: each costs a check of a signature, and perhaps a
// request for keys.
func (e *Engine) readLogout(ctx context.Context, connectionID, token string, v Visitor) (federation.LoggedOut, error) {
	attempt, err := e.Admit(ctx, ProviderCode, v, "")
	if err != nil {
		return federation.LoggedOut{}, err
	}
	if attempt == nil {
		return federation.LoggedOut{}, errTooManyTokens
	}
	out, err := e.Federation.Logout(ctx, connectionID, token)
	switch {
	case errors.Is(err, federation.ErrAway):
		return out, apperr.Away("the provider of the connection", err)
	case err != nil && !errors.Is(err, federation.ErrRefused) && !apperr.IsNotFound(err):
		return out, err
	}
	told, failed := attempt.Settle(ctx, err == nil)
	switch {
	case failed != nil:
		return out, failed
	case !told:
		return out, errTooManyTokens
	case err != nil:
		return out, apperr.Invalid("logout_token", "is not of the provider, or not of now").Because(err)
	}
	return out, nil
}

var errTooManyTokens = apperr.New(apperr.RateLimited, "there were too many wrong logout tokens")
