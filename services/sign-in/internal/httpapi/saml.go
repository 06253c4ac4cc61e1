package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/signout"
)

// SAMLForm is a message of an application by the HTTP-POST binding.
type SAMLForm struct {
	Request    string `json:"SAMLRequest,omitempty" doc:"In base64"`
	Response   string `json:"SAMLResponse,omitempty" doc:"In base64"`
	RelayState string `json:"RelayState,omitempty" doc:"Comes back unchanged"`
}

// SAMLLogoutForm confirms a logout that an application has asked for.
type SAMLLogoutForm struct {
	Logout string `json:"logout" doc:"The application's request, sealed"`
}

type samlInput struct{ Visitor }

type samlFormInput struct {
	Visitor
	Form rest.Values[SAMLForm]
}

type samlStartInput struct {
	Visitor
	App string `path:"app" doc:"The application's id" example:"1048577"`
}

type samlResumeInput struct{ Visitor }

type samlContinueInput struct {
	Visitor
	SignOut string `path:"sign_out" doc:"The sign-out" example:"JBSWY3DPEHPK3PXPJBSWY3DPEH"`
}

type samlConfirmInput struct {
	Visitor
	Form rest.Values[SAMLLogoutForm]
}

func (a *api) registerSAML(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "get-saml-metadata", Method: http.MethodGet, Path: below + "/saml/metadata", ErrorPage: a.failed,
		Summary: "Get the metadata of a tenant's identity provider", ContentTypes: []string{saml.MetadataType},
		Response: "<EntityDescriptor>…", Doc: "SAML 2.0. Its address is the entity id.",
	}, func(ctx context.Context, input *assetInput) (rest.Document, error) {
		ctx, err := withTenant(ctx, input.Tenant)
		if err != nil {
			return rest.Document{}, err
		}
		body, err := a.SAML.Metadata(ctx, a.issuer(input.Tenant))
		return rest.Document{ContentType: saml.MetadataType, Body: body}, err
	})
	visit := func(id, path, summary string, do func(context.Context, *visit, saml.Inbound) (rest.Page, error)) {
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodGet, Path: below + path, ErrorPage: a.failed, Summary: summary,
			ContentTypes: htmlOnly,
			Response:     examplePage, Doc: "SAML 2.0, HTTP-Redirect.",
		}, func(ctx context.Context, in *samlInput) (rest.Page, error) {
			ctx, v, err := a.enter(ctx, &in.Visitor)
			if err != nil || in.Request.Method == http.MethodHead {
				return rest.Page{}, err
			}
			return do(ctx, v, saml.Inbound{Query: in.Request.URL.RawQuery})
		})
		rest.Handle(s, rest.Op{
			ID: id + "-by-form", Method: http.MethodPost, Path: below + path, IfMatchParam: rest.NoRecord,
			ErrorPage: a.failed,
			CrossSite: true, Summary: summary + ", by a form", ContentTypes: htmlOnly, Doc: "SAML 2.0, HTTP-POST.",
			Request: SAMLForm{Request: "PHNhbWxwOkF1dGhuUmVxdWVzdD4…"}, Response: examplePage,
		}, func(ctx context.Context, in *samlFormInput) (rest.Page, error) {
			ctx, v, err := a.enter(ctx, &in.Visitor)
			if err != nil {
				return rest.Page{}, err
			}
			return do(ctx, v, saml.Inbound{Form: in.Form.Values})
		})
	}
	visit("sign-in-by-saml", "/saml/sso", "Ask for a person by SAML", a.samlSSO)
	visit("sign-out-by-saml", "/saml/slo", "Sign out by SAML", a.samlSLO)
	rest.Handle(s, rest.Op{
		ID: "start-saml", Method: http.MethodGet, Path: below + "/saml/start/{app}", ErrorPage: a.failed,
		Summary: "Open an application by SAML", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "A sign-in that begins here (SAML profiles §4.1.5), for applications that allow it. The query may have " +
			"RelayState.",
	}, func(ctx context.Context, in *samlStartInput) (rest.Page, error) {
		ctx, v, err := a.enter(ctx, &in.Visitor)
		if err != nil || in.Request.Method == http.MethodHead {
			return rest.Page{}, err
		}
		r, err := a.SAML.Start(ctx, in.App, in.Request.URL.Query().Get("RelayState"))
		return a.begin(ctx, v, r, err)
	})
	rest.Handle(s, rest.Op{
		ID: "resume-saml-sign-out", Method: http.MethodGet, Path: below + "/saml/sign-out", ErrorPage: a.failed,
		Summary: "Go on with a sign-out by SAML that came by a form", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "The query has the application's request, sealed. Forms of other sites come without cookies.",
	}, a.resumeSAML)
	rest.Handle(s, rest.Op{
		ID: "continue-saml-sign-out", Method: http.MethodGet, Path: below + "/saml/sign-out/{sign_out}",
		ErrorPage: a.failed, Summary: "Go on to the next application of a sign-out", ContentTypes: htmlOnly,
		Response: examplePage,
		Doc: "The browser tells the applications of SAML one after the other. One whose answer it does not bring has " +
			"not confirmed.",
	}, func(ctx context.Context, in *samlContinueInput) (rest.Page, error) {
		ctx, v, err := a.enter(ctx, &in.Visitor)
		if err != nil || in.Request.Method == http.MethodHead {
			return rest.Page{}, err
		}
		v.choose(a.language(v), "", nil, "")
		return a.goOn(ctx, v, in.SignOut, nil)
	})
	rest.Handle(s, rest.Op{
		ID: "confirm-saml-sign-out", Method: http.MethodPost, Path: below + "/saml/sign-out",
		IfMatchParam: rest.NoRecord,
		ErrorPage:    a.failed, Summary: "Confirm to sign out by SAML", ContentTypes: htmlOnly,
		Errors: []apperr.Kind{apperr.Forbidden}, Doc: "The form of the page that asks.",
		Request: SAMLLogoutForm{"v1.k1.c2VhbGVk"}, Response: examplePage,
	}, a.confirmSAML)
}

