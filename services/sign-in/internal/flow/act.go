package flow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/link"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// Form is what a page's form says.
type Form struct {
	Action     string
	LoginName  string
	Password   string
	Repeated   string
	Code       string
	Name       string // of a factor
	Method     string // to set up
	Passkey    string // what the browser has answered for it, JSON
	Challenge  string // of the page that has asked for it; see Challenge
	Connection string // to another provider
	SubAccount string
	Locale     string // chosen on the page
	Language   string // of the page
}

// The actions.
const (
	ActBegin     = "begin" // of a request that another site has sent by a form
	ActSignIn    = "sign-in"
	ActPassword  = "new-password"
	ActForgot    = "forgot"    // the password
	ActSendCode  = "send-code" // to whoever has the login name
	ActCode      = "code"
	ActBack      = "back"   // to the password, or to the choice of a factor
	ActFactor    = "factor" // with a code
	ActPasskey   = "passkey"
	ActSetUp     = "set-up"     // a method
	ActAdd       = "add-factor" // with a code of the new app
	ActNewCodes  = "new-codes"
	ActKept      = "kept"      // the recovery codes
	ActLater     = "later"     // to go on without a factor
	ActName      = "name"      // which may lead to a connection
	ActLeave     = "leave"     // for the provider of a connection
	ActDirectory = "directory" // with the name and the password there
	ActLink      = "link"      // the identity there to the person
	ActSkipLink  = "skip-link"
	ActContinue  = "continue"
	ActAnother   = "another"
	ActAccount   = "account"
	ActAgree     = "agree"
	ActDeny      = "deny"
)

// pagesOf are the pages of the actions that are done only where such a page is due. The first one stands for all while
// a service does not answer.
var pagesOf = map[string][]Kind{
	ActPassword:  {ChangePassword},
	ActFactor:    {EnterFactor},
	ActSetUp:     {ChooseFactor, SetUpApp, SetUpPasskey, ChangePassword},
	ActAdd:       {SetUpApp, SetUpPasskey},
	ActNewCodes:  {AskNewCodes},
	ActLater:     {ChooseFactor, SetUpApp, SetUpPasskey, EnterFactor},
	ActName:      {SignIn},
	ActLeave:     {SignIn, EnterFactor, AskToLink, ChangePassword},
	ActDirectory: {AskDirectory},
	ActLink:      {ConfirmLink},
	ActSkipLink:  {ConfirmLink},
}

