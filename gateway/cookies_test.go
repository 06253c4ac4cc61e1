package gateway

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each of the two parts that have cookies gets its own, and no other service gets any.
func TestKeepCookies(t *testing.T) {
	t.Parallel()
	const all = "__Host-idp_console=c; __Host-idp_session_acme=s; idp_browser=b; idp_lang=zh; other=o"
	for _, row := range []struct{ path, service, want string }{
		{"/console", Console, "__Host-idp_console=c; other=o"},
		{"/sign-in/acme/authorize", SignIn, "__Host-idp_session_acme=s; idp_browser=b; idp_lang=zh"},
		{"/sign-in", SignIn, "__Host-idp_session_acme=s; idp_browser=b; idp_lang=zh"},
		{"/v1/sessions", SignIn, ""}, {"/.well-known/oauth-authorization-server/sign-in/acme", SignIn, ""},
		{"/v1/users", Users, ""},
	} {
		r := httptest.NewRequest("GET", row.path, nil)
		r.Header.Set("Cookie", all)
		keepCookies(r, row.service)
		require.Equal(t, row.want, r.Header.Get("Cookie"), row.path)
	}
}
