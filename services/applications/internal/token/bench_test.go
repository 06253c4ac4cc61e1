package token_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/token"
)

// BenchmarkEndpoints measures the work of the service, without a network.
func BenchmarkEndpoints(b *testing.B) {
	w := newWorldWith(b, token.Limits{TokensPerSecond: 1e9, FailuresPerMinute: 1},
		machine("c1", "acme", "s3cret", "users:read"))
	text := w.token(b, "c1", "s3cret")
	for name, c := range map[string]struct{ path, authorization, body string }{
		"token":                {tokenPath, basicAuth("c1", "s3cret"), grant},
		"introspect by basic":  {introspectPath, basicAuth("c1", "s3cret"), "token=" + text},
		"introspect by bearer": {introspectPath, "Bearer " + text, "token=" + text},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
				r.Header.Set("Authorization", c.authorization)
				r.Header.Set("Content-Type", rest.FormType)
				answer := httptest.NewRecorder()
				w.Handler.ServeHTTP(answer, r)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Code, answer.Body)
				}
			}
		})
	}
}
