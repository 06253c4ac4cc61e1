package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
)

type callbackInput struct {
	Visitor
	Connection string `path:"connection" maxLength:"64" doc:"The connection" example:"1048577"`
}

func (a *api) registerCallback(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "return-from-provider", Method: http.MethodGet, Path: below + "/callback/{connection}",
		ErrorPage: a.failed, Summary: "Come back from another provider", ContentTypes: htmlOnly,
		Response: examplePage,
		Doc: "The address that people come back to who have signed in at the provider of a connection; it is to be " +
			"registered there. The answer (RFC 6749 §4.1.2, RFC 9207) is in the query. It is good once, for the " +
			"sign-in and the browser that it was asked for. The answer is a 303 to the page of the sign-in.",
	}, a.comeBack)
}

// LogoutTokenForm is what a provider sends whose session has ended.
type LogoutTokenForm struct {
	LogoutToken string `json:"logout_token" doc:"A JWT of the provider"`
}

type backChannelInput struct {
	Call
	Connection string `path:"connection" maxLength:"64" doc:"The connection" example:"1048577"`
	Form       rest.Values[LogoutTokenForm]
}

func (a *api) registerBackChannel(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "log-out-from-provider", Method: http.MethodPost, Path: below + "/backchannel/{connection}",
		IfMatchParam: rest.NoRecord, OAuth: true, NoReplay: true,
		Summary: "Sign a person out whom another provider has signed out",
		Doc: "OpenID Connect Back-Channel Logout 1.0; the address is to be registered at the provider of the " +
			"connection. The sessions end that rest on the session there (`sid`), or all of the person (`sub`) that " +
			"began through the connection. Access that outlives sessions (`offline_access`) stays.",
		Request: LogoutTokenForm{"eyJhbGciOiJFUzI1NiJ9.e30.c2ln"}, Response: rest.Empty{},
	}, func(ctx context.Context, in *backChannelInput) (rest.Empty, error) {
		ctx, err := withTenant(ctx, in.Tenant)
		if err != nil || docstore.IsDryRun(ctx) {
			return rest.Empty{}, err
		}
		v := flow.Visitor{}
		if in.Address.IsValid() {
			v.Address = in.Address.String()
		}
		return rest.Empty{}, a.Engine.LogOut(ctx, in.Connection, in.Form.Get("logout_token"), v)
	})
}

// CASLogoutForm is what a CAS server sends when a session has ended there.
type CASLogoutForm struct {
	LogoutRequest string `json:"logoutRequest" doc:"A SAML logout request with the ticket"`
}

type casLogoutInput struct {
	Call
	Connection string `path:"connection" maxLength:"64" doc:"The connection" example:"1048577"`
	Form       rest.Values[CASLogoutForm]
}

func (a *api) registerCASLogout(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "log-out-from-cas", Method: http.MethodPost, Path: below + "/callback/{connection}",
		IfMatchParam: rest.NoRecord, NoReplay: true, Summary: "Sign a person out whom a CAS server has signed out",
		Doc: "Single logout of the CAS Protocol 3.0 (§2.3.3): the server sends it to the address that people come " +
			"back to. The sessions end that began by the ticket.",
		Request: CASLogoutForm{"<samlp:LogoutRequest>…</samlp:LogoutRequest>"}, Response: rest.Empty{},
	}, func(ctx context.Context, in *casLogoutInput) (rest.Empty, error) {
		ctx, err := withTenant(ctx, in.Tenant)
		if err != nil || docstore.IsDryRun(ctx) {
			return rest.Empty{}, err
		}
		return rest.Empty{}, a.Engine.LogOutOfCAS(ctx, in.Connection, in.Form.Get("logoutRequest"))
	})
}

// maxReturned bounds what a provider sends back, in bytes.
const maxReturned = 8 << 10

func (a *api) comeBack(ctx context.Context, in *callbackInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil || in.Request.Method == http.MethodHead { // which must not use up the answer
		return rest.Page{}, err
	}
	if len(in.Request.URL.RawQuery) > maxReturned {
		return a.redirect(v, v.base), nil
	}
	q := in.Request.URL.Query()
	state := q.Get("state")
	f, err := a.Engine.Find(ctx, flow.FlowOf(state), v.Browser)
	if apperr.IsNotFound(err) {
		return a.redirect(v, v.base), nil
	}
	if err != nil {
		return rest.Page{}, err
	}
	if f.ID == "" { // another browser's, or it is over: it begins again
		return a.showFlow(ctx, &showFlowInput{Visitor: in.Visitor, Flow: flow.FlowOf(state)})
	}
	v.choose(a.language(v), f.Locale, f.Request.Locales, "")
	view, err := a.Engine.Return(ctx, f, flow.Returned{
		Connection: in.Connection, State: state, Issuer: q.Get("iss"), Error: q.Get("error"),
		Code: cmp.Or(q.Get("code"), q.Get("authCode"), q.Get("ticket")), // as DingTalk and CAS call it
	}, v.Visitor)
	switch {
	case apperr.KindOf(err) == apperr.VersionMismatch && err != nil: // another request with the answer was faster
		return a.redirect(v, v.base+"/flow/"+f.ID), nil
	case err != nil:
		return rest.Page{}, err
	case view.Kind != flow.Leave:
		return a.page(ctx, v, view)
	}
	a.signedIn(v, view.Cookies)
	return a.redirect(v, v.base+"/flow/"+f.ID), nil
}

// goElsewhere leads to another provider.
func (a *api) goElsewhere(ctx context.Context, v *visit, view flow.View) (rest.Page, error) {
	p, err := a.html(ctx, v, http.StatusOK, page.Leave{App: view.Through, URL: view.Answer.URL})
	p.Refresh = view.Answer.URL
	return p, err
}

// confirmLink asks whether who the person is at another provider is to be linked.
func (a *api) confirmLink(ctx context.Context, v *visit, view flow.View, form page.Form) (rest.Page, error) {
	through, name, err := a.Engine.LinkingOf(ctx, view.Flow)
	if err != nil {
		return rest.Page{}, err
	}
	c := page.ConfirmLink{
		Form: form, Through: through, There: name, Here: view.Flow.LoginName, Notice: notice(view.Flow),
		Invited: view.Flow.Recovering == flow.Invited,
	}
	if view.User != nil {
		c.Here = view.User.Name()
	}
	return a.html(ctx, v, http.StatusOK, c)
}
