package gateway

import (
	"net/http"

	"github.com/rs/cors"
)

// requestHeaders are the request headers that services read, apart from those that every client sends.
var requestHeaders = []string{
	"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-Id",
	"Traceparent", "Tracestate", "X-Consistency-Token", "X-Payload-Origin", "X-Request-Id", "X-Tenant-Id",
}

// withCORS lets pages of these origins use the API (Fetch standard, "CORS protocol"). Credentials mode stays off: a
// page that sends its token in Authorization does not need it. So "*" gives a page no more than its token does. The
// gateway answers preflight requests itself. Without origins it adds no CORS headers; to the console, which has
// cookies, never. The sign-in service decides itself which pages may call the endpoints of its tenants.
func withCORS(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next // cors.New would take an empty list for "*"
	}
	allowing := cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		},
		AllowedHeaders: requestHeaders,
		ExposedHeaders: []string{
			"Content-Disposition", "Deprecation", "Dry-Run", "ETag", "Idempotent-Replayed", "Link", "Retry-After",
			"WWW-Authenticate", "X-Consistency-Token", "X-Request-Id",
		},
		MaxAge: 600,
	}).Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isConsole(r.URL.Path) || below(r.URL.Path, signInPath) || below(r.URL.Path, signInMetadataPath) {
			next.ServeHTTP(w, r)
			return
		}
		allowing.ServeHTTP(w, r)
	})
}
