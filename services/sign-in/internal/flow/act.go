package flow

import (
	"context"
	"errors"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// Form is what a page's form says.
type Form struct {
	Action     string
	LoginName  string
	Password   string
	Repeated   string
	SubAccount string
	Locale     string
}

// The actions.
const (
	ActBegin    = "begin" // of a request that another site has sent by a form
	ActSignIn   = "sign-in"
	ActPassword = "new-password"
	ActContinue = "continue"
	ActAnother  = "another"
	ActAccount  = "account"
	ActAgree    = "agree"
	ActDeny     = "deny"
)

// Act does what a form says, and stores the flow. The view is what the person sees if that is not the flow's own
// page: a service does not answer, or there were too many failures; otherwise its Kind is Leave.
func (e *Engine) Act(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	f.Notice = ""
	if form.Locale != "" {
		f.Locale = form.Locale
	}
	view := View{Kind: Leave, Flow: f}
	if form.Action == ActSignIn {
		return e.signIn(ctx, f, form, v)
	}
	room, err := e.hasRoom(ctx, f, v)
	if err != nil {
		return View{}, err
	}
	if !room {
		view.Kind = TooMany
		return view, nil
	}
	switch form.Action {
	case ActBegin:
	case ActPassword:
		return e.newPassword(ctx, f, form, v)
	case ActContinue:
		err = e.continueSession(ctx, f, v)
	case ActAnother:
		f.SessionID, f.UserID, f.Another, f.MustChange, f.Proofs, f.LoginName = "", "", true, false, []Proof{}, ""
	case ActAccount:
		f.SubAccount = form.SubAccount
	case ActAgree:
		err = e.agree(ctx, f, v)
	case ActDeny:
		f.Denied = true
	default:
		return View{}, apperr.Invalid("action", "is not one of the page's")
	}
	if err != nil {
		return unlessAway(view, err)
	}
	return view, e.save(ctx, f, v.Browser, nil)
}

// unlessAway is the page for a service that does not answer; other errors stay.
func unlessAway(view View, err error) (View, error) {
	if apperr.KindOf(err) != apperr.Unavailable {
		return View{}, err
	}
	view.Kind, view.err = Away, err
	return view, nil
}

// Err is why a view is Away, for the log.
func (v View) Err() error { return v.err }

func (e *Engine) signIn(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	f.LoginName = strings.TrimSpace(form.LoginName)
	view := View{Kind: Leave, Flow: f}
	attempt, err := e.Admit(ctx, Password, v, f.LoginName[:min(len(f.LoginName), maxLoginName)])
	if err != nil {
		return unlessAway(view, err)
	}
	if attempt == nil {
		view.Kind = TooMany
		return view, nil
	}
	login := questions.LoginVerified{}
	if f.LoginName != "" && len(f.LoginName) <= maxLoginName && form.Password != "" &&
		len(form.Password) <= maxPassword {
		if login, err = e.verify(ctx, f.LoginName, form.Password, v); err != nil {
			return unlessAway(view, err)
		}
	} else {
		f.LoginName = f.LoginName[:min(len(f.LoginName), maxLoginName)]
	}
	told, err := attempt.Settle(ctx, login.Verified)
	if err != nil {
		return View{}, err
	}
	if !told {
		view.Kind = TooMany
		return view, nil
	}
	if !login.Verified {
		f.Notice, f.MustChange = NoticeWrong, false
		// Whoever tries to sign in as somebody else must not silently go on as before.
		before, err := e.Sessions.Of(ctx, v.Cookie)
		if err != nil {
			return View{}, err
		}
		f.Another = f.Another || before != nil
		return view, e.save(ctx, f, v.Browser, tellFailed(f, v))
	}
	user, err := person.Parse(login.User)
	if err != nil {
		return View{}, err
	}
	f.UserID, f.MustChange, f.TimePasswordChanged = user.ID, login.MustChangePassword, user.TimePasswordChanged
	if f.MustChange {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	return e.begin(ctx, f, user, login.SignedIn, v)
}

// begin makes the session of a person who has proven who it is.
func (e *Engine) begin(ctx context.Context, f *Flow, user *person.User, in questions.SignedIn, v Visitor,
) (View, error) {
	ctx = As(ctx, v.Issuer, user.ID)
	s, cookie, err := e.Sessions.Begin(ctx, session.SignIn{
		UserID: user.ID, ACR: aal1, AMR: []string{"pwd"}, Address: v.Address, Browser: v.UserAgent(),
		BrowserHash:         v.Browser,
		TimePasswordChanged: user.TimePasswordChanged,
	}, v.Cookie, func(ctx context.Context, tx *docstore.Tx) error { return person.Keep(ctx, tx, user.ID, in) })
	if err != nil {
		return View{}, err
	}
	f.SessionID, f.ACR, f.MustChange, f.Another = s.ID, s.ACR, false, false
	f.Proofs = append(f.Proofs, Proof{"password", s.TimeSignedIn})
	return View{Kind: Leave, Flow: f, Session: s, User: user, Cookie: cookie}, e.save(ctx, f, v.Browser, nil)
}

// newPassword sets the password that must be changed before the person is signed in.
func (e *Engine) newPassword(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if !f.MustChange || f.UserID == "" { // a form from before
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if form.Password != form.Repeated {
		f.Notice = NoticeDiffers
		return view, e.save(ctx, f, v.Browser, nil)
	}
	in, err := e.users.setPassword(ctx, f.UserID, form.Password, f.TimePasswordChanged)
	switch apperr.KindOf(err) {
	case apperr.InvalidParameters:
		f.Notice = NoticePassword
		return view, e.save(ctx, f, v.Browser, nil)
	case apperr.InvalidState, apperr.NotFound:
		f.MustChange, f.Notice = false, NoticeWrong
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if err != nil {
		return unlessAway(view, err)
	}
	user, err := person.Parse(in.User)
	if err != nil {
		return View{}, err
	}
	return e.begin(ctx, f, user, in, v)
}

var errTooMany = apperr.New(apperr.RateLimited, "there were too many wrong passwords")

// ErrPassword says that a new password is refused; what it wraps says why.
var ErrPassword = errors.New("the new password is refused")

// ChangePassword gives a person who is signed in a new password: the old one proves who it is. Other sessions end, and
// the person's goes on with a new cookie. The error is ErrPassword, apperr.Unauthenticated (the old one is wrong),
// RateLimited, or Unavailable.
func (e *Engine) ChangePassword(ctx context.Context, s *session.Session, loginName, old, next string, v Visitor,
) (cookie string, err error) {
	attempt, err := e.Admit(ctx, Password, v, loginName)
	if err != nil {
		return "", err
	}
	if attempt == nil {
		return "", errTooMany
	}
	login, err := e.verify(ctx, loginName, old, v)
	if err != nil {
		return "", err
	}
	user, err := person.Parse(orNull(login.User))
	if err != nil {
		return "", err
	}
	if !login.Verified || user.ID != s.UserID {
		told, err := attempt.Settle(ctx, false)
		if err != nil {
			return "", err
		}
		if !told {
			return "", errTooMany
		}
		return "", apperr.New(apperr.Unauthenticated, "the password is wrong")
	}
	in, err := e.users.setPassword(ctx, s.UserID, next, user.TimePasswordChanged)
	if apperr.KindOf(err) == apperr.InvalidParameters && err != nil {
		return "", errors.Join(ErrPassword, err)
	}
	if err != nil {
		return "", err
	}
	if user, err = person.Parse(in.User); err != nil { // the session goes on with the new password
		return "", err
	}
	view, err := e.begin(ctx, Begin(OwnRequest(false)), user, in, v)
	if err != nil {
		return "", err
	}
	return view.Cookie, e.Sessions.EndOthers(As(ctx, v.Issuer, s.UserID), s.UserID, view.Session.ID,
		session.NewPassword)
}

// continueSession takes the browser's session for the request.
func (e *Engine) continueSession(ctx context.Context, f *Flow, v Visitor) error {
	s, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil || s == nil {
		return err
	}
	f.Another, f.Request.SelectAccount = false, false
	return nil
}

// agree notes the consent of the person who is signed in.
func (e *Engine) agree(ctx context.Context, f *Flow, v Visitor) error {
	s, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil || s == nil {
		return err
	}
	f.Consented = true
	return e.Consents.Give(As(ctx, v.Issuer, s.UserID), s.UserID, f.AppID, f.Request.Consents,
		consent.From{Address: v.Address, Browser: v.UserAgent()})
}
