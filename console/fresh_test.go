package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ids(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Quote(strconv.Itoa(i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// What makes a secret, or deletes many records, wants a sign-in of the last five minutes; nothing else does.
func TestWhatWantsAFreshSignIn(t *testing.T) {
	t.Parallel()
	p := &platform{}
	b := open(t, p, nil)
	b.signIn()
	calls := []struct {
		method, path, body, run string
		fresh                   bool
	}{
		{"POST", "/v1/applications", "{}", "", true},
		{"POST", "/v1/batch/applications", `{"items":[]}`, "", true},
		{"POST", "/v1/applications/2001/secrets?grace_seconds=60", "", "", true},
		{"POST", "/v1/applications/a%2Fb/secrets", "", "", true},
		{"POST", "/v1/applications/2001/%73ecrets", "", "", true},
		{"POST", "/v1/applications//2001/secrets", "", "", true},
		{"POST", "/v1/applications/2001/protocols/oidc/secret", "", "", true},
		{"POST", "/v1/applications/2001/secrets?dry_run=false", "", "", true},
		{"POST", "/v1/applications/2001/secrets?dry_run=true&dry_run=false", "", "", true},
		{"POST", "/v1/applications/2001/secrets?dry_run=true", "", "", false},
		{"POST", "/v1/event-subscriptions", "{}", "", true},
		{"POST", "/v1/event-subscriptions/1/reset", `{"to":"now"}`, "", false},
		{"POST", "/v1/event-subscriptions/1/reset", `{"rotate_secret":false}`, "", false},
		{"POST", "/v1/event-subscriptions/1/reset", `{"rotate_secret":true}`, "", true},
		{"POST", "/v1/event-subscriptions/1/reset", `{"rotate_secret":false,"rotate_secret":true}`, "", true},
		{"POST", "/v1/event-subscriptions/1/reset", `{"rotate_\u0073ecret":true}`, "", true},
		{"POST", "/v1/event-subscriptions/1/reset", `{"Rotate_Secret":true}`, "", true},
		{"POST", "/v1/users/1/reset-password", "", "", true},
		{"POST", "/v1/batch/users-reset-password", `{"ids":["1"]}`, "", true},
		{"DELETE", "/v1/users/1", "", "", false},
		{"DELETE", "/v1/batch/users", `{"ids":` + ids(100) + `}`, "", false},
		{"DELETE", "/v1/batch/users", `{"ids":` + ids(101) + `}`, "", true},
		{"DELETE", "/v1/batch/users", `{"ids":` + ids(60) + `,"ids":` + ids(60) + `}`, "", true},
		{"DELETE", "/v1/batch/users", `{"a":[{"ids":` + ids(100) + `}]}`, "", true},
		{"DELETE", "/v1/batch/users", `{"ids":` + ids(1000), "", true},
		{"DELETE", "/v1/batch/users?dry_run=true", `{"ids":` + ids(1000) + `}`, "", false},
		{"DELETE", "/v1/batch/users", `nonsense`, "", false},
		{"DELETE", "/v1/batch/users", `{"ids":` + ids(100) + `}`, "48211", true},
		{"DELETE", "/v1/batch/users", `{"ids":["1"]}`, "100", false},
		{"DELETE", "/v1/batch/users", `{"ids":["1"]}`, "many", true},
		{"DELETE", "/v1/applications/2001", "", "", true},
		{"DELETE", "/v1/applications/2001?dry_run=true", "", "", false},
		{"DELETE", "/v1/auth-units/3001", "", "", true},
		{"DELETE", "/v1/kv/buckets/settings", "", "", false},
		{"DELETE", "/v1/kv/buckets/settings?force=true", "", "", true},
		{"DELETE", "/v1/kv/buckets/settings?force=false&force=1", "", "", true},
		{"DELETE", "/v1/kv/buckets/settings?force=0", "", "101", true},
		{"DELETE", "/v1/kv/buckets//settings?force=false", "", "", true},
		{"DELETE", "/v1/tree-nodes/4001", "", "100", false},
		{"DELETE", "/v1/tree-nodes/4001", "", "101", true},
		{"POST", "/v1/batch/users-lock", `{"ids":` + ids(1000) + `}`, "", false},
		{"GET", "/v1/applications", "", "", false},
		{"PATCH", "/v1/applications/2001", "{}", "", false},
	}
	ask := func(method, path, body, run string) (status int) {
		p.body = ""
		w := b.do(method, "/console/api"+path, body, "X-Console-Run", run)
		if w.Code == http.StatusUnauthorized {
			requireProblem(t, w, 401, "sign_in_too_old")
			require.Equal(t, `Bearer error="insufficient_user_authentication", max_age="300"`,
				w.Header().Get("WWW-Authenticate"))
			require.Contains(t, w.Body.String(), "5 minutes")
			return w.Code
		}
		require.Equal(t, body, p.body, "the body is whole")
		require.NotContains(t, p.seen.Header, "X-Console-Run")
		return w.Code
	}
	b.now = b.now.Add(5 * time.Minute)
	for _, c := range calls {
		require.Equal(t, 200, ask(c.method, c.path, c.body, c.run), "%s %.80s", c.method, c.path)
	}
	b.now = b.now.Add(time.Second)
	for _, c := range calls {
		want := 200
		if c.fresh {
			want = 401
		}
		require.Equal(t, want, ask(c.method, c.path, c.body, c.run), "%s %s %.80s", c.method, c.path, c.body)
	}
	long := `{"ids":["` + strings.Repeat("x", 3<<20) + `"]}`
	require.Equal(t, 200, ask("DELETE", "/v1/batch/users", long, ""), "services refuse it; it passes whole")
	b.signIn()
	for _, c := range calls {
		require.Equal(t, 200, ask(c.method, c.path, c.body, c.run))
	}
}

// A session that lasts does not count as a sign-in; the issuer's own time of it does.
func TestFreshSignInAtAnIssuer(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	secrets := func() int { return b.status("POST", "/console/api/v1/applications/1/secrets") }
	i.ID = func(claims map[string]any) { claims["auth_time"] = b.now.Unix() - 3600 }
	b.signInAtIssuer()
	require.Equal(t, 401, secrets(), "signed in an hour ago, for another application")
	i.ID = func(claims map[string]any) { delete(claims, "auth_time") }
	b.signInAtIssuer()
	require.Equal(t, 401, secrets(), "the issuer does not say")
	i.ID = func(claims map[string]any) { claims["auth_time"] = b.now.Unix() + 1e6 }
	b.signInAtIssuer()
	require.Equal(t, 200, secrets())
	b.now = b.now.Add(6 * time.Minute)
	require.Equal(t, 401, b.status("GET", "/console/api/v1/users"))
	require.Equal(t, 200, b.status("POST", renewalPath))
	require.Equal(t, 200, b.status("GET", "/console/api/v1/users"))
	require.Equal(t, 401, secrets(), "a renewal is no sign-in, and no clock runs ahead")

	i.ID = nil
	back := b.walk(oidcPath + "?fresh&return=" + url.QueryEscape("/console/sign-in?back"))
	require.Equal(t, "login", i.Asked().Get("prompt"))
	require.Equal(t, "0", i.Asked().Get("max_age"))
	w := b.comeBack(back)
	require.Equal(t, "/console/sign-in?back", w.Header().Get("Location"))
	require.Equal(t, 200, secrets())
}

func readAll(r *http.Request) string {
	text, _ := io.ReadAll(r.Body)
	return string(text)
}
