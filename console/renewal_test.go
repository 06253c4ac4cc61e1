package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/console"
	"github.com/idplatform/idplatform/pkg/secret"
)

func TestTokensAreRenewed(t *testing.T) {
	t.Parallel()
	b, i, p := withIssuer(t, nil)
	b.signInAtIssuer()
	require.Equal(t, 200, b.status("POST", renewalPath))
	require.Zero(t, i.Renewals(), "the token is still good")
	ends := b.now.Add(8 * time.Hour)
	for b.now = b.now.Add(20 * time.Minute); b.now.Before(ends); b.now = b.now.Add(20 * time.Minute) {
		before := p.seen
		requireProblem(t, b.do("GET", "/console/api/v1/users", ""), 401, "unauthenticated")
		require.Same(t, before, p.seen, "a token that has ended is not sent")
		require.Equal(t, 200, b.status("POST", renewalPath))
		require.Equal(t, 200, b.status("GET", "/console/api/v1/users"))
	}
	require.Equal(t, 23, i.Renewals(), "each with another refresh token")
	require.Equal(t, 401, b.status("POST", renewalPath), "8 hours in all")

	b.cookies = map[string]*http.Cookie{}
	b.signInAtIssuer()
	b.now = b.now.Add(31 * time.Minute)
	require.Equal(t, 401, b.status("POST", renewalPath), "nobody was there for 30 minutes")
	requireProblem(t, b.do("GET", renewalPath, ""), 405, "method_not_allowed")
	requireProblem(t, b.do("POST", renewalPath, "", "Sec-Fetch-Site", "cross-site"), 403, "forbidden")
}

// Many requests of one browser renew once, and those with the former cookies get the same tokens a while later: an
// issuer that sees a refresh token twice ends all of them.
func TestRenewalsAtOnce(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	b.signInAtIssuer()
	b.now = b.now.Add(20 * time.Minute)
	former := b.cookies["idp_console"]
	renew := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://"+b.host+renewalPath, nil)
		r.AddCookie(former)
		w := httptest.NewRecorder()
		b.console.ServeHTTP(w, r)
		return w
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			w := renew()
			if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, i.Renewals())
	b.now = b.now.Add(50 * time.Second)
	require.Equal(t, 200, renew().Code, "the browser did not get the answer")
	require.Equal(t, 1, i.Renewals())
	require.Equal(t, 200, b.status("POST", renewalPath), "the issuer has not ended the tokens")
}

// A call that was sent before a renewal, and answered after it, does not bring the former tokens back.
func TestLateAnswersKeepTheNewTokens(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	b.signInAtIssuer()
	former := b.cookies["idp_console"]
	b.now = b.now.Add(4*time.Minute + 45*time.Second)
	require.Equal(t, 200, b.status("POST", renewalPath))
	renewed := b.cookies["idp_console"]
	require.NotEqual(t, former.Value, renewed.Value)
	b.cookies["idp_console"] = former
	require.Equal(t, 200, b.status("GET", "/console/api/v1/users"), "15 s are left")
	require.Equal(t, former, b.cookies["idp_console"], "the answer has not set it")
	require.Contains(t, b.cookies, "idp_console_seen")
	b.cookies["idp_console"] = renewed
	require.Equal(t, 200, b.status("GET", "/console/api/v1/users"))
	require.Equal(t, 1, i.Renewals())
}

func TestRenewalsThatFail(t *testing.T) {
	t.Parallel()
	b, i, p := withIssuer(t, nil)
	b.signInAtIssuer()
	b.now = b.now.Add(10 * time.Minute)
	i.Away = true
	requireProblem(t, b.do("POST", renewalPath, ""), 503, "unavailable")
	i.Away, p.away = false, true
	require.Equal(t, 200, b.status("POST", renewalPath), "the former refresh token is used up")
	require.Equal(t, 1, i.Renewals())
	p.away = false
	b.now = b.now.Add(10 * time.Minute)
	i.Access = func(claims map[string]any) { claims["aud"] = "others" }
	requireProblem(t, b.do("POST", renewalPath, ""), 401, "unauthenticated")
	i.Access = func(claims map[string]any) { claims["scope"] = "users:write" }

	b.signInAtIssuer()
	b.now = b.now.Add(10 * time.Minute)
	i.Subject = "somebody else"
	requireProblem(t, b.do("POST", renewalPath, ""), 401, "unauthenticated")
	require.Equal(t, 401, b.status("GET", "/console/api/v1/users"))

	b.signIn()
	b.now = b.now.Add(59*time.Minute + 45*time.Second)
	requireProblem(t, b.do("POST", renewalPath, ""), 401, "unauthenticated")
}

