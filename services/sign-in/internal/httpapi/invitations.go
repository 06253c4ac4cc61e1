package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
)

// InviteManyInput is what POST /v1/batch/users/invite takes.
type InviteManyInput struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"1000" doc:"Ids of users" example:"[\"1048577\"]"`
	invitation.Terms
}

type inviteInput struct {
	rest.ByID
	Body *invitation.Terms
}

// InvitationForm has the code of an invitation.
type InvitationForm struct {
	Code string `json:"code" doc:"The code in the mail; case and dashes do not matter"`
}

type invitationPageInput struct{ Visitor }

type invitationInput struct {
	Visitor
	Form rest.Values[InvitationForm]
}

var inviteErrors = []apperr.Kind{apperr.InvalidState, apperr.RateLimited, apperr.Unavailable}

const inviteDoc = "The mail has a link and a code; the person needs one of them. The person chooses a password or " +
	"sets up a passkey. This signs the person in, verifies the address, and ends the invitation. The invitation also " +
	"ends when the user gets another address, a password in another way, or a scope of this API. Users who have a " +
	"scope of this API cannot be invited: anybody who can change addresses or the mail server can read the mail, " +
	"and would get the scope."

func (a *api) registerInvitations(s *rest.Server) {
	rest.Named[invitation.Terms](s, "InvitationTerms")
	rest.Handle(s, rest.Op{
		ID: "invite-user", Method: http.MethodPost, Path: "/v1/users/{id}/invite", Scope: auth.UsersSecrets,
		Summary:      "Invite a user by mail to choose a first password",
		IfMatchParam: rest.NoRecord, Errors: append(inviteErrors, apperr.NotFound),
		Doc:     "If the user has an invitation already, this sends a new link and ends the former one. " + inviteDoc,
		Request: invitation.Terms{ExpiresHours: 72}, Response: exampleInvitation,
	}, func(ctx context.Context, in *inviteInput) (rest.Record[invitation.Invitation], error) {
		var terms invitation.Terms
		if in.Body != nil {
			terms = *in.Body
		}
		return rest.RecordOf[invitation.Invitation](a.Invitations.Invite(ctx, in.ID, terms))
	})
	rest.Handle(s, rest.Op{
		ID: "invite-users", Method: http.MethodPost, Path: "/v1/batch/users/invite", Scope: auth.UsersSecrets,
		Summary: "Invite users by mail to choose a first password", Errors: inviteErrors,
		Doc:     "Invites all users or none. The error has `ids[i]` for each who cannot be invited. " + inviteDoc,
		Request: map[string]any{"ids": []string{"1048577"}},
	}, func(ctx context.Context, in *struct{ Body InviteManyInput }) (rest.BatchOf[invitation.Invitation], error) {
		return rest.BatchFrom[invitation.Invitation](a.Invitations.InviteMany(ctx, in.Body.IDs, in.Body.Terms))
	})
	invitations := rest.Resource[invitation.Invitation, invitation.Terms, invitation.Filter]{
		Server: s, ID: "invitation", One: "an invitation", Many: "invitations", Path: "/v1/invitations",
		Read: auth.UsersRead, Write: auth.UsersSecrets,
	}
	invitations.List(rest.Op{
		Doc: "A user has at most one invitation, whose id is the user's id. It is kept for 30 days after its end.",
	}, a.Invitations.List)
	invitations.Get(rest.Op{}, a.Invitations.Get)
	invitations.Action("resend", rest.Op{
		Summary: "Send an invitation again", Errors: inviteErrors,
		Doc: "Sends a new link to the address that the user has now, and ends the former link. The new link works " +
			"for as many hours as the former one did. " + inviteDoc,
	}, a.Invitations.Resend)
	invitations.Delete(rest.Op{
		ID: "revoke-invitation", Summary: "Revoke an invitation", Doc: "Its link does not work any more.",
	}, a.Invitations.Revoke)
}

var exampleInvitation = map[string]any{
	"id": "1048577", "tenant_id": "acme", "version": 1, "email": "li.wei@acme.test", "application_id": "", "status": "pending",
	"invited_by": "client:console", "expires_hours": 72, "time_created": "2026-11-30T09:00:00.000Z",
	"time_modified": "2026-11-30T09:00:00.000Z", "time_sent": "2026-11-30T09:00:00.000Z",
	"time_expires": "2026-12-03T09:00:00.000Z", "time_ended": nil,
}

// registerInvitationPage adds the page that an invitation's link opens.
func (a *api) registerInvitationPage(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "show-invitation-page", Method: http.MethodGet, Path: below + "/invitation", ErrorPage: a.failed,
		Summary: "Show where to accept an invitation", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "Even if the query has the code, the person has to press a button: programs that read mails open links.",
	}, func(ctx context.Context, in *invitationPageInput) (rest.Page, error) {
		ctx, v, err := a.enter(ctx, &in.Visitor)
		if err != nil {
			return rest.Page{}, err
		}
		return a.invitationPage(ctx, v, http.StatusOK, page.Invitation{Code: in.Request.URL.Query().Get("code")})
	})
	rest.Handle(s, rest.Op{
		ID: "accept-invitation", Method: http.MethodPost, Path: below + "/invitation", IfMatchParam: rest.NoRecord,
		ErrorPage: a.failed, Summary: "Accept an invitation", ContentTypes: htmlOnly,
		Errors: []apperr.Kind{apperr.Forbidden}, Request: InvitationForm{"BCDF-GHJK-MNPQ-RTVW"}, Response: examplePage,
		Doc: "A good code is answered with a 303 to the page that asks for a password or a passkey. The code works " +
			"again and again until the user has one of them.",
	}, a.acceptInvitation)
}

const maxInvitationCode = 64 // bytes

// invitationPage shows the page with its code, if that can be one.
func (a *api) invitationPage(ctx context.Context, v *visit, status int, c page.Invitation) (rest.Page, error) {
	v.choose(a.language(v), "", nil, "")
	if len(c.Code) > maxInvitationCode {
		c.Code = ""
	}
	if c.Code = message.ReadCode(c.Code); len(c.Code) != message.LinkSigns {
		c.Code = ""
	}
	c.Code = message.Grouped(c.Code)
	return a.html(ctx, v, status, c)
}

// acceptInvitation leads to the page that asks for a password. Wrong codes are not counted: nobody can guess one.
func (a *api) acceptInvitation(ctx context.Context, in *invitationInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil {
		return rest.Page{}, err
	}
	code := in.Form.Get("code")
	if v.keepsNot {
		return a.invitationPage(ctx, v, http.StatusOK, page.Invitation{Code: code, Notice: "cookies"})
	}
	f, err := a.Engine.AcceptInvitation(ctx, code, v.Visitor)
	switch {
	case err != nil && apperr.KindOf(err) == apperr.Unavailable:
		a.Log.WarnContext(ctx, "somebody could not accept an invitation: a service does not answer", "error", err)
		p, err := a.invitationPage(ctx, v, http.StatusServiceUnavailable, page.Invitation{Code: code, Notice: "away"})
		p.RetryAfter = awayFor
		return p, err
	case err != nil && apperr.KindOf(err) == apperr.RateLimited:
		p, err := a.invitationPage(ctx, v, http.StatusTooManyRequests, page.Invitation{Code: code, Notice: "too_often"})
		p.RetryAfter = busyFor
		return p, err
	case err != nil:
		return rest.Page{}, err
	case f == nil:
		return a.invitationPage(ctx, v, http.StatusOK, page.Invitation{Notice: "invitation_over"})
	}
	return a.redirect(v, v.base+"/flow/"+f.ID), nil
}
