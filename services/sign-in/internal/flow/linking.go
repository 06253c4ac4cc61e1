package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// pending is an identity that is to be linked once the person has shown who they are here. Its JSON form is kept
// compatible.
type pending struct {
	questions.ForeignIdentity
	Name string `json:"name"` // of the connection
}

// Linkable are the connections through which people can link an identity on their own page. The error is
// apperr.Unavailable.
func (e *Engine) Linkable(ctx context.Context) ([]Source, error) {
	view := View{Flow: Begin(OwnRequest(false))}
	err := e.loadClient(ctx, &view)
	return slices.DeleteFunc(view.sources, func(s Source) bool { return !s.asks() }), err
}

// isToLink reports whether the person has come from their own page to link an identity, and has not done so.
func (f *Flow) isToLink() bool { return f.hasTask() && f.Request.Task == protocol.AddLink }

// askToLink leads to the provider of an identity that the person wants to link, and asks for their consent once they
// are back.
func (view *View) askToLink() {
	f := view.Flow
	if view.Kind = AskToLink; f.Linking != "" {
		view.Kind = ConfirmLink
		return
	}
	if source := view.source(f.LinksThrough()); source != nil && source.asks() {
		view.Through = source.Name
	}
}

// LinksThrough is the id of the connection through which the person of a flow wants to link an identity.
func (f *Flow) LinksThrough() string { return asksFor(f.Request, AddLink) }

// linksBy reports whether the page of a view leads to a source for the person to link who they are there.
func (view *View) linksBy(source *Source) bool {
	switch view.step() {
	case AskToLink:
		return view.Through != "" && source.ID == view.Flow.LinksThrough()
	case ChangePassword:
		return slices.Contains(view.Methods, proof.Upstream(source.ID))
	}
	return false
}

// bringsLink goes on with somebody who was at another provider to link who they are there.
func (e *Engine) bringsLink(ctx context.Context, f *Flow, source *Source, who federation.Identity, v Visitor,
) (View, error) {
	view := View{Kind: Leave, Flow: f}
	identity := source.identity(who)
	linked, err := questions.FindLinked.Ask(ctx, e.Bus, identity)
	if err != nil {
		return unlessAway(view, err)
	}
	user, err := person.Parse(orNull(linked.User))
	if err != nil {
		return View{}, err
	}
	invited := f.Recovering == Invited && user.ID == f.UserID // and the acceptance was interrupted
	switch {
	case linked.Reason == questions.NotLinked, linked.Reason == "" && invited:
		f.Linking, err = e.seal(ctx, useLinking, f.ID, pending{identity, source.Name})
	case linked.Reason != "":
		f.Notice = NoticeForeign
	case user.ID == f.Request.TaskOf:
		f.Notice = NoticeYours
	default:
		f.Notice = NoticeTaken
	}
	if err != nil {
		return View{}, err
	}
	return view, e.save(ctx, f, v.Browser, nil)
}

// LinkingOf is the connection and the name of the identity that is to be linked to the person.
func (e *Engine) LinkingOf(ctx context.Context, f *Flow) (through, name string, err error) {
	var p pending
	err = e.unseal(ctx, useLinking, f, f.Linking, &p)
	return p.Name, cmp.Or(p.DisplayName, p.Username, p.Subject), err
}