// A refresh token goes to the issuer that gave it, and to no other.
func TestAnotherIssuerGetsNoTokens(t *testing.T) {
	t.Parallel()
	keys := func(c *console.Config, _ *console.Deps) { c.Keys = secret.New("k1:" + strings.Repeat("A", 43) + "=") }
	b, _, _ := withIssuer(t, keys)
	other, i, _ := withIssuer(t, keys)
	b.signInAtIssuer()
	other.cookies, other.now = b.cookies, b.now.Add(10*time.Minute)
	requireProblem(t, other.do("POST", renewalPath, ""), 401, "unauthenticated")
	require.Equal(t, 200, other.status("DELETE", sessionPath))
	require.Zero(t, i.Renewals())
	require.Empty(t, i.Revoked())
}

// Issuers differ in how the client proves itself, and in what they offer besides tokens.
func TestOtherIssuers(t *testing.T) {
	t.Parallel()
	b, i, _ := withIssuer(t, nil)
	i.Post = true
	b.signInAtIssuer()
	b.now = b.now.Add(10 * time.Minute)
	require.Equal(t, 200, b.status("POST", renewalPath))
	require.Equal(t, 200, b.status("DELETE", sessionPath))
	require.Len(t, i.Revoked(), 2)

	b, i, _ = withIssuer(t, nil)
	i.Bare = true
	b.signInAtIssuer()
	require.Contains(t, b.do("GET", sessionPath, "").Body.String(), `"time_expires":"2027-01-15T08:05:00Z"`)
	require.NotContains(t, b.do("DELETE", sessionPath, "").Body.String(), "sign_out_url")
	b.signInAtIssuer()
	b.now = b.now.Add(5 * time.Minute)
	require.Equal(t, 401, b.status("GET", "/console/api/v1/users"))
	require.Equal(t, 401, b.status("POST", renewalPath))
}

// Replicas share the keys alone. Because calls never renew, requests of one browser to all of them send a refresh token
// once; only a renewal whose answer got lost, repeated at another replica, ends the session.
func TestRenewalsAtSeveralReplicas(t *testing.T) {
	t.Parallel()
	keys := secret.NewKey()
	first, i, p := withIssuer(t, func(c *console.Config, _ *console.Deps) { c.Keys = keys })
	second, _, _ := withIssuer(t, func(c *console.Config, d *console.Deps) {
		c.Keys, c.OIDC.Issuer, d.Gateway = keys, i.URL, p
	})
	first.signInAtIssuer()
	former := first.cookies["idp_console"]
	later := func(d time.Duration) {
		first.now = first.now.Add(d)
		second.now = first.now
	}
	later(10 * time.Minute)
	for range 3 {
		second.cookies = map[string]*http.Cookie{"idp_console": former}
		require.Equal(t, 401, second.status("GET", "/console/api/v1/users"))
	}
	require.Equal(t, 200, first.status("POST", renewalPath))
	second.cookies = first.cookies
	require.Equal(t, 200, second.status("GET", "/console/api/v1/users"))
	require.Equal(t, 200, second.status("POST", renewalPath), "another tab, after the first")
	require.Equal(t, 1, i.Renewals())

	later(10 * time.Minute)
	require.Equal(t, 200, second.status("POST", renewalPath))
	require.Equal(t, 2, i.Renewals())
	first.cookies = map[string]*http.Cookie{"idp_console": former}
	require.Equal(t, 401, first.status("POST", renewalPath))
	require.Equal(t, 401, first.status("GET", "/console/api/v1/users"))
}
