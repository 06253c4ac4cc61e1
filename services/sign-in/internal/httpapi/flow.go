package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// FlowForm describes the forms of the pages of a sign-in.
type FlowForm struct {
	Request    string `json:"request" doc:"The application's request, sealed"`
	Action     string `json:"action" doc:"The button: begin, sign-in, new-password, forgot, send-code, code, factor, passkey, set-up, add-factor, new-codes, kept, later, name, leave, directory, link, skip-link, back, continue, another, account, agree, deny"`
	LoginName  string `json:"login_name,omitempty" doc:"Username, email or mobile"`
	Password   string `json:"password,omitempty" doc:"The password, or the new one"`
	Repeated   string `json:"repeated,omitempty" doc:"The new password again"`
	Code       string `json:"code,omitempty" doc:"The code from the email, of the authenticator app, or a recovery code"`
	Name       string `json:"name,omitempty" doc:"What the person calls the factor"`
	Method     string `json:"method,omitempty" doc:"What to set up: otp or webauthn"`
	Passkey    string `json:"passkey,omitempty" doc:"What the browser has answered for a passkey (WebAuthn, JSON)"`
	Challenge  string `json:"challenge,omitempty" doc:"Of the page that has asked for it, sealed"`
	Connection string `json:"connection,omitempty" doc:"The id of the connection by which the person wants to sign in"`
	SubAccount string `json:"sub_account,omitempty" doc:"The id of the chosen sub-account"`
	Locale     string `json:"locale,omitempty" doc:"The language chosen on the page"`
}

type flowInput struct {
	Visitor
	Form rest.Values[FlowForm]
}

type storedFlowInput struct {
	Visitor
	Flow string `path:"flow" doc:"The sign-in" example:"Zm9vYmFyYmF6cXV4MDEyMw"`
	Form rest.Values[FlowForm]
}

type showFlowInput struct {
	Visitor
	Flow string `path:"flow" doc:"The sign-in" example:"Zm9vYmFyYmF6cXV4MDEyMw"`
}

var exampleFlowForm = FlowForm{Request: "v1.k1.c2VhbGVk", Action: flow.ActSignIn, LoginName: "ann", Password: "…"}

func (a *api) registerFlow(s *rest.Server) {
	a.registerAssets(s)
	a.registerHome(s)
	a.registerInvitationPage(s)
	a.registerCallback(s)
	a.registerBackChannel(s)
	a.registerCASLogout(s)
	pageErrors := []apperr.Kind{apperr.Forbidden}
	rest.Handle(s, rest.Op{
		ID: "begin-sign-in", Method: http.MethodPost, Path: below + "/flow", IfMatchParam: rest.NoRecord,
		ErrorPage: a.failed,
		Summary:   "Send the first form of a sign-in", ContentTypes: htmlOnly, Errors: pageErrors,
		Doc:     "Stores the sign-in. The answer is a 303 to its page.",
		Request: exampleFlowForm, Response: examplePage,
	}, func(ctx context.Context, in *flowInput) (rest.Page, error) {
		return a.act(ctx, &in.Visitor, "", in.Form)
	})
	rest.Handle(s, rest.Op{
		ID: "continue-sign-in", Method: http.MethodPost, Path: below + "/flow/{flow}", IfMatchParam: rest.NoRecord,
		ErrorPage: a.failed, Summary: "Send a form of a sign-in", ContentTypes: htmlOnly, Errors: pageErrors,
		Doc:     "The answer is a 303 to the page of the sign-in. One that has expired or ended begins again.",
		Request: exampleFlowForm, Response: examplePage,
	}, func(ctx context.Context, in *storedFlowInput) (rest.Page, error) {
		return a.act(ctx, &in.Visitor, in.Flow, in.Form)
	})
	rest.Handle(s, rest.Op{
		ID: "show-sign-in", Method: http.MethodGet, Path: below + "/flow/{flow}", ErrorPage: a.failed,
		Summary: "Show the page of a sign-in", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "The step that is due, whatever page the browser shows. One that has expired or ended begins again.",
	}, a.showFlow)
}

