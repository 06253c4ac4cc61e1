package httpapi

import (
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// failed makes the page for an error of an operation for browsers.
func (a *api) failed(r *http.Request, err error) rest.Page {
	doc := problem.Of(err, r.Header.Get("X-Request-Id"))
	tenant, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	v := &visit{request: r, tenant: tenant, base: prefix + tenant, settings: &settings.Settings{}}
	c := problemOf(apperr.Kind(doc.Code))
	ctx := request.With(r.Context(), request.Info{ID: r.Header.Get("X-Request-Id")})
	if auth.ValidTenant(tenant) {
		info := request.From(ctx)
		info.Tenant = tenant
		ctx = request.With(ctx, info)
		if found, err := a.Settings.Of(ctx); err == nil { // otherwise the page looks like the platform's
			v.settings = found
		}
	} else {
		v.base, v.tenant = prefix+"-", ""
	}
	v.choose(a.language(v), "", nil, "")
	if doc.Status == http.StatusBadRequest {
		c.Detail = doc.Detail
	}
	html, err := page.Render(v.frame(ctx), c)
	if err != nil {
		html = []byte("<!doctype html><title>Error</title>")
	}
	return rest.Page{HTML: html}
}

// problemOf are the words for a kind of error.
func problemOf(kind apperr.Kind) page.Problem {
	switch kind {
	case apperr.InvalidParameters, apperr.TooLarge, apperr.UnsupportedMediaType:
		return page.Problem{Head: "bad_request", Text: "bad_request_text"}
	case apperr.NotFound:
		return page.Problem{Head: "not_found", Text: "not_found_text"}
	case apperr.Forbidden:
		return page.Problem{Head: "forbidden", Text: "forbidden_text"}
	case apperr.Unavailable, apperr.OutcomeUnknown:
		return page.Problem{Head: "unavailable", Text: "unavailable_text"}
	}
	return page.Problem{Head: "problem", Text: "problem_text"}
}