func (a *api) samlSSO(ctx context.Context, v *visit, in saml.Inbound) (rest.Page, error) {
	r, err := a.SAML.SSO(ctx, v.Issuer, in)
	return a.begin(ctx, v, r, err)
}

// samlSLO answers a message about a logout: a request, or the answer to one of ours, which came by the browser.
func (a *api) samlSLO(ctx context.Context, v *visit, in saml.Inbound) (rest.Page, error) {
	m, err := a.SAML.SLO(ctx, v.Issuer, in)
	if err != nil {
		return a.pageError(ctx, v, err)
	}
	v.choose(a.language(v), "", nil, "")
	if m.Logout == nil {
		return a.goOn(ctx, v, m.Finished.Chain, m.Finished)
	}
	if v.request.Method != http.MethodGet && v.Cookie == "" && len(m.Logout.SessionIDs) > 0 {
		sealed, err := a.sealLogout(v, m.Logout)
		if err != nil {
			return rest.Page{}, err
		}
		return a.redirect(v, v.base+"/saml/sign-out?"+url.Values{"logout": {sealed}}.Encode()), nil
	}
	return a.takeSAML(ctx, v, m.Logout)
}

// takeSAML ends the sessions that an application's request is about, or asks the person first.
func (a *api) takeSAML(ctx context.Context, v *visit, l *saml.Logout) (rest.Page, error) {
	if l.Certain || len(l.SessionIDs) == 0 {
		return a.endSAML(ctx, v, l, saml.AllEnded)
	}
	return a.askSAML(ctx, v, l)
}

// askSAML asks the person whether the application may sign it out.
func (a *api) askSAML(ctx context.Context, v *visit, l *saml.Logout) (rest.Page, error) {
	name, err := a.nameOf(ctx, l.Reply.AppID)
	if err != nil {
		return rest.Page{}, err
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	who, locale := a.whoIs(ctx, s)
	v.choose(a.language(v), "", nil, locale)
	sealed, err := a.sealLogout(v, l)
	if err != nil {
		return rest.Page{}, err
	}
	return a.html(ctx, v, http.StatusOK, page.Logout{
		Form: page.Form{Action: v.base + "/saml/sign-out"}, App: name, Name: who,
		Hidden: url.Values{"logout": {sealed}},
	})
}

func sealedFor(v *visit) []byte { return []byte("SAML logout " + v.tenant) }

// sealLogout seals a request that the browser brings back.
func (a *api) sealLogout(v *visit, l *saml.Logout) (string, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	return a.Engine.Keys.Seal(text, sealedFor(v)), nil
}

// openLogout opens a sealed request. ok is false if it is none of the tenant.
func (a *api) openLogout(v *visit, sealed string) (l *saml.Logout, ok bool) {
	text, err := a.Engine.Keys.Open(sealed, sealedFor(v))
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, err == nil && l != nil
}

// resumeSAML takes a request that came by a form of another site, once the browser has brought its cookies.
func (a *api) resumeSAML(ctx context.Context, in *samlResumeInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil || in.Request.Method == http.MethodHead {
		return rest.Page{}, err
	}
	v.choose(a.language(v), "", nil, "")
	l, ok := a.openLogout(v, in.Request.URL.Query().Get("logout"))
	if !ok {
		return a.redirect(v, v.base+"/logout"), nil
	}
	return a.takeSAML(ctx, v, l)
}

func (a *api) confirmSAML(ctx context.Context, in *samlConfirmInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil {
		return rest.Page{}, err
	}
	l, ok := a.openLogout(v, in.Form.Get("logout"))
	if !ok {
		return a.redirect(v, v.base+"/logout"), nil
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	// Whoever made the request may have named the sessions of others, which go on.
	named := len(l.SessionIDs)
	l.SessionIDs = slices.DeleteFunc(l.SessionIDs, func(id string) bool { return s == nil || id != s.ID })
	outcome := saml.AllEnded
	switch len(l.SessionIDs) {
	case named:
	case 0:
		outcome = saml.NoneEnded
	default:
		outcome = saml.SomeEnded
	}
	v.choose(a.language(v), "", nil, "")
	return a.endSAML(ctx, v, l, outcome)
}

// endSAML ends the sessions, and answers the application. The others hear of it: those of the browser's own session
// through the browser.
func (a *api) endSAML(ctx context.Context, v *visit, l *saml.Logout, outcome saml.Outcome) (rest.Page, error) {
	here, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	end := signout.End{Reply: &l.Reply, Outcome: outcome}
	own := false
	for _, id := range l.SessionIDs {
		if here != nil && id == here.ID {
			own = true
			continue
		}
		s, err := a.Sessions.Find(ctx, id)
		if apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			return rest.Page{}, err
		}
		_, err = a.Sessions.End(flow.As(ctx, v.Issuer, s.UserID), id, session.LoggedOut)
		if err != nil && !apperr.IsNotFound(err) {
			return rest.Page{}, err
		}
	}
	if own {
		return a.endHere(ctx, v, here, end)
	}
	return a.ended(ctx, v, signout.Step{End: end})
}
