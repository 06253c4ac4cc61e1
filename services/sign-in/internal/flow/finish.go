package flow

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/link"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// As returns a context in which a person acts.
func As(ctx context.Context, issuer, userID string) context.Context {
	info := request.From(ctx)
	info.Actor = issuer + "#" + userID
	return request.With(ctx, info)
}

// grant finishes a flow: the application gets the person. The flow is over before the application's answer is made, so
// that no reload makes a second one.
func (e *Engine) grant(ctx context.Context, view View, v Visitor) (View, error) {
	f, s := view.Flow, view.Session
	p, err := e.protocolOf(f)
	if err != nil {
		return View{}, err
	}
	ctx = As(ctx, v.Issuer, s.UserID)
	if over, err := e.finish(ctx, f, v); err != nil || over {
		if over {
			return e.Show(ctx, f.again(), v)
		}
		return View{}, err
	}
	err = e.Sessions.Enter(ctx, s, session.Application{AppID: f.AppID, Protocol: f.Protocol}, entry(view, v))
	if err != nil {
		return View{}, err
	}
	copied, err := person.Find(ctx, e.Store, s.UserID)
	if err != nil {
		return View{}, err
	}
	who := personOf(copied.User, s)
	who.New = len(f.Proofs) > 0
	if len(view.Accounts) > 0 {
		who.SubAccount = &protocol.SubAccount{Account: view.Accounts[0].Account,
			DisplayName: view.Accounts[0].DisplayName}
	}
	view.Answer, err = p.Grant(ctx, v.Issuer, f.Request, who)
	return answered(view, err)
}

// answered is a view whose answer a protocol has made, or could not make.
func answered(view View, err error) (View, error) {
	if refused, ok := errors.AsType[*protocol.AnswerError](err); ok {
		view.Answer, err = refused.Answer, nil
	}
	view.Kind = Leave
	if errors.Is(err, protocol.ErrUnknown) {
		view.Kind, err = Unknown, nil
	}
	return view, err
}

// refuse finishes a flow without a person.
func (e *Engine) refuse(ctx context.Context, view View, v Visitor, why protocol.Refusal) (View, error) {
	p, err := e.protocolOf(view.Flow)
	if err != nil {
		return View{}, err
	}
	if _, err := e.finish(ctx, view.Flow, v); err != nil {
		return View{}, err
	}
	view.Answer, err = p.Refuse(ctx, v.Issuer, view.Flow.Request, why)
	return answered(view, err)
}

// finish marks a stored flow as over, and reports whether it was already.
func (e *Engine) finish(ctx context.Context, f *Flow, v Visitor) (over bool, err error) {
	if f.ID == "" {
		return false, nil
	}
	done := *f
	done.Finished, done.Notice = true, ""
	err = e.save(ctx, &done, v.Browser, nil)
	if kind := apperr.KindOf(err); err != nil && (kind == apperr.VersionMismatch || kind == apperr.NotFound) {
		return true, nil
	}
	return false, err
}

func entry(view View, v Visitor) session.Entry {
	return session.Entry{
		AppID: view.Flow.AppID, Protocol: view.Flow.Protocol, FlowID: view.Flow.ID, Address: v.Address,
		Browser: v.UserAgent(), Fresh: len(view.Flow.Proofs) > 0, Reason: view.Reason, RuleID: view.RuleID,
	}
}

const maxAgent = 512 // bytes

// UserAgent is the header of that name, up to 512 bytes.
func (v Visitor) UserAgent() string { return v.Agent[:min(len(v.Agent), maxAgent)] }

// tellRefused tells of a refusal, once for a flow.
func (e *Engine) tellRefused(ctx context.Context, view View, v Visitor) error {
	f := view.Flow
	if f.Told {
		return nil
	}
	ctx = As(ctx, v.Issuer, view.Session.UserID)
	if f.ID != "" {
		f.Told = true
		err := e.save(ctx, f, v.Browser, nil)
		if err != nil && apperr.KindOf(err) == apperr.VersionMismatch { // another request tells it
			return nil
		}
		if err != nil {
			return err
		}
	}
	return e.Sessions.Refuse(ctx, view.Session, entry(view, v))
}

// personOf is who an application is told about.
func personOf(user json.RawMessage, s *session.Session) protocol.Person {
	return protocol.Person{
		UserID: s.UserID, User: user, SessionID: s.ID, AuthTime: s.TimeSignedIn, ACR: s.ACR,
		AMR: s.AMR, SessionEnds: s.TimeEnds, Proofs: s.Shown(),
	}
}

