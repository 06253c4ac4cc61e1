package rest_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// DoorForm describes a page's form.
type DoorForm struct {
	Name string `json:"name" doc:"Who knocks"`
}

type doorInput struct {
	rest.Browser
	Form rest.Values[DoorForm]
}

type lookInput struct {
	rest.Browser
	ID string `path:"door"`
}

func failed(_ *http.Request, err error) rest.Page {
	return rest.Page{HTML: []byte("<h1>" + problem.Of(err, "").Detail + "</h1>"), Location: "https://elsewhere.test"}
}

func registerDoors(s *rest.Server, _ service.Deps) {
	page := []string{"text/html"}
	rest.Handle(s, rest.Op{
		ID: "look-at-door", Method: http.MethodGet, Path: "/doors/{door}", Summary: "Look", ErrorPage: failed,
		ContentTypes: page, Response: "<h1>A door</h1>",
	}, func(_ context.Context, in *lookInput) (rest.Page, error) {
		switch in.ID {
		case "lost":
			return rest.Page{}, apperr.Missing("door")
		case "broken":
			return rest.Page{}, errors.New("the password is hunter2")
		case "away":
			return rest.Page{Status: http.StatusServiceUnavailable, HTML: []byte("later"),
					RetryAfter: 1500 * time.Millisecond},
				nil
		case "open":
			return rest.Page{HTML: []byte("go"), Refresh: "https://app.test/?code=1",
				Policy: rest.Policy{Forms: true, ScriptHash: "sha256-x", Frames: []string{"https://app.test"}}}, nil
		}
		return rest.Page{HTML: []byte(html.EscapeString(in.Request.URL.Query().Get("x")))}, nil
	})
	for id, cross := range map[string]bool{"knock-at-door": false, "shout-at-door": true} {
		rest.Handle(s, rest.Op{
			ID: id, Method: http.MethodPost, Path: "/" + strings.Split(id, "-")[0], Summary: "Knock", ErrorPage: failed,
			CrossSite: cross, ContentTypes: page, Request: DoorForm{"ann"}, Response: "<h1>Come in</h1>",
			Errors: []apperr.Kind{apperr.Forbidden},
		}, func(_ context.Context, in *doorInput) (rest.Page, error) {
			return rest.Redirect("/doors/"+in.Form.Get("name"), &http.Cookie{Name: "guest", Value: "1",
				HttpOnly: true}), nil
		})
	}
	rest.Handle(s, rest.Op{
		ID: "get-door-style", Method: http.MethodGet, Path: "/door.css", Summary: "Get the style", ErrorPage: failed,
		ContentTypes: []string{"text/css"}, Response: "h1{}",
	}, func(context.Context, *struct{}) (rest.Asset, error) {
		return rest.Asset{ContentType: "text/css; charset=utf-8", Body: []byte("h1{}")}, nil
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerDoors).Stranger()
	require.Equal(t, "&lt;b&gt;", c.Get("/doors/1?x=%3Cb%3E").Page(http.StatusOK))
	answer := c.Get("/doors/open")
	answer.Page(http.StatusOK)
	require.Equal(t, "0; url=https://app.test/?code=1", answer.Header.Get("Refresh"))
	policy := answer.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "script-src 'self' 'sha256-x';")
	require.Contains(t, policy, "frame-src https://app.test;")
	require.NotContains(t, policy, "form-action")
	require.Equal(t,
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; "+
			"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		rest.Policy{}.String())
	answer = c.Get("/doors/away")
	answer.Page(http.StatusServiceUnavailable)
	require.Equal(t, "2", answer.Header.Get("Retry-After"))
	require.Contains(t, c.Get("/door.css").Header.Get("Cache-Control"), "immutable")
}

func TestErrorsArePages(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerDoors).Stranger()
	answer := c.Get("/doors/lost")
	require.Equal(t, "<h1>no such door</h1>", answer.Page(http.StatusNotFound))
	require.Empty(t, answer.Header.Get("Location"))
	require.NotContains(t, c.Get("/doors/broken").Page(http.StatusInternalServerError), "hunter2")
	c.Get("/doors/1?x=%zz").Page(http.StatusBadRequest)
	c.Get("/doors/%ff").Page(http.StatusBadRequest)
	post := c.With("Content-Type", rest.FormType)
	post.Post("/knock", strings.Repeat("x", 65<<10)).Page(http.StatusRequestEntityTooLarge)
	post.Post("/knock", "name=a&name=b").Page(http.StatusBadRequest)
	c.Post("/knock", map[string]any{"name": "ann"}).Page(http.StatusUnsupportedMediaType)
}

// A form that another site's page sends is refused before its body is read, unless the operation takes such forms.
func TestFormsOfOtherSites(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerDoors).Stranger().With("Content-Type", rest.FormType)
	answer := c.With("Sec-Fetch-Site", "same-origin").Post("/knock?dry_run=true", "name=ann&more=1&more=2")
	require.Equal(t, http.StatusSeeOther, answer.Status)
	require.Equal(t, "/doors/ann", answer.Header.Get("Location"))
	require.Equal(t, "guest=1; HttpOnly", answer.Header.Get("Set-Cookie"))
	for _, row := range []struct {
		site, origin string
		admitted     bool
	}{
		{"cross-site", "https://evil.test", false}, {"same-site", "https://other.idp.test", false},
		{"", "https://evil.test", false}, {"", "null", false}, {"", "https://idp.test", true}, {"", "", true},
		{"none", "", true},
	} {
		from := c.With("Sec-Fetch-Site", row.site).With("Origin", row.origin)
		if !row.admitted {
			from.Post("/knock", "name=ann").Page(http.StatusForbidden)
		} else {
			require.Equal(t, http.StatusSeeOther, from.Post("/knock", "name=ann").Status, "%+v", row)
		}
		require.Equal(t, http.StatusSeeOther, from.Post("/shout", "name=ann").Status, "%+v", row)
	}
}

func TestDocumentOfPages(t *testing.T) {
	t.Parallel()
	document := newWorld(t, registerDoors).Stranger().Get("/openapi.json").Object()
	knock := document["paths"].(map[string]any)["/knock"].(map[string]any)["post"].(map[string]any)
	require.Equal(t, true, knock["x-page"])
	require.Empty(t, knock["parameters"])
	require.Contains(t, knock["responses"].(map[string]any)["403"].(map[string]any)["content"], "text/html")
}
