package cas_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/npm"
)

// serve mounts the server, with a person who is always signed in.
func (w *world) serve() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cas/login", func(rw http.ResponseWriter, r *http.Request) {
		request, err := w.server.Login(w.ctx, r.URL.Query())
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := w.server.Grant(w.ctx, issuer, request, w.person())
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		http.Redirect(rw, r, a.URL, http.StatusSeeOther)
	})
	for path, version := range map[string]cas.Version{
		"/cas/validate": cas.V1, "/cas/serviceValidate": cas.V2, "/cas/p3/serviceValidate": cas.V3,
	} {
		mux.HandleFunc("GET "+path, func(rw http.ResponseWriter, r *http.Request) {
			a := w.server.Validate(w.ctx, version, r.URL.Query())
			rw.Header().Set("Content-Type", a.ContentType)
			_, _ = rw.Write(a.Body)
		})
	}
	return httptest.NewServer(mux)
}

// startNode starts an application of http-cas-client and returns its address.
func startNode(t *testing.T, dir, server string, version int) string {
	t.Helper()
	node := exec.CommandContext(t.Context(), "node", "client.mjs", server, fmt.Sprint(version))
	node.Dir = dir
	out, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait()
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "node has ended")
	return "http://127.0.0.1:" + strings.TrimSpace(lines.Text())
}

// TestHTTPCASClient signs in, uses the session, and is signed out from here.
func TestHTTPCASClient(t *testing.T) {
	t.Parallel()
	dir := npm.Install(t, "testdata/node")
	for _, version := range []int{2, 3} {
		w := newWorld(t)
		server := w.serve()
		application := startNode(t, dir, server.URL+"/cas", version)
		w.client.RedirectURLs = []string{application}
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		browser := &http.Client{Jar: jar}
		get := func() string {
			r, err := browser.Get(application + "/page?x=a%20b")
			require.NoError(t, err)
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, r.StatusCode, string(body))
			return string(body)
		}
		body := get()
		require.Contains(t, body, `"user":"li.wei"`)
		if version == 3 {
			require.Contains(t, body, `"memberOf":["company/rd","company"]`)
		}
		require.Equal(t, body, get())

		notices := w.take("s1")
		require.Len(t, notices, 1, "the second page was of the same session")
		a, err := w.server.LogoutPost(w.ctx, notices[0])
		require.NoError(t, err)
		r, err := browser.PostForm(a.URL, a.Post)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Contains(t, get(), `"user":"li.wei"`) // signed in again
		require.Len(t, w.take("s1"), 1)
		browser.CloseIdleConnections()
		server.Close()
	}
}
