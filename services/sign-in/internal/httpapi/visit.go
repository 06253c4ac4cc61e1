package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Visitor is the input that all pages have.
type Visitor struct {
	rest.Browser
	rest.Sender
	Tenant string `path:"tenant" doc:"The tenant's id" example:"acme"`
}

// visit is a request of a person's browser.
type visit struct {
	flow.Visitor
	request  *http.Request
	tenant   string
	base     string
	settings *settings.Settings
	lang     string // chosen on the page
	cookies  []*http.Cookie
	keepsNot bool   // the browser has sent no cookie with a form
	locale   string // "" until it is known
}

// withTenant returns the context of a tenant. The error is apperr.NotFound.
func withTenant(ctx context.Context, tenant string) (context.Context, error) {
	if !auth.ValidTenant(tenant) {
		return ctx, apperr.New(apperr.NotFound, "no such path")
	}
	info := request.From(ctx)
	info.Tenant = tenant
	return request.With(ctx, info), nil
}

// enter begins the answer to a browser's request.
func (a *api) enter(ctx context.Context, in *Visitor) (context.Context, *visit, error) {
	ctx, err := withTenant(ctx, in.Tenant)
	if err != nil {
		return ctx, nil, err
	}
	v := &visit{request: in.Request, tenant: in.Tenant, base: prefix + in.Tenant}
	if v.settings, err = a.Settings.Of(ctx); err != nil {
		return ctx, nil, err
	}
	hash, made := a.cookies.browser(in.Request)
	// A form of another site comes without cookies: a new one would replace the browser's.
	if made != nil && in.Request.Method == http.MethodGet {
		v.cookies = append(v.cookies, made)
	}
	v.keepsNot = made != nil && in.Request.Method == http.MethodPost
	if lang := in.Request.URL.Query().Get("lang"); slices.Contains(settings.Locales, lang) {
		v.lang = lang
		v.cookies = append(v.cookies, a.cookies.make(languageCookie, lang, rememberedFor))
	}
	v.Visitor = flow.Visitor{
		Issuer: a.issuer(in.Tenant), Browser: hash, Cookie: a.cookies.get(in.Request, sessionCookie+in.Tenant),
		Trust: a.cookies.get(in.Request, trustCookie+in.Tenant), Agent: in.Request.UserAgent(),
	}
	if in.Address.IsValid() {
		v.Address = in.Address.String()
	}
	return ctx, v, nil
}

// signedIn sets the cookies of a new session.
func (a *api) signedIn(v *visit, cookies session.Cookies) {
	if cookies.Session != "" {
		v.Cookie = cookies.Session
		v.cookies = append(v.cookies, a.cookies.make(sessionCookie+v.tenant, cookies.Session, 0))
	}
	if cookies.Trust != "" {
		v.Trust = cookies.Trust
		v.cookies = append(v.cookies, a.cookies.make(trustCookie+v.tenant, cookies.Trust, session.TrustedFor))
	}
}

// signedOut drops the session's cookie.
func (a *api) signedOut(v *visit) {
	v.Cookie = ""
	v.cookies = append(v.cookies, a.cookies.drop(sessionCookie+v.tenant))
}

// choose finds the language of the page: chosen on the page, asked for by the application, the person's, that of
// earlier pages, the browser's, the tenant's.
func (v *visit) choose(cookie string, chosen string, asked []string, person string) {
	wishes := append([]string{v.lang, chosen}, asked...)
	wishes = append(wishes, person, cookie)
	wishes = append(wishes, page.Accepted(v.request.Header.Get("Accept-Language"))...)
	v.locale = page.Language(append(wishes, v.settings.Locale)...)
}

// frame makes the frame of the answer's page.
func (v *visit) frame(ctx context.Context) page.Frame {
	here := ""
	if v.request.Method == http.MethodGet {
		here = v.request.URL.RequestURI()
	}
	return page.New(v.base, v.locale, here, request.From(ctx).ID, v.settings)
}

// language is the one that the browser has chosen before.
func (a *api) language(v *visit) string { return a.cookies.get(v.request, languageCookie) }