// Act does what a form says, and stores the flow. The view is what the person sees if that is not the flow's own
// page: a service does not answer, or there were too many failures; otherwise its Kind is Leave.
func (e *Engine) Act(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	f.Notice = ""
	if form.Locale != "" {
		f.Locale = form.Locale
	}
	view := View{Kind: Leave, Flow: f}
	if f.Codes != "" && form.Action != ActKept { // a form from before: the codes are shown only here
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if form.Action != ActSignIn { // wrong passwords have limits of their own
		if room, err := e.hasRoom(ctx, f, v); err != nil || !room {
			view.Kind = TooMany
			return view, err
		}
	}
	now := View{}
	if pages := pagesOf[form.Action]; len(pages) > 0 {
		var err error
		if now, err = e.pageOf(ctx, f, v); err != nil {
			view.SentFrom = pages[0]
			return unlessAway(view, err)
		}
		if !slices.Contains(pages, now.Kind) { // a form from before
			return view, e.save(ctx, f, v.Browser, nil)
		}
	}
	var err error
	switch form.Action {
	case ActBegin:
	case ActSignIn:
		return e.prove(ctx, f, proof.Password, form, v)
	case ActPasskey:
		return e.prove(ctx, f, proof.Passkey, form, v)
	case ActPassword:
		return e.newPassword(ctx, f, now, form, v)
	case ActForgot:
		err = e.forgot(ctx, f, form)
	case ActSendCode:
		return e.sendCode(ctx, f, form, v)
	case ActCode:
		return e.enterCode(ctx, f, form, v)
	case ActFactor:
		return e.showFactor(ctx, f, now, proof.App, form, v)
	case ActSetUp:
		return e.setUp(ctx, f, now, form, v)
	case ActAdd:
		return e.addFactor(ctx, f, now, form, v)
	case ActNewCodes:
		return e.renewCodes(ctx, f, now, v)
	case ActKept:
		return e.kept(ctx, f, v)
	case ActLater:
		return e.later(ctx, f, now, v)
	case ActName:
		return e.named(ctx, f, now, form, v)
	case ActLeave:
		return e.leave(ctx, f, now, form, v)
	case ActDirectory:
		return e.enterDirectory(ctx, f, now, form, v)
	case ActLink:
		return e.link(ctx, f, now, v)
	case ActSkipLink:
		return e.skipLink(ctx, f, now, v)
	case ActBack:
		if f.Recovering == RecoverAsk || f.Recovering == RecoverCode {
			f.Recovering = ""
		}
		f.Setup, f.SetupType, f.Directory = "", "", ""
	case ActContinue:
		err = e.continueSession(ctx, f, v)
	case ActAnother:
		f.forgetPerson()
		f.Another, f.LoginName, f.Named, f.Linking, f.Directory = true, "", false, "", ""
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

// prove checks what a person has sent for a method that says who the person is. A password may come by a form from
// before, since whoever has one can begin anew with it.
func (e *Engine) prove(ctx context.Context, f *Flow, method string, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	now, err := e.pageOf(ctx, f, v)
	if err != nil {
		return unlessAway(view, err)
	}
	if now.Kind == EnterFactor && slices.Contains(now.Methods, method) {
		return e.showFactor(ctx, f, now, method, form, v)
	}
	begins, asked := now.demand.Begins(method), now.Kind == SignIn && slices.Contains(now.Methods, method)
	if method == proof.Passkey {
		asked = e.asksPasskey(now)
	}
	if !asked && (!begins || method != proof.Password) { // nor is it where the application is unknown
		if room, err := e.hasRoom(ctx, f, v); err != nil || !room {
			view.Kind = TooMany
			return view, err
		}
		return view, e.save(ctx, f, v.Browser, nil)
	}
	who := *f
	who.UserID = ""
	if method == proof.Password {
		name := strings.TrimSpace(form.LoginName)
		f.LoginName = name[:min(len(name), maxLoginName)]
		who.LoginName = f.LoginName
	}
	done, err := e.check(ctx, method, &who, form, v)
	if err == nil && done.User != nil && !begins && done.User.ID != now.subject.userID {
		done = Proven{Notice: wrong[method]} // nobody else can begin with it
	}
	switch {
	case err != nil:
		return unlessAway(view, err)
	case done.TooMany:
		view.Kind = TooMany
		return view, nil
	case done.User == nil:
		return view, e.refused(ctx, f, done, v)
	}
	return e.proven(ctx, f, now, asked, done, v)
}

// proven goes on with a person who has shown who they are. now is what the person saw before; asked says that it was a
// page that asks for this.
func (e *Engine) proven(ctx context.Context, f *Flow, now View, asked bool, done Proven, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if asked && done.User.ID == now.subject.userID {
		f.stepUpFrom(now)
	}
	if err := e.keepProofs(ctx, f, done.User, v); err != nil {
		return View{}, err
	}
	if source := now.insteadOfPassword(f, proof.Add(f.Proofs, done.Proof), done.User); source != nil {
		return e.leaveInstead(ctx, f, source, v)
	}
	f.UserID, f.LoginName = done.User.ID, cmp.Or(done.LoginName, f.LoginName)
	f.MustChange, f.Recovering, f.OwnProof = done.MustChangePassword, "", f.OwnProof || done.OwnProof
	f.TimePasswordChanged = done.User.TimePasswordChanged
	if !f.MustChange || done.Proof.Method != proof.Password { // the new password takes the place of the old one
		f.Proofs = proof.Add(f.Proofs, done.Proof)
	}
	if f.MustChange {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	now.subject.set = nil // it may be of another user
	return e.goOn(ctx, f, done, now, v)
}

// wrong are the notices of what is refused, by method.
var wrong = map[string]string{proof.Password: NoticeWrong, proof.Passkey: NoticePasskey}

// refused stores a flow of somebody who has shown nothing that is good.
func (e *Engine) refused(ctx context.Context, f *Flow, done Proven, v Visitor) error {
	f.MustChange, f.Recovering = false, ""
	if !f.signedIn() {
		f.forgetPerson()
	}
	f.Notice = done.Notice
	// Whoever tries to sign in as somebody else must not silently go on as before.
	before, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return err
	}
	f.Another = f.Another || before != nil
	return e.save(ctx, f, v.Browser, tellFailed(f, v, done.Notice))
}

// keepProofs drops the proofs of a flow that count no more: what somebody else has shown, what a session rested on that
// has ended, what was shown too long ago for what the person has come for, or a password that was replaced.
func (e *Engine) keepProofs(ctx context.Context, f *Flow, user *person.User, v Visitor) error {
	restsOn, stays := f.restsOn(), f.UserID == user.ID && !e.tooLate(f) && !(f.StepUpOf != "" && e.tooOld(f))
	if stays && restsOn != "" {
		s, err := e.Sessions.Of(ctx, v.Cookie)
		if err != nil {
			return err
		}
		stays = s != nil && s.ID == restsOn
	}
	if !stays {
		f.forgetPerson()
		return nil
	}
	f.Proofs = slices.DeleteFunc(slices.Clone(f.Proofs), func(p proof.Proof) bool {
		return proof.RestsOn([]proof.Proof{p}, proof.Password, user.TimePasswordChanged)
	})
	var err error
	f.Proofs, _, err = e.existing(ctx, f)
	return err
}

// errOvertaken says that a sign-in has come to nothing: meanwhile the person has another password, or may not sign in
// any more.
var errOvertaken = errors.New("the user has changed during the sign-in")

// enter makes the session of a person who has proven who it is, and stores the flow. If that is so no more, the flow
// says what it says of a wrong password.
func (e *Engine) enter(ctx context.Context, f *Flow, done Proven, v Visitor) (View, error) {
	view, err := e.begin(ctx, f, done, v)
	if errors.Is(err, errOvertaken) {
		f.forgetPerson()
		f.Notice = NoticeWrong
		return View{Kind: Leave, Flow: f}, e.save(ctx, f, v.Browser, tellFailed(f, v, NoticeWrong))
	}
	return view, err
}

// begin makes the session of a person who has proven who it is. The error is errOvertaken if that is so no more.
func (e *Engine) begin(ctx context.Context, f *Flow, done Proven, v Visitor) (View, error) {
	ctx = As(ctx, v.Issuer, done.User.ID)
	s, cookies, err := e.Sessions.Begin(ctx, session.SignIn{
		UserID: done.User.ID, Proofs: f.Proofs, GoesOn: f.restsOn(), Address: v.Address, Browser: v.UserAgent(),
		BrowserHash: v.Browser,
	}, v.Cookie, func(ctx context.Context, tx *docstore.Tx) error {
		return e.keep(ctx, tx, f.Proofs, done)
	})
	if errors.Is(err, session.ErrEnded) {
		err = errOvertaken
	}
	if err != nil {
		return View{}, err
	}
	// After the session is there: what ends a link later ends the session, too.
	counts, err := link.Begins(ctx, e.Store, f.Proofs)
	if err == nil && !counts {
		if _, err = e.Sessions.End(ctx, s.ID, session.LinkGone); err == nil || apperr.IsNotFound(err) {
			err = errOvertaken
		}
	}
	if err != nil {
		return View{}, err
	}
	f.SessionID, f.ACR, f.MustChange, f.Another, f.Recovering = s.ID, s.ACR, false, false, ""
	// Of two forms that were sent at once, the browser may only take the cookies of the later one.
	view := View{Kind: Leave, Flow: f, Session: s, User: done.User, Cookies: cookies}
	return view, e.store(ctx, f, v.Browser, nil, nil)
}

// keep stores the copy of the person, and makes sure that the newest copy bears the sign-in: the event about a change
// has ended only the sessions that there were.
func (e *Engine) keep(ctx context.Context, tx *docstore.Tx, proofs []proof.Proof, done Proven) error {
	kept, err := person.Keep(ctx, tx, done.User.ID, done.SignedIn)
	if apperr.IsNotFound(err) { // deleted
		return errOvertaken
	}
	if err != nil {
		return err
	}
	now, err := person.Parse(kept.User)
	if err != nil {
		return err
	}
	if now.Gone(tx.Now) || proof.RestsOn(proofs, proof.Password, now.TimePasswordChanged) {
		return errOvertaken
	}
	exist, err := link.Begins(ctx, tx, proofs)
	if err == nil && exist && shownFactor(proofs) {
		exist, err = factor.Hold(ctx, tx, done.User.ID, proofs)
	}
	if err == nil && !exist {
		err = errOvertaken
	}
	return err
}

// withPassword is who has just set a password.
func (e *Engine) withPassword(in questions.SignedIn) (Proven, error) {
	user, err := person.Parse(in.User)
	if err != nil {
		return Proven{}, err
	}
	by := proof.ByPassword(e.Store.Now(), user.TimePasswordChanged)
	return Proven{User: user, Proof: by, SignedIn: in}, nil
}

// newPassword sets the password that must be changed before the person is signed in.
func (e *Engine) newPassword(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if form.Password != form.Repeated {
		f.Notice = NoticeDiffers
		return view, e.save(ctx, f, v.Browser, nil)
	}
	still, err := e.stillMay(ctx, f)
	if err != nil {
		return unlessAway(view, err)
	}
	switch {
	case !still && f.Recovering == Invited:
		f.endInvitation()
		return view, e.save(ctx, f, v.Browser, nil)
	case !still:
		f.forgetPerson()
		f.Recovering, f.Notice = RecoverAsk, NoticeCode
		return view, e.save(ctx, f, v.Browser, nil)
	}
	proven := questions.NewPassword{UserID: f.UserID, TimePasswordChanged: f.TimePasswordChanged}
	if f.Recovering == Invited {
		proven.Email = f.RecoveredTo
	}
	in, err := e.users.setPassword(ctx, form.Password, proven)
	switch apperr.KindOf(err) {
	case apperr.InvalidParameters:
		f.Notice = NoticePassword
		return view, e.save(ctx, f, v.Browser, nil)
	case apperr.InvalidState, apperr.NotFound:
		if f.Recovering == Invited {
			f.endInvitation()
		} else {
			f.forgetPerson()
			f.Notice = NoticeWrong
		}
		return view, e.save(ctx, f, v.Browser, nil)
	}
	if err != nil {
		return unlessAway(view, err)
	}
	done, err := e.withPassword(in)
	if err != nil {
		return View{}, err
	}
	if f.Recovering == Invited && !shownFactor(f.Proofs) { // a passkey was set up by the same link meanwhile, perhaps
		set, err := e.Factors.Of(ctx, f.UserID)
		if err != nil {
			return View{}, err
		}
		if set.Any() {
			f.endInvitation()
			return view, e.save(ctx, f, v.Browser, nil)
		}
	}
	f.Proofs, f.MustChange, f.Recovering = proof.Add(f.Proofs, done.Proof), false, ""
	return e.goOn(ctx, f, done, now, v)
}

var errTooMany = apperr.New(apperr.RateLimited, "there were too many wrong passwords")

// ErrPassword says that a new password is refused; what it wraps says why.
var ErrPassword = errors.New("the new password is refused")

// ChangePassword gives a person who is signed in a new password: the old one proves who it is. Other sessions end, and
// the person's goes on with a new cookie. The error is ErrPassword, apperr.Unauthenticated (the old one is wrong),
// RateLimited, or Unavailable.
func (e *Engine) ChangePassword(ctx context.Context, s *session.Session, loginName, old, next string, v Visitor,
) (session.Cookies, error) {
	var none session.Cookies
	attempt, err := e.Admit(ctx, Password, v, loginName)
	if err != nil {
		return none, err
	}
	if attempt == nil {
		return none, errTooMany
	}
	login, err := e.verify(ctx, loginName, old, v)
	if err != nil {
		return none, err
	}
	user, err := person.Parse(orNull(login.User))
	if err != nil {
		return none, err
	}
	if !login.Verified || user.ID != s.UserID {
		told, err := attempt.Settle(ctx, false)
		if err != nil {
			return none, err
		}
		if !told {
			return none, errTooMany
		}
		return none, apperr.New(apperr.Unauthenticated, "the password is wrong")
	}
	in, err := e.users.setPassword(ctx, next,
		questions.NewPassword{UserID: s.UserID, TimePasswordChanged: user.TimePasswordChanged})
	if apperr.KindOf(err) == apperr.InvalidParameters && err != nil {
		return none, errors.Join(ErrPassword, err)
	}
	if err != nil {
		return none, err
	}
	done, err := e.withPassword(in) // the session goes on with it
	if err != nil {
		return none, err
	}
	f := Begin(OwnRequest(false))
	f.Proofs, f.StepUpOf = proof.Add(s.Shown(), done.Proof), s.ID
	view, err := e.begin(ctx, f, done, v)
	if errors.Is(err, errOvertaken) {
		err = apperr.New(apperr.Unauthenticated, "the password has changed meanwhile")
	}
	if err != nil {
		return none, err
	}
	return view.Cookies, e.Sessions.EndOthers(As(ctx, v.Issuer, s.UserID), s.UserID, view.Session.ID,
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

// agree notes the consent of the person who is signed in, if it is asked for.
func (e *Engine) agree(ctx context.Context, f *Flow, v Visitor) error {
	s, err := e.Sessions.Of(ctx, v.Cookie)
	if err != nil || s == nil {
		return err
	}
	if now, _, err := e.nextStep(ctx, f, s, v); err != nil || now.Kind != Consent {
		return err
	}
	f.Consented = true
	return e.Consents.Give(As(ctx, v.Issuer, s.UserID), s.UserID, f.AppID, f.Request.Consents,
		consent.From{Address: v.Address, Browser: v.UserAgent()})
}
