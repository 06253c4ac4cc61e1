package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/signout"
)

type casInput struct{ Visitor }

type validateInput struct{ Call }

func (a *api) registerCAS(s *rest.Server) {
	get := func(id, path, summary, doc string) rest.Op {
		return rest.Op{ID: id, Method: http.MethodGet, Path: below + "/cas" + path, ErrorPage: a.failed,
			Summary:      summary,
			ContentTypes: htmlOnly, Response: examplePage, Doc: doc}
	}
	rest.Handle(s, get("sign-in-by-cas", "/login", "Ask for a person by CAS", "CAS 3.0.3 §2.1."),
		func(ctx context.Context, in *casInput) (rest.Page, error) {
			ctx, v, err := a.enter(ctx, &in.Visitor)
			if err != nil || in.Request.Method == http.MethodHead {
				return rest.Page{}, err
			}
			r, err := a.CAS.Login(ctx, in.Request.URL.Query())
			if errors.Is(err, cas.ErrNoService) {
				return a.redirect(v, v.base), nil
			}
			return a.begin(ctx, v, r, err)
		})
	rest.Handle(s, get("sign-out-by-cas", "/logout", "Sign out by CAS", "CAS 3.0.3 §2.3. The person is not asked."),
		a.casLogout)
	for path, version := range map[string]cas.Version{
		"/validate": cas.V1, "/serviceValidate": cas.V2, "/p3/serviceValidate": cas.V3,
	} {
		id := "validate-cas-ticket" + map[cas.Version]string{cas.V1: "-one", cas.V2: "-two", cas.V3: "-three"}[version]
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodGet, Path: below + "/cas" + path, Summary: "Validate a CAS ticket",
			ContentTypes: []string{"application/xml", "text/plain"}, Response: "<cas:serviceResponse>…",
			Doc: "CAS 3.0.3 §2.4, §2.5, §2.8. The status is always 200. The ticket is used up.",
		}, func(ctx context.Context, c *validateInput) (rest.Document, error) {
			ctx, err := withTenant(ctx, c.Tenant)
			if err != nil || c.Request.Method == http.MethodHead { // which must not use the ticket up
				return rest.Document{ContentType: "text/plain"}, err
			}
			answer := a.CAS.Validate(ctx, version, c.Request.URL.Query())
			if answer.Err != nil {
				a.Log.ErrorContext(ctx, "a CAS ticket could not be validated", "error", answer.Err)
			}
			return rest.Document{ContentType: answer.ContentType, Body: answer.Body}, nil
		})
	}
}

// casLogout ends the browser's session, if the person has come by a link: an image or a frame of another site's page
// signs nobody out.
func (a *api) casLogout(ctx context.Context, in *casInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil || in.Request.Method == http.MethodHead {
		return rest.Page{}, err
	}
	to, err := a.CAS.Return(ctx, in.Request.URL.Query())
	if err != nil {
		return rest.Page{}, err
	}
	s, err := a.Sessions.Of(ctx, v.Cookie)
	if err != nil {
		return rest.Page{}, err
	}
	_, locale := a.whoIs(ctx, s)
	v.choose(a.language(v), "", nil, locale)
	navigates := in.Request.Header.Get("Sec-Fetch-Dest")
	if s != nil && (navigates == "" || strings.EqualFold(navigates, "document")) {
		return a.endHere(ctx, v, s, signout.End{URL: to})
	}
	if to != "" {
		return a.onward(ctx, v, "", to)
	}
	return a.html(ctx, v, http.StatusOK, page.LoggedOut{})
}
