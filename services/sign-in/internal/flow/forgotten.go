package flow

import (
	"context"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/recovery"
)

// offerRecovery says whether a person who is to sign in can have a code by mail, and shows the step if that has begun.
func (e *Engine) offerRecovery(ctx context.Context, view *View) {
	if view.Recovers = !view.App.NoMailRecovery && e.Recovery.Available(ctx); !view.Recovers {
		return
	}
	switch view.Flow.Recovering {
	case RecoverAsk:
		view.Kind = Forgotten
	case RecoverCode:
		view.Kind = EnterCode
	}
}

// mayRecover reports whether a form may go on to recover.
func (e *Engine) mayRecover(ctx context.Context, f *Flow) (bool, error) {
	view := View{Flow: f}
	if err := e.loadClient(ctx, &view); err != nil || view.Kind == Unknown || len(view.Methods) > 0 {
		return false, err
	}
	e.offerRecovery(ctx, &view)
	return view.Recovers, nil
}

// forgot shows the page that asks for the login name.
func (e *Engine) forgot(ctx context.Context, f *Flow, form Form) error {
	may, err := e.mayRecover(ctx, f)
	if err != nil || !may {
		return err
	}
	if name := strings.TrimSpace(form.LoginName); name != "" && len(name) <= maxLoginName {
		f.LoginName = name
	}
	f.forgetPerson()
	f.Recovering = RecoverAsk
	return nil
}

// sendCode has a code sent to whoever has the login name. The page that follows is the same for every name.
func (e *Engine) sendCode(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	name := strings.TrimSpace(form.LoginName)
	may, err := e.mayRecover(ctx, f)
	if err != nil {
		return unlessAway(view, err)
	}
	if !may || name == "" || len(name) > maxLoginName {
		return view, e.save(ctx, f, v.Browser, nil)
	}
	f.LoginName = name
	known, err := e.Sessions.KnownTo(ctx, v.Browser)
	if err != nil {
		return View{}, err
	}
	again := f.Recovering == RecoverCode
	f.forgetPerson()
	f.Recovering = RecoverCode
	if !e.mayAsk(v, len(known) > 0) {
		view.Kind = TooMany
		return view, nil
	}
	if again {
		f.Notice = NoticeSent
	}
	request := recovery.Request{LoginName: name, Locale: form.Language, Browser: v.Browser, KnownTo: known}
	return view, e.save(ctx, f, v.Browser, func(ctx context.Context, tx *docstore.Tx, doc *docstore.Doc[Flow]) error {
		return e.Recovery.Ask(ctx, tx, doc.ID, request)
	})
}

// The codes that an address, or a browser in which somebody has signed in before, may ask for: many people of one
// office at once. Addresses count over all tenants, since a stranger can invent tenants.
const (
	codesAtOnce    = 60
	codesPerSecond = 0.2
	maxCodesKnown  = 10
)

// mayAsk reports whether a visitor may ask for a code. What others of the address have asked for does not count for a
// browser that is known.
func (e *Engine) mayAsk(v Visitor, known bool) bool {
	address, _ := addressOf(v)
	return address == "" || e.codes.Take(address) == 0 || known && e.codesOfKnown.Take(v.Browser) == 0
}

// enterCode checks a code. If it is right, the person chooses a new password next, which signs them in.
func (e *Engine) enterCode(ctx context.Context, f *Flow, form Form, v Visitor) (View, error) {
	view := View{Kind: Leave, Flow: f}
	if f.ID == "" { // a form from before; a flow without a code has no ticket
		return view, e.save(ctx, f, v.Browser, nil)
	}
	attempt, err := e.Admit(ctx, MailCode, v, f.LoginName)
	if err != nil {
		return unlessAway(view, err)
	}
	if attempt == nil {
		view.Kind = TooMany
		return view, nil
	}
	right, err := e.Recovery.Try(ctx, f.ID, form.Code)
	if err != nil {
		return unlessAway(view, err)
	}
	told, err := attempt.Settle(ctx, right != nil)
	if err != nil {
		return unlessAway(view, err)
	}
	switch {
	case !told:
		view.Kind = TooMany
		return view, nil
	case right == nil:
		f.Notice = NoticeCode
		return view, e.save(ctx, f, v.Browser, tellFailed(f, v, NoticeCode))
	}
	f.forgetPerson()
	f.UserID, f.TimePasswordChanged = right.UserID, right.TimePasswordChanged
	f.MustChange, f.Recovering, f.Another = true, Recovered, true
	f.LoginName, f.RecoveredTo, f.RecoverEnds = right.LoginName, right.To, e.Store.Now().Add(timeToChoose)
	return view, e.save(ctx, f, v.Browser, func(ctx context.Context, tx *docstore.Tx, _ *docstore.Doc[Flow]) error {
		return e.Recovery.Spend(ctx, tx, f.ID)
	})
}

// timeToChoose is how long a person has for a new password once the code was right.
const timeToChoose = 10 * time.Minute

// stillMay reports whether a code or a link that was good is good for a new password still; true without one.
func (e *Engine) stillMay(ctx context.Context, f *Flow) (bool, error) {
	switch f.Recovering {
	case Recovered:
		if !e.Store.Now().Before(f.RecoverEnds) {
			return false, nil
		}
		return e.Recovery.Still(ctx, f.UserID, f.LoginName, f.RecoveredTo)
	case Invited:
		opened, err := e.Invitations.Still(ctx, f.Invitation)
		return err == nil && opened != nil && opened.User.ID == f.UserID && opened.Email == f.RecoveredTo, err
	}
	return true, nil
}
