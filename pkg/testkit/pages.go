package testkit

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

// Page fails the test unless the answer is a page for a person's browser with this status, which nothing may frame,
// keep or add scripts to. It returns the HTML.
func (a *Answer) Page(status int) string {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	require.Equal(a.t, "text/html; charset=utf-8", a.Header.Get("Content-Type"), "%s", a.Body)
	require.Equal(a.t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(a.t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	policy := a.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
		require.Contains(a.t, policy, part)
	}
	require.NotContains(a.t, policy, "unsafe")
	return string(a.Body)
}

// pages: an operation whose answers are pages refuses what a page of another site sends, answers errors with pages, and
// repeats nothing of a request without escapes.
func pages(t *testing.T, s *Service) {
	const hostile = `"><script>alert(1)</script>`
	for _, o := range s.operations() {
		if !o.Page {
			continue
		}
		body, contentType := o.exampleBody()
		c := s.Stranger()
		if !o.open() {
			c = s.As("acme", auth.PlatformAdmin)
		}
		c = c.With("Content-Type", contentType)
		if o.Method != http.MethodGet {
			strange := c.With("Sec-Fetch-Site", "cross-site").With("Origin", "https://evil.test")
			if answer := strange.Do(o.Method, o.url(), body); o.CrossSite {
				assert.NotEqual(t, http.StatusForbidden, answer.Status, o.OperationID)
			} else {
				answer.Page(http.StatusForbidden)
			}
			assert.NotEqual(t, http.StatusForbidden,
				c.With("Sec-Fetch-Site", "same-origin").Do(o.Method, o.url(), body).Status, o.OperationID)
		}
		query := "?x=" + strings.NewReplacer(`"`, "%22", "<", "%3C", ">", "%3E").Replace(hostile)
		for name, answer := range map[string]*Answer{
			"query": c.Do(o.Method, o.url()+query, body), "cookie": c.With("Cookie", "idp="+hostile).Do(o.Method,
				o.url(), body),
			"language": c.With("Accept-Language", hostile).Do(o.Method, o.url(), body),
		} {
			assert.NotContains(t, string(answer.Body), "<script>alert", "%s with a hostile %s", o.OperationID, name)
		}
	}
}
