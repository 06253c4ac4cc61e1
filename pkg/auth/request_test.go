package auth

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestBearerToken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		headers []string
		want    string
	}{
		"plain":          {[]string{"Bearer abc.def.ghi"}, "abc.def.ghi"},
		"any case":       {[]string{"bEARER abc"}, "abc"},
		"more spaces":    {[]string{"Bearer   abc "}, "abc"},
		"none":           {nil, ""},
		"empty":          {[]string{""}, ""},
		"scheme alone":   {[]string{"Bearer"}, ""},
		"scheme, space":  {[]string{"Bearer "}, ""},
		"other scheme":   {[]string{"Basic YTpi"}, ""},
		"no space":       {[]string{"Bearerabc"}, ""},
		"two headers":    {[]string{"Bearer abc", "Bearer abc"}, ""},
		"two in a list":  {[]string{"Bearer abc, Bearer def"}, ""},
		"two tokens":     {[]string{"Bearer abc def"}, ""},
		"tab":            {[]string{"Bearer\tabc"}, ""},
		"leading space":  {[]string{" Bearer abc"}, ""},
		"scheme twice":   {[]string{"Bearer Bearer abc"}, ""},
		"quoted trailer": {[]string{"Bearer abc\t"}, ""},
	} {
		r, err := http.NewRequest(http.MethodGet, "/?access_token=query", nil)
		require.NoError(t, err)
		r.Header["Authorization"] = test.headers
		token, err := BearerToken(r)
		require.Equal(t, test.want, token, name)
		if test.want == "" {
			require.Equal(t, apperr.Unauthenticated, apperr.KindOf(err), name)
		}
	}
}

func TestSelectTenant(t *testing.T) {
	t.Parallel()
	user := &Principal{Tenant: "acme", Scopes: AllScopes &^ NewScopes(PlatformAdmin)}
	admin := &Principal{Tenant: "acme", Scopes: NewScopes(PlatformAdmin)}
	for name, test := range map[string]struct {
		p       *Principal
		headers []string
		want    string
		kind    apperr.Kind
	}{
		"own, unsaid":         {user, nil, "acme", ""},
		"own, said":           {user, []string{"acme"}, "acme", ""},
		"another":             {user, []string{"other"}, "", apperr.Forbidden},
		"another, as admin":   {admin, []string{"other"}, "other", ""},
		"own, as admin":       {admin, nil, "acme", ""},
		"empty":               {admin, []string{""}, "", apperr.InvalidParameters},
		"capitals":            {admin, []string{"Acme"}, "", apperr.InvalidParameters},
		"a path":              {admin, []string{"../acme"}, "", apperr.InvalidParameters},
		"NATS wildcard":       {admin, []string{"acme.>"}, "", apperr.InvalidParameters},
		"line end":            {admin, []string{"acme\n"}, "", apperr.InvalidParameters},
		"full-width letters":  {admin, []string{"ａｃｍｅ"}, "", apperr.InvalidParameters},
		"63 letters":          {admin, []string{strings.Repeat("a", 63)}, strings.Repeat("a", 63), ""},
		"64 letters":          {admin, []string{strings.Repeat("a", 64)}, "", apperr.InvalidParameters},
		"starts with a dash":  {admin, []string{"-a"}, "", apperr.InvalidParameters},
		"twice":               {admin, []string{"acme", "acme"}, "", apperr.InvalidParameters},
		"another and invalid": {user, []string{"O!"}, "", apperr.InvalidParameters},
	} {
		got, err := SelectTenant(&http.Request{Header: http.Header{TenantHeader: test.headers}}, test.p)
		require.Equal(t, test.want, got, name)
		if test.kind == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, test.kind, apperr.KindOf(err), name)
		if e, ok := err.(*apperr.Error); ok && test.kind == apperr.InvalidParameters {
			require.Equal(t, "header.X-Tenant-Id", e.Faults[0].Location, name)
		}
	}
}

func TestPrincipalInContext(t *testing.T) {
	t.Parallel()
	require.Nil(t, PrincipalFrom(t.Context()))
	p := &Principal{Subject: "1"}
	require.Same(t, p, PrincipalFrom(WithPrincipal(t.Context(), p)))
}
