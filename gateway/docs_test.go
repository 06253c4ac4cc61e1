package gateway

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocsPageNeedsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	page := get(g, "/docs")
	require.Equal(t, 200, page.Code)
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	policy := page.Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self';")
	html := page.Body.String()
	require.NotRegexp(t, `<script>|<script [^>]*[^"]>[^<]|\son\w+=|https?:`, html, "the policy forbids it")

	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1)
	require.Len(t, links, 5)
	for _, link := range links {
		w := get(g, link[1])
		require.Equal(t, 200, w.Code, link[1])
		require.NotZero(t, w.Body.Len())
		require.NotEqual(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"),
			"nosniff would have the browser refuse it")
		require.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
	}
	require.Contains(t, get(g, "/docs/start.js").Body.String(), `url: "/openapi.json"`)
	require.Equal(t, "gzip",
		get(g, "/docs/swagger-ui-bundle.js", "Accept-Encoding", "gzip").Header().Get("Content-Encoding"))
	require.Equal(t, http.StatusMovedPermanently, get(g, "/docs/").Code)
	for _, path := range []string{"/docs/page.html", "/docs/../gateway.go", "/docs/x/y", "/docs/%ff", "/docs//"} {
		w := get(g, path)
		requireProblem(t, 404, "not_found", w.Code, w.Header(), w.Body)
	}

	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/docs", nil))
	requireProblem(t, 405, "method_not_allowed", w.Code, w.Header(), w.Body)
}