// Person returns a user as of now, for a session, or for none if sessionID is empty. The error is apperr.NotFound if
// there is no such user or session, or the session is not the user's, and Forbidden if the user may not sign in.
func (e *Engine) Person(ctx context.Context, userID, sessionID string) (protocol.Person, error) {
	s := &session.Session{UserID: userID}
	if sessionID != "" {
		var err error
		if s, err = e.Sessions.Find(ctx, sessionID); err != nil {
			return protocol.Person{}, err
		}
		if s.UserID != userID {
			return protocol.Person{}, apperr.Missing("session")
		}
	}
	copied, err := person.Find(ctx, e.Store, userID)
	if err != nil {
		return protocol.Person{}, err
	}
	u, err := person.Parse(copied.User)
	if err != nil {
		return protocol.Person{}, err
	}
	if u.Gone(e.Store.Now()) {
		return protocol.Person{}, apperr.New(apperr.Forbidden, "the user may not sign in")
	}
	p := personOf(copied.User, s)
	p.TimePasswordSet = u.TimePasswordChanged
	return p, nil
}

// Exist reports whether the factors and links behind a user's proofs are still there.
func (e *Engine) Exist(ctx context.Context, userID string, proofs []proof.Proof) (bool, error) {
	if exist, err := e.Factors.AllExist(ctx, userID, proofs); err != nil || !exist {
		return false, err
	}
	return link.Counts(ctx, e.Store, proofs)
}

// Groups returns the groups of a user (questions.Groups). The error is apperr.Unavailable.
func (e *Engine) Groups(ctx context.Context, userID string) ([]string, error) {
	answer, err := questions.GroupsOfUser.Ask(ctx, e.Bus, questions.GroupsQuestion{UserID: userID})
	return answer.Groups, err
}

// Holds returns those scopes of the platform's API that a user has in an application (questions.HeldScopes). The error
// is apperr.Unavailable.
func (e *Engine) Holds(ctx context.Context, userID, appID string, scopes []string) ([]string, error) {
	answer, err := questions.HeldScopes.Ask(ctx, e.Bus,
		questions.ScopesQuestion{UserID: userID, AppID: appID, Scopes: scopes})
	return answer.Scopes, err
}

// MayUse returns nil if a user may use an application. The error is apperr.Forbidden, or Unavailable.
func (e *Engine) MayUse(ctx context.Context, userID, appID string) error {
	may, err := questions.MayUse.Ask(ctx, e.Bus, questions.Use{UserID: userID, AppID: appID})
	if err == nil && !may.Allowed {
		return apperr.New(apperr.Forbidden, "the user may not use the application")
	}
	return err
}

// Usable returns the applications that a user may open from a list, of those of client.Clients.Launchable. The error is
// apperr.Unavailable.
func (e *Engine) Usable(ctx context.Context, userID string) ([]questions.Launchable, error) {
	all, err := e.Clients.Launchable(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.ID
	}
	may, err := questions.Usable.Ask(ctx, e.Bus, questions.UsableQuestion{UserID: userID, AppIDs: ids})
	if err != nil {
		return nil, err
	}
	allowed := make(map[string]bool, len(may.IDs))
	for _, id := range may.IDs {
		allowed[id] = true
	}
	var usable []questions.Launchable
	for _, a := range all {
		if allowed[a.ID] {
			usable = append(usable, a)
		}
	}
	return usable, nil
}

// reasons are why a sign-in has failed, as events tell, by what the page says.
var reasons = map[string]string{
	NoticeWrong: "invalid_credentials", NoticeCode: "invalid_code", NoticeFactor: "invalid_factor",
	NoticeBlocked: "factor_blocked", NoticePasskey: "invalid_passkey", NoticeNotLinked: "not_linked",
	NoticeForeign: "refused_link",
}

// tellFailed tells of a wrong password or code, without the login name: people type passwords into the wrong field. It
// tells the user who has shown a password before.
func tellFailed(f *Flow, v Visitor, notice string) func(context.Context, *docstore.Tx, *docstore.Doc[Flow]) error {
	return func(ctx context.Context, tx *docstore.Tx, doc *docstore.Doc[Flow]) error {
		return session.TellEntry(ctx, tx, session.Entry{
			AppID: f.AppID, Protocol: f.Protocol, FlowID: doc.ID, Address: v.Address, Browser: v.UserAgent(),
			Reason: reasons[notice],
		}, "failed", provenUser(f), request.Tenant(ctx), doc)
	}
}

// provenUser is the user who has shown something in a flow; empty if nobody has.
func provenUser(f *Flow) string {
	if len(f.Proofs) == 0 {
		return ""
	}
	return f.UserID
}
