package flow

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// A link may be opened so often. Only who has it can use this up.
const (
	opensAtOnce    = 20
	opensPerSecond = 1.0 / 60
)

var errOpened = apperr.New(apperr.RateLimited, "the invitation was opened too often")

// AcceptInvitation begins the flow of a person who has an invitation's code: it asks for a first password, which signs
// them in. nil says that the code is wrong, or has ended. The error may be apperr.Unavailable, or RateLimited.
func (e *Engine) AcceptInvitation(ctx context.Context, code string, v Visitor) (*Flow, error) {
	opened, err := e.Invitations.Open(ctx, code)
	if err != nil || opened == nil {
		return nil, err
	}
	if e.opened.Take(opened.LinkID) > 0 {
		return nil, errOpened
	}
	r, err := afterInvitation(opened.User.ID, opened.AppID)
	if err != nil {
		return nil, err
	}
	f := Begin(r)
	f.UserID, f.LoginName = opened.User.ID, opened.User.Username
	f.TimePasswordChanged = opened.User.TimePasswordChanged
	f.Recovering, f.Invitation, f.RecoveredTo, f.Another = Invited, opened.LinkID, opened.Email, true
	return f, e.save(ctx, f, v.Browser, nil)
}

// afterInvitation is what follows once the person is signed in: the application, or the person's own page.
func afterInvitation(userID, appID string) (protocol.Request, error) {
	if appID == "" {
		return OwnRequest(false), nil
	}
	r, err := Change{UserID: userID, Action: OpenApplication, ID: appID}.Request()
	r.Fresh = false
	return r, err
}

// endInvitation lets the person sign in, and says that the invitation does not serve.
func (f *Flow) endInvitation() {
	f.forgetPerson()
	f.Notice = NoticeLink
}