// act does what a form says.
func (a *api) act(ctx context.Context, in *Visitor, id string, form rest.Values[FlowForm]) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, in)
	if err != nil {
		return rest.Page{}, err
	}
	f, err := a.flowOf(ctx, v, id, form.Get("request"))
	if err != nil {
		return rest.Page{}, err
	}
	if f == nil {
		return a.redirect(v, v.base), nil
	}
	v.choose(a.language(v), cmp.Or(chosen(form.Get("locale")), f.Locale), f.Request.Locales, "")
	view, err := a.Engine.Act(ctx, f, flow.Form{
		Action: form.Get("action"), LoginName: form.Get("login_name"), Password: form.Get("password"),
		Repeated: form.Get("repeated"), SubAccount: form.Get("sub_account"), Code: form.Get("code"),
		Name: form.Get("name"), Method: form.Get("method"), Passkey: form.Get("passkey"),
		Challenge: form.Get("challenge"), Connection: form.Get("connection"),
		Locale: chosen(form.Get("locale")), Language: v.locale,
	}, v.Visitor)
	switch {
	case apperr.KindOf(err) == apperr.VersionMismatch && err != nil: // another tab's form was faster
		return a.redirect(v, v.base+"/flow/"+id), nil
	case err != nil:
		return rest.Page{}, err
	case view.Kind != flow.Leave:
		return a.page(ctx, v, view)
	}
	a.signedIn(v, view.Cookies)
	return a.redirect(v, v.base+"/flow/"+f.ID), nil
}

func chosen(locale string) string {
	if len(locale) > 8 || page.Language(locale) != locale {
		return ""
	}
	return locale
}

// flowOf returns the flow that a form is about: the stored one, or the one that the form itself carries; nil if there
// is neither.
func (a *api) flowOf(ctx context.Context, v *visit, id, sealed string) (*flow.Flow, error) {
	var found *flow.Flow
	if id != "" {
		f, err := a.Engine.Find(ctx, id, v.Browser)
		if err == nil && f.ID != "" {
			return f, nil
		}
		if err != nil && !apperr.IsNotFound(err) {
			return nil, err
		}
		found = f
	}
	f, err := a.Engine.Unseal(ctx, sealed)
	if err != nil {
		return found, nil
	}
	return f, nil
}

func (a *api) showFlow(ctx context.Context, in *showFlowInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil || in.Request.Method == http.MethodHead { // which must not end the flow
		return rest.Page{}, err
	}
	f, err := a.Engine.Find(ctx, in.Flow, v.Browser)
	if apperr.IsNotFound(err) {
		return a.redirect(v, v.base), nil
	}
	if err != nil {
		return rest.Page{}, err
	}
	view, err := a.Engine.Show(ctx, f, v.Visitor)
	if err != nil {
		return a.pageError(ctx, v, err)
	}
	return a.page(ctx, v, view)
}

// arrive answers a request of an application that has no stored flow: at once where nobody has to be asked.
func (a *api) arrive(ctx context.Context, v *visit, r protocol.Request) (rest.Page, error) {
	view, err := a.Engine.Arrive(ctx, r, v.Visitor)
	if err != nil {
		return a.pageError(ctx, v, err)
	}
	if view.Kind == flow.Leave && view.Answer.Post == nil {
		return a.redirect(v, view.Answer.URL), nil
	}
	return a.page(ctx, v, view)
}

// pageError is the page for a request that must not be answered to the application.
func (a *api) pageError(ctx context.Context, v *visit, err error) (rest.Page, error) {
	c := page.Problem{Head: "bad_request", Text: "bad_request_text"}
	wrong, isPage := errors.AsType[*protocol.PageError](err)
	switch {
	case isPage:
		c.Detail = wrong.Message
	case errors.Is(err, protocol.ErrUnknown):
		c.Head, c.Text = "unknown_app", "unknown_app_text"
	default:
		return rest.Page{}, err
	}
	v.choose(a.language(v), "", nil, "")
	return a.html(ctx, v, http.StatusBadRequest, c)
}

func (a *api) redirect(v *visit, to string) rest.Page { return rest.Redirect(to, v.cookies...) }

// html makes a page.
func (a *api) html(ctx context.Context, v *visit, status int, c page.Content) (rest.Page, error) {
	html, err := page.Render(v.frame(ctx), c)
	return rest.Page{Status: status, HTML: html, Cookies: v.cookies, Vary: "Accept-Language, Cookie"}, err
}

// begin answers a request of an application, in any protocol, that has been read. One that came by a form of another
// site came without the browser's cookies, so a page of this service sends it on; nothing is stored before.
func (a *api) begin(ctx context.Context, v *visit, r protocol.Request, err error) (rest.Page, error) {
	if refused, ok := errors.AsType[*protocol.AnswerError](err); ok {
		return a.answer(ctx, v, refused.Answer)
	}
	if err != nil {
		return a.pageError(ctx, v, err)
	}
	if v.request.Method == http.MethodGet {
		return a.arrive(ctx, v, r)
	}
	f := flow.Begin(r)
	sealed, err := a.Engine.Seal(ctx, f)
	if err != nil {
		return rest.Page{}, err
	}
	v.choose(a.language(v), "", r.Locales, "")
	p, err := a.html(ctx, v, http.StatusOK, page.Post{
		URL: v.base + "/flow", Fields: url.Values{"action": {flow.ActBegin}, "request": {sealed}},
	})
	p.Policy = rest.Policy{ScriptHash: page.PostHash}
	return p, err
}
