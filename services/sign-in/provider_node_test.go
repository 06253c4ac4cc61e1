package signin_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/npm"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/providertest"
)

// startNode starts an unmodified OpenID provider from npm, for as long as the test lasts, and returns its issuer. It
// sends logout tokens to an address.
func startNode(t *testing.T, logout string) string {
	t.Helper()
	dir := npm.Install(t, "testdata/oidc-provider")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	ctx, stop := context.WithCancel(t.Context())
	node := exec.CommandContext(ctx, "node", "server.mjs", port, base+"/callback/"+corp, logout,
		providertest.ClientSecret)
	node.Dir = dir
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		stop()
		_ = node.Wait() // it was stopped
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "http://" + address
		}
	}
	require.FailNow(t, "the provider does not start", "%v", lines.Err())
	return ""
}

var formAction = regexp.MustCompile(`<form [^>]*action="([^"]*)"`)

// signInAtNode fills in the provider's development pages, and returns where the browser goes in the end, and what has
// signed in.
func signInAtNode(t *testing.T, at, who string) (string, *http.Client) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	back := ""
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), base) {
			back = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	forms := []url.Values{
		{"prompt": {"login"}, "login": {who}, "password": {"any"}}, {"prompt": {"consent"}},
	}
	answer, err := client.Get(at)
	for _, form := range forms {
		require.NoError(t, err)
		page, readErr := io.ReadAll(answer.Body)
		require.NoError(t, readErr)
		require.NoError(t, answer.Body.Close())
		to := formAction.FindStringSubmatch(string(page))
		require.NotNil(t, to, "%s\n%s", answer.Request.URL, page)
		answer, err = client.PostForm(html.UnescapeString(to[1]), form)
	}
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.NotEmpty(t, back, "%s", answer.Request.URL)
	return back, client
}

var nodeToken = regexp.MustCompile(`name="xsrf" value="([^"]*)"`)

// signOutAtNode signs out of the provider what has signed in there.
func signOutAtNode(t *testing.T, issuer string, client *http.Client) {
	t.Helper()
	answer, err := client.Get(issuer + "/session/end")
	require.NoError(t, err)
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	to, token := formAction.FindStringSubmatch(string(page)), nodeToken.FindStringSubmatch(string(page))
	require.NotNil(t, to, "%s", page)
	require.NotNil(t, token, "%s", page)
	answer, err = client.PostForm(html.UnescapeString(to[1]), url.Values{"xsrf": {token[1]}, "logout": {"yes"}})
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// An unmodified provider that others have written: a person comes from there, is linked, comes again, and signs out
// there.
func TestUnmodifiedOpenIDProvider(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"link": "verified_email", "domains": ["acme.test"]}`)
	tokens := make(chan string, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens <- r.PostFormValue("logout_token")
	}))
	t.Cleanup(receiver.Close)
	issuer := startNode(t, receiver.URL)
	f.connections[corp]["Issuer"] = issuer
	var there *http.Client
	for range 2 {
		b := f.browser().get(f.authorize("portal"))
		b.send(url.Values{"action": {"leave"}, "connection": {corp}})
		require.True(t, strings.HasPrefix(b.at, issuer), "%s\n%s", b.at, b.body)
		back, client := signInAtNode(t, b.at, "ann")
		b.get(back).answered(callback)
		there = client
	}
	require.Len(t, f.links, 1)
	for identity := range f.links {
		require.Equal(t, "ann", identity.Subject)
	}
	require.Len(t, f.sessions(), 2)
	signOutAtNode(t, issuer, there)
	require.Equal(t, http.StatusOK, f.sends(corp, wait.Receive(t, tokens)))
	require.Len(t, f.sessions(), 1)
	b := f.browser().get(f.authorize("portal"))
	b.send(url.Values{"action": {"leave"}, "connection": {corp}})
	back, _ := signInAtNode(t, b.at, "somebody")
	b.get(back).shows(200, fmt.Sprintf("%s at Corp", "somebody"))
}
