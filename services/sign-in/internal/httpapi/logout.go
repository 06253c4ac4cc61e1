package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/signout"
)

// LogoutForm describes a request to sign out (OpenID Connect RP-Initiated Logout 1.0 §2).
type LogoutForm struct {
	Hint     string `json:"id_token_hint,omitempty" doc:"An ID token of the session; it may have expired"`
	ClientID string `json:"client_id,omitempty" doc:"The application, if there is no hint"`
	Return   string `json:"post_logout_redirect_uri,omitempty" doc:"Where to go afterwards; one that is registered"`
	State    string `json:"state,omitempty" doc:"Comes back unchanged"`
	Locales  string `json:"ui_locales,omitempty" doc:"Languages of the page, the best first"`
}

// parameters are the names of the request that the page's form hands on.
var parameters = []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales"}

type logoutInput struct{ Visitor }

type logoutFormInput struct {
	Visitor
	Form rest.Values[LogoutForm]
}

// frameTime is how long applications have to sign a person out in a frame, before the browser goes on.
const frameTime = 3 * time.Second

func (a *api) registerLogout(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "sign-out", Method: http.MethodGet, Path: below + "/logout", ErrorPage: a.failed, Summary: "Sign out",
		ContentTypes: htmlOnly, Response: examplePage,
		Doc: "OpenID Connect RP-Initiated Logout 1.0. With a good `id_token_hint` of the session at once, otherwise " +
			"the person is asked.",
	}, func(ctx context.Context, in *logoutInput) (rest.Page, error) {
		return a.logout(ctx, &in.Visitor, in.Request.URL.Query(), false)
	})
	op := rest.Op{
		ID: "sign-out-by-form", Method: http.MethodPost, Path: below + "/logout", IfMatchParam: rest.NoRecord,
		ErrorPage: a.failed,
		CrossSite: true, Summary: "Sign out, by a form", ContentTypes: htmlOnly, Response: examplePage,
		Request: LogoutForm{ClientID: "c1"}, Doc: "As by GET.",
	}
	rest.Handle(s, op, func(ctx context.Context, in *logoutFormInput) (rest.Page, error) {
		return a.logout(ctx, &in.Visitor, in.Form.Values, false)
	})
	op.ID, op.Path, op.CrossSite = "confirm-sign-out", below+"/sign-out", false
	op.Errors = []apperr.Kind{apperr.Forbidden}
	op.Summary, op.Doc = "Confirm to sign out", "The form of the page that asks."
	rest.Handle(s, op, func(ctx context.Context, in *logoutFormInput) (rest.Page, error) {
		return a.logout(ctx, &in.Visitor, in.Form.Values, true)
	})
}

// logout ends the browser's session, or asks.
func (a *api) logout(ctx context.Context, in *Visitor, values url.Values, confirmed bool) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, in)
	if err != nil || in.Request.Method == http.MethodHead {
		return rest.Page{}, err
	}
	r, err := a.OIDC.Logout(ctx, v.Issuer, values)
	if err != nil {
		return a.pageError(ctx, v, err)
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	app, err := a.nameOf(ctx, r.AppID)
	if err != nil {
		return rest.Page{}, err
	}
	name, locale := a.whoIs(ctx, s)
	v.choose(a.language(v), "", r.Locales, locale)
	switch {
	case s == nil && in.Request.Method == http.MethodPost && !confirmed: // the cookie may not have come with the form
		return a.redirect(v, v.base+"/logout?"+handedOn(values).Encode()), nil
	case s == nil && r.Return != "":
		return a.onward(ctx, v, app, r.Return)
	case s == nil:
		return a.html(ctx, v, http.StatusOK, page.LoggedOut{App: app})
	case confirmed, r.UserID == s.UserID && (r.SessionID == "" || r.SessionID == s.ID):
		return a.endHere(ctx, v, s, signout.End{URL: r.Return, AppID: r.AppID})
	}
	return a.html(ctx, v, http.StatusOK, page.Logout{
		Form: page.Form{Action: v.base + "/sign-out"}, App: app, Name: name, Hidden: handedOn(values),
	})
}

// handedOn are the parameters of a logout request, without what else the query has.
func handedOn(values url.Values) url.Values {
	kept := url.Values{}
	for _, name := range parameters {
		if values.Get(name) != "" {
			kept.Set(name, values.Get(name))
		}
	}
	return kept
}

