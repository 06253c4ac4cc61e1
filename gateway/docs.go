package gateway

import (
	"embed"
	"net/http"
	"strings"

	"github.com/swaggest/swgui/v5/static"
	"github.com/vearutop/statigz"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

//go:embed docs
var docsFS embed.FS

// docsPolicy lets the page run its own scripts and call this host, and nothing else. Swagger UI sets inline styles
// and has images in data URLs.
var docsPolicy = []string{"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}

// newDocs serves Swagger UI at /docs from files embedded in the program: the page loads nothing from other hosts.
func newDocs() http.Handler {
	notFound := statigz.OnNotFound(func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, apperr.New(apperr.NotFound, "no such path"))
	})
	library := http.StripPrefix("/docs", statigz.FileServer(static.FS, notFound))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only GET and HEAD"))
			return
		}
		w.Header()["Content-Security-Policy"] = docsPolicy
		switch name := strings.TrimPrefix(r.URL.Path, "/docs"); name {
		case "":
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, docsFS, "docs/page.html")
		case "/start.js", "/page.css":
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, docsFS, "docs"+name)
		case "/":
			http.Redirect(w, r, "/docs", http.StatusMovedPermanently)
		default:
			library.ServeHTTP(w, r)
		}
	})
}
