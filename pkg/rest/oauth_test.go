package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// TokenForm is a form body.
type TokenForm struct {
	GrantType string `json:"grant_type" example:"client_credentials"`
	ScopeForm
}

// ScopeForm is a part of a form.
type ScopeForm struct {
	Scope string `json:"scope,omitempty"`
}

type tokenInput struct {
	Authorization string `header:"Authorization"`
	Form          rest.Form[TokenForm]
}

type token struct {
	AccessToken string `json:"access_token"`
}

func registerToken(s *rest.Server, _ service.Deps) {
	rest.Handle(s, rest.Op{
		ID: "create-token", Method: http.MethodPost, Path: "/v1/oauth2/token", Summary: "Get a token", NoReplay: true,
		OAuth:  true,
		Errors: []apperr.Kind{apperr.Unauthenticated},
	}, func(_ context.Context, in *tokenInput) (token, error) {
		form := in.Form.Value
		switch {
		case in.Authorization == "Bearer wrong":
			return token{}, apperr.OAuth(apperr.Unauthenticated, rest.InvalidToken, "the token has expired")
		case in.Authorization == "Bearer none":
			return token{}, apperr.OAuth(apperr.Unauthenticated, rest.NoToken, "there is no token")
		case in.Authorization != "":
			return token{}, apperr.New(apperr.Unauthenticated, "the client's secret is wrong")
		case form.GrantType == "":
			return token{}, apperr.Invalid("body.grant_type", "must be there")
		case form.GrantType == "boom":
			return token{}, errors.New("the database password is hunter2")
		case form.GrantType == "away":
			return token{}, apperr.Away("the store", nil)
		case form.Scope == "all":
			return token{}, apperr.OAuth(apperr.InvalidParameters, "invalid_scope", `the scope "all" is not granted …`)
		}
		return token{form.GrantType + " " + form.Scope}, nil
	})
}

func TestFormsAndOAuthErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerToken)
	const path = "/v1/oauth2/token"
	for name, c := range map[string]struct {
		body, contentType, authorization string
		status                           int
		want                             string // the body, or its beginning
		challenge                        string
	}{
		"a form": {body: "grant_type=a%20b&scope=x+y&unknown=1&unknown=2", status: 200,
			want: `{"access_token":"a b x y"}`},
		"with parameters": {body: "grant_type=a",
			contentType: "application/x-www-form-urlencoded; charset=utf-8", status: 200,
			want: `{"access_token":"a "}`},
		"an empty parameter": {body: "grant_type=&scope=x", status: 400,
			want: `{"error":"invalid_request","error_description":"body.grant_type must be there"}`},
		"given twice": {body: "grant_type=a&grant_type=b", status: 400,
			want: `{"error":"invalid_request","error_description":"body.grant_type is given twice"}`},
		"bad encoding": {body: "grant_type=%zz", status: 400,
			want: `{"error":"invalid_request","error_description":"body is not a well-formed form"}`},
		"JSON": {body: `{"grant_type":"a"}`, contentType: "application/json", status: 415,
			want: `{"error":"invalid_request"`},
		"too large": {body: "scope=" + strings.Repeat("x", 64<<10), status: 413,
			want: `{"error":"invalid_request"`},
		"a code named by the operation": {body: "grant_type=a&scope=all", status: 400,
			want: `{"error":"invalid_scope","error_description":"the scope 'all' is not granted -"}`},
		"a wrong secret": {body: "grant_type=a", authorization: "Basic wrong", status: 401,
			want: `{"error":"invalid_client"`, challenge: `Basic realm="idplatform"`},
		"a wrong token": {body: "grant_type=a", authorization: "Bearer wrong", status: 401,
			want: `{"error":"invalid_token"`, challenge: `Bearer error="invalid_token"`},
		"no token": {body: "grant_type=a", authorization: "Bearer none", status: 401,
			want: `{"error_description":"there is no token"}`, challenge: `Bearer`},
		"another scheme": {body: "grant_type=a", authorization: "Digest x", status: 401,
			want: `{"error":"invalid_client"`, challenge: `Basic realm="idplatform"`},
		"internal":               {body: "grant_type=boom", status: 500, want: `{"error":"server_error"`},
		"an unavailable service": {body: "grant_type=away", status: 503, want: `{"error":"temporarily_unavailable"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(c.body))
			r.Header.Set("Content-Type", rest.FormType)
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			r.Header.Set("Authorization", c.authorization)
			answer := httptest.NewRecorder()
			w.Handler.ServeHTTP(answer, r)
			require.Equal(t, c.status, answer.Code, answer.Body)
			require.True(t, strings.HasPrefix(strings.TrimSpace(answer.Body.String()), c.want), answer.Body)
			require.Equal(t, "application/json; charset=utf-8", answer.Header().Get("Content-Type"))
			require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
			require.Equal(t, c.challenge, answer.Header().Get("WWW-Authenticate"))
			require.NotContains(t, answer.Body.String(), "hunter2")
			if c.status == 503 {
				require.NotEmpty(t, answer.Header().Get("Retry-After"))
			}
		})
	}
}

// What huma itself refuses is an OAuth error, too.
func TestOAuthErrorsOfTheInput(t *testing.T) {
	t.Parallel()
	type strictInput struct {
		Form   rest.Form[TokenForm]
		Number int `query:"number"`
	}
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "strict-token", Method: http.MethodPost, Path: "/v1/oauth2/strict", Summary: "Get",
			NoReplay: true, OAuth: true},
			func(context.Context, *strictInput) (token, error) { return token{}, nil })
	})
	r := httptest.NewRequest(http.MethodPost, "/v1/oauth2/strict?number=x", strings.NewReader("grant_type=a"))
	r.Header.Set("Content-Type", rest.FormType)
	answer := httptest.NewRecorder()
	w.Handler.ServeHTTP(answer, r)
	require.Equal(t, http.StatusBadRequest, answer.Code)
	require.JSONEq(t, `{"error":"invalid_request","error_description":"query.number invalid integer"}`,
		answer.Body.String())
}