// link links the identity that the person has shown to who they are here. Whoever is invited has accepted the
// invitation by that, and signs in through the connection.
func (e *Engine) link(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	view, invited := View{Kind: Leave, Flow: f}, f.Recovering == Invited
	var p pending
	if err := e.unseal(ctx, useLinking, f, f.Linking, &p); err != nil {
		return View{}, err
	}
	accept, err := e.acceptInvitation(ctx, f)
	if err != nil {
		return unlessAway(view, err)
	}
	if accept == nil {
		f.endInvitation()
		return view, e.save(ctx, f, v.Browser, nil)
	}
	userID := now.subject.userID
	if invited {
		userID = f.UserID
	}
	before := questions.Linked{}
	if invited {
		if before, err = questions.FindLinked.Ask(ctx, e.Bus, p.ForeignIdentity); err != nil {
			return unlessAway(view, err)
		}
	}
	linked, err := questions.Link.Ask(As(ctx, v.Issuer, userID), e.Bus,
		questions.NewLink{ForeignIdentity: p.ForeignIdentity, UserID: userID})
	switch {
	case err != nil && !refusedLink(err):
		return unlessAway(view, err)
	case err != nil && apperr.KindOf(err) != apperr.AlreadyExists:
		f.Notice = NoticeCannotLink
	case err != nil || linked.Reason != "":
		f.Notice = NoticeTaken
	}
	if f.Notice != "" { // the person goes on without
		return view, e.save(ctx, f, v.Browser, nil)
	}
	mail, err := e.mailOfLink(ctx, linked.User, p.Name)
	if err != nil {
		return View{}, err
	}
	isTask := f.isToLink()
	f.Linking, f.TaskDone = "", f.TaskDone || isTask
	err = e.saveAfter(As(ctx, v.Issuer, userID), f, v.Browser,
		func(ctx context.Context, tx *docstore.Tx, _ *Flow) error {
			if err := accept(ctx, tx); err != nil {
				return err
			}
			return mail(ctx, tx, v)
		}, nil)
	if errors.Is(err, invitation.ErrEnded) { // somebody else has accepted it: this identity gets no way in
		if before.Reason == questions.NotLinked {
			_, err = questions.Unlink.Ask(ctx, e.Bus,
				questions.EndedLink{UserID: userID, ID: linked.LinkID, MayBeLast: true})
			if err != nil && !apperr.IsNotFound(err) {
				return unlessAway(view, err)
			}
		}
		f.endInvitation()
		return view, e.save(ctx, f, v.Browser, nil)
	}
	source := now.source(p.ConnectionID)
	switch {
	case err != nil:
		return View{}, err
	case isTask:
		return e.endTask(ctx, f, now, v)
	case invited && source != nil:
		f.forgetPerson()
		return e.leaveFor(ctx, f, departure{Source: source}, v)
	}
	return view, nil
}

// skipLink goes on without a link.
func (e *Engine) skipLink(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	f.Linking = ""
	if f.isToLink() { // there is nothing to tell on the own page
		f.TaskDone, f.Request.Message = true, nil
		return e.endTask(ctx, f, now, v)
	}
	return View{Kind: Leave, Flow: f}, e.save(ctx, f, v.Browser, nil)
}

// endTask stores a flow whose task is done, and begins a session if the person has not signed in for the request.
func (e *Engine) endTask(ctx context.Context, f *Flow, now View, v Visitor) (View, error) {
	if f.signedIn() {
		return View{Kind: Leave, Flow: f}, e.save(ctx, f, v.Browser, nil)
	}
	return e.goOn(ctx, f, Proven{User: &person.User{ID: f.UserID}}, now, v)
}

// tellLinked mails a user that they were linked.
func (e *Engine) tellLinked(ctx context.Context, record json.RawMessage, through string, v Visitor) error {
	mail, err := e.mailOfLink(ctx, record, through)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, e.Store, func(tx *docstore.Tx) error { return mail(ctx, tx, v) })
}

// mailOfLink returns what mails a user, in a transaction, that they were linked; whoever has no address, and where
// there is no mail server, gets none.
func (e *Engine) mailOfLink(ctx context.Context, record json.RawMessage, through string) (
	func(context.Context, *docstore.Tx, Visitor) error, error,
) {
	user, err := person.Parse(record)
	if err != nil {
		return nil, err
	}
	if user.Email == "" || !e.Messages.Available(ctx) {
		return func(context.Context, *docstore.Tx, Visitor) error { return nil }, nil
	}
	settings, err := e.Settings.Of(ctx)
	if err != nil {
		return nil, err
	}
	language, _, _ := strings.Cut(cmp.Or(user.Locale, settings.Locale), "-")
	m := message.Message{
		Kind: message.Linked, UserID: user.ID, To: user.Email, Name: user.Name(), Locale: language, Through: through,
	}
	return func(ctx context.Context, tx *docstore.Tx, v Visitor) error {
		_, err := e.Messages.Submit(ctx, tx, m, message.Requester{Browser: v.Browser})
		return err
	}, nil
}
