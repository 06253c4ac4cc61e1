package session

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

const tenantHeader = "X-Tenant-Id"

// NoTenant is the code of a problem: the tenant is not there. The platform has no such code.
const NoTenant = "no_such_tenant"

// knownTenant lets no request reach a tenant that is not there, which would look like one that is empty, and would come
// to be by the first change. Only platform administrators can name another tenant than their own. A tenant has no
// record of itself: it is there if something is in it. What was found once is remembered.
func (s *Session) knownTenant(next http.RoundTripper) http.RoundTripper {
	if s.CreateTenant {
		return s.newTenant(next)
	}
	known := ""
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		tenant := r.Header.Get(tenantHeader)
		if tenant == "" || tenant == known || strings.HasPrefix(r.URL.Path, "/v1/oauth2/") || !administers(r) {
			return next.RoundTrip(r)
		}
		if !s.remembersTenant(tenant) {
			there, err := s.inUse(r, next)
			if err != nil {
				return nil, err
			}
			if !there {
				return noTenant(r, tenant), nil
			}
			s.rememberTenant(tenant)
		}
		known = tenant
		return next.RoundTrip(r)
	})
}

// newTenant remembers a tenant in which a change was made: what it made may be nothing that inUse looks at.
func (s *Session) newTenant(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		tenant := r.Header.Get(tenantHeader)
		operation := operations.CompiledIn().Match(r.Method, r.URL.Path)
		made := err == nil && response.StatusCode == http.StatusOK && operation != nil && operation.Changes() &&
			r.URL.Query().Get("dry_run") == ""
		if made && tenant != "" && !s.remembersTenant(tenant) {
			s.rememberTenant(tenant)
		}
		return response, err
	})
}

// administers reports whether the token of a request is one of the platform's that reaches all tenants.
func administers(r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Scope string `json:"scope"`
	}
	return err == nil && json.Unmarshal(payload, &claims) == nil &&
		slices.Contains(strings.Fields(claims.Scope), "platform:admin")
}

// inUse reports whether a tenant has anything. What cannot be read may be there.
func (s *Session) inUse(r *http.Request, next http.RoundTripper) (bool, error) {
	for _, list := range []string{
		"/v1/users", "/v1/applications", "/v1/core-objects", "/v1/kv/buckets", "/v1/audit-logs",
	} {
		address := strings.TrimSuffix(s.context.URL, "/") + list + "?page_size=1&count=false"
		look, err := http.NewRequestWithContext(r.Context(), http.MethodGet, address, nil)
		if err != nil {
			return false, err
		}
		for _, name := range []string{"Authorization", tenantHeader, "User-Agent"} {
			look.Header[name] = r.Header[name]
		}
		response, err := next.RoundTrip(look)
		if err != nil {
			return false, err
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		_ = response.Body.Close()
		if err != nil {
			return false, err
		}
		if response.StatusCode != http.StatusOK || !isEmptyList(body) {
			return true, nil
		}
	}
	return false, nil
}

func isEmptyList(body []byte) bool {
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &page) == nil {
		return len(page.Items) == 0
	}
	var list []json.RawMessage
	return json.Unmarshal(body, &list) == nil && len(list) == 0
}

// noTenant is the answer for a tenant that is not there.
func noTenant(r *http.Request, tenant string) *http.Response {
	body, _ := json.Marshal(map[string]any{
		"type": "urn:idp:problem:" + NoTenant, "title": "No such tenant", "code": NoTenant,
		"status": http.StatusNotFound,
		"detail": fmt.Sprintf("there is no tenant %q; --create-tenant makes it with its first record", tenant),
	}) // of texts
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/problem+json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// mostTenants is how many tenants are remembered.
const mostTenants = 1000

func (s *Session) tenants() []string {
	var known []string
	text, err := os.ReadFile(s.cacheFile("tenants"))
	if err != nil || json.Unmarshal(text, &known) != nil {
		return nil // there is none, or it is damaged
	}
	return known
}

func (s *Session) remembersTenant(tenant string) bool { return slices.Contains(s.tenants(), tenant) }

func (s *Session) rememberTenant(tenant string) {
	known := append(s.tenants(), tenant)
	known = known[max(0, len(known)-mostTenants):]
	_ = s.cache(s.cacheFile("tenants"), known) // without it, the next command asks again
}
