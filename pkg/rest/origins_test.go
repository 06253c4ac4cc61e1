package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// Pages of other origins may read what an operation lets them read, errors too, and learn so from a preflight.
func TestOrigins(t *testing.T) {
	t.Parallel()
	const app, evil = "https://app.test", "https://evil.test"
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		type input struct {
			ID   string `path:"id"`
			Form rest.Form[TokenForm]
		}
		origins := func(_ context.Context, r rest.CrossOrigin) (bool, error) {
			switch {
			case r.Origin == "https://unknown.test":
				return false, apperr.Away("the list of origins", nil)
			case r.Request.Method == http.MethodPost && r.Form.Get("scope") == "secret":
				return false, nil
			}
			return r.Origin == "https://"+r.Param("id")+".test", nil
		}
		op := rest.Op{ID: "spa-token", Method: http.MethodPost, Path: "/v1/apps/{id}/token", Summary: "Get a token",
			OAuth: true, NoReplay: true, IfMatchParam: rest.NoRecord, Origins: origins}
		rest.Handle(s, op, func(_ context.Context, in *input) (token, error) {
			if in.Form.Value.GrantType == "bad" {
				return token{}, apperr.Invalid("body.grant_type", "is bad")
			}
			return token{"t"}, nil
		})
		op.ID, op.Method = "spa-info", http.MethodGet
		rest.Handle(s, op, func(context.Context, *struct {
			ID string `path:"id"`
		}) (token, error) {
			return token{"t"}, nil
		})
		op.ID, op.Path, op.Origins, op.AnyOrigin, op.OAuth = "spa-keys", "/v1/keys", nil, true, false
		rest.Handle(s, op, func(context.Context, *struct{}) (token, error) { return token{"t"}, nil })
	})
	const path, allowed = "/v1/apps/app/token", "Access-Control-Allow-Origin"
	for name, c := range map[string]struct {
		path, origin, form string
		allow              string
		status             int
	}{
		"of the application": {path, app, "grant_type=code", app, 200},
		"an error":           {path, app, "grant_type=bad", app, 400},
		"a broken form":      {path, app, "grant_type=%zz", app, 400},
		"of another":         {path, evil, "grant_type=code", "", 200},
		"decided by form":    {path, app, "grant_type=code&scope=secret", "", 200},
		"nobody knows":       {path, "https://unknown.test", "grant_type=code", "", 200},
		"no origin":          {path, "", "grant_type=code", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			client := w.Stranger().With("Content-Type", "application/x-www-form-urlencoded")
			if c.origin != "" {
				client = client.With("Origin", c.origin)
			}
			answer := client.Post(c.path, c.form)
			require.Equal(t, c.status, answer.Status, "%s", answer.Body)
			require.Equal(t, c.allow, answer.Header.Get(allowed))
			require.Contains(t, answer.Header.Values("Vary"), "Origin")
			require.Empty(t, answer.Header.Get("Access-Control-Allow-Credentials"))
		})
	}
	require.Equal(t, "*", w.Stranger().Get("/v1/keys").Header.Get(allowed), "caches give the answer to all")
	require.Equal(t, app, w.Stranger().With("Origin", app).Get(path).Header.Get(allowed))
	require.Empty(t, w.client().With("Origin", app).Get("/v1/things/7").Header.Get(allowed))

	preflight := func(path, origin, method, headers string) (status int, allow, methods, names string) {
		answer := w.Stranger().With("Origin", origin).With("Access-Control-Request-Method", method).
			With("Access-Control-Request-Headers", headers).Do("OPTIONS", path, nil)
		h := answer.Header
		return answer.Status, h.Get(allowed), h.Get("Access-Control-Allow-Methods"),
			h.Get("Access-Control-Allow-Headers")
	}
	row := func(status int, allow, methods, names string) []any { return []any{status, allow, methods, names} }
	require.Equal(t, row(204, app, "GET, POST", "authorization"), row(preflight(path, app, "GET", "authorization")))
	require.Equal(t, row(204, app, "GET, POST", ""), row(preflight(path, app, "POST", "")))
	require.Equal(t, row(204, "*", "GET", "x"), row(preflight("/v1/keys", evil, "GET", "x")))
	require.Equal(t, row(403, "", "", ""), row(preflight(path, evil, "POST", "")))
	require.Equal(t, row(503, "", "", ""), row(preflight(path, "https://unknown.test", "POST", "")))
	require.Equal(t, row(405, "", "", ""), row(preflight(path, app, "DELETE", "")))
	require.Equal(t, row(405, "", "", ""), row(preflight("/v1/things", app, "POST", "")))
	status, _, _, _ := preflight(path, app, "GET", strings.Repeat("a", 2000))
	require.Equal(t, 400, status)
}