// endHere ends the browser's session. Applications of OpenID Connect hear of it in frames, those of SAML one after the
// other, and then the browser goes to the end.
func (a *api) endHere(ctx context.Context, v *visit, s *session.Session, end signout.End) (rest.Page, error) {
	frames, err := a.frames(ctx, v, s)
	if err != nil {
		return rest.Page{}, err
	}
	id := ""
	err = a.Sessions.EndInBrowser(flow.As(ctx, v.Issuer, s.UserID), s.ID, session.LoggedOut,
		func(ctx context.Context, tx *docstore.Tx) error {
			var err error
			id, err = a.SignOuts.Begin(ctx, tx, v.Issuer, s.ID, end, len(frames) > 0 && end.Reply != nil)
			return err
		})
	if err != nil && !apperr.IsNotFound(err) {
		return rest.Page{}, err
	}
	a.signedOut(v)
	switch {
	case len(frames) > 0 && id != "":
		p, err := a.leave(ctx, v, flow.View{Answer: protocol.Answer{URL: v.base + "/saml/sign-out/" + id}}, frames...)
		p.RefreshAfter = frameTime
		return p, err
	case id != "":
		return a.goOn(ctx, v, id, nil)
	case len(frames) == 0:
		return a.ended(ctx, v, signout.Step{End: end})
	}
	app, err := a.nameOf(ctx, end.AppID)
	if err != nil {
		return rest.Page{}, err
	}
	p, err := a.html(ctx, v, http.StatusOK, page.LoggedOut{Frames: frames, OnURL: end.URL, App: app})
	p.Policy.Frames = origins(frames)
	if end.URL != "" {
		p.Refresh, p.RefreshAfter = end.URL, frameTime
	}
	return p, err
}

// goOn sends the browser to the next application of a sign-out. Each step is a page of its own, because browsers follow
// only so many redirects.
func (a *api) goOn(ctx context.Context, v *visit, id string, came *saml.Finished) (rest.Page, error) {
	step, err := a.SignOuts.Continue(ctx, id, came)
	if apperr.IsNotFound(err) {
		return a.html(ctx, v, http.StatusOK, page.LoggedOut{})
	}
	if err != nil {
		return rest.Page{}, err
	}
	if step.ToApp == nil {
		return a.ended(ctx, v, step)
	}
	return a.leave(ctx, v, flow.View{Answer: *step.ToApp})
}

// ended is the end of a sign-out: the answer to the application that has asked for it by SAML, the way back to one of
// OpenID Connect, or a page that says how it went.
func (a *api) ended(ctx context.Context, v *visit, step signout.Step) (rest.Page, error) {
	end := step.End
	if end.Reply != nil {
		outcome := end.Outcome
		if outcome == saml.AllEnded && len(step.Missed) > 0 {
			outcome = saml.SomeEnded
		}
		answer, err := a.SAML.AnswerLogout(ctx, v.Issuer, *end.Reply, outcome)
		switch {
		case err == nil:
			return a.answer(ctx, v, answer)
		case !errors.Is(err, protocol.ErrUnknown):
			return rest.Page{}, err
		case outcome == saml.NoneEnded:
			return a.redirect(v, v.base), nil
		}
	}
	app, err := a.nameOf(ctx, end.AppID)
	if err != nil {
		return rest.Page{}, err
	}
	if end.URL != "" && len(step.Missed) == 0 {
		return a.onward(ctx, v, app, end.URL)
	}
	p := page.LoggedOut{OnURL: end.URL, App: app}
	for _, missed := range step.Missed {
		name, err := a.nameOf(ctx, missed)
		if err != nil {
			return rest.Page{}, err
		}
		p.Missed = append(p.Missed, cmp.Or(name, missed))
	}
	return a.html(ctx, v, http.StatusOK, p)
}

// onward leads to an address of an application: a redirect after a GET, else a page, which does not carry on the
// restrictions of the form.
func (a *api) onward(ctx context.Context, v *visit, app, to string) (rest.Page, error) {
	if v.request.Method == http.MethodGet {
		return a.redirect(v, to), nil
	}
	p, err := a.html(ctx, v, http.StatusOK, page.LoggedOut{OnURL: to, App: app})
	p.Refresh = to
	return p, err
}

// frames are the addresses that sign the person out of applications by the browser.
func (a *api) frames(ctx context.Context, v *visit, s *session.Session) ([]string, error) {
	var frames []string
	for _, entered := range s.Applications {
		if entered.Protocol != protocol.OIDC || len(frames) == maxFrames {
			continue
		}
		client, err := a.Engine.Clients.Of(ctx, questions.ClientName{AppID: entered.AppID})
		if apperr.IsNotFound(err) || apperr.KindOf(err) == apperr.Unavailable && err != nil {
			continue // best effort: the back channel is what can be relied on
		}
		if err != nil {
			return nil, err
		}
		if to := oidc.FrontchannelURL(client, v.Issuer, s.ID); to != "" {
			frames = append(frames, to)
		}
	}
	return frames, nil
}

const maxFrames = 20

// origins are those of addresses, for a policy.
func origins(addresses []string) []string {
	var all []string
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			all = append(all, u.Scheme+"://"+u.Host)
		}
	}
	return all
}

// nameOf is the name of an application; empty for none.
func (a *api) nameOf(ctx context.Context, appID string) (string, error) {
	if appID == "" {
		return "", nil
	}
	client, err := a.Engine.Clients.Of(ctx, questions.ClientName{AppID: appID})
	switch apperr.KindOf(err) {
	case apperr.NotFound, apperr.Unavailable: // the page does without
		return "", nil
	}
	return client.Name, err
}

// answer writes a protocol's answer to a request that no flow has.
func (a *api) answer(ctx context.Context, v *visit, to protocol.Answer) (rest.Page, error) {
	if to.Post == nil && v.request.Method == http.MethodGet {
		return a.redirect(v, to.URL), nil
	}
	v.choose(a.language(v), "", nil, "")
	return a.leave(ctx, v, flow.View{Answer: to})
}
