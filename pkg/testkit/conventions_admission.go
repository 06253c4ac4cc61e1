package testkit

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/pkg/auth"
)

// admission: an operation refuses a request without a valid credential, without one of its scopes, or for a tenant
// that the caller may not name.
func admission(t *testing.T, s *Service, r Resource) {
	for _, o := range s.operations() {
		if o.open() {
			continue // see openOperations
		}
		request := func(c *Client) *Answer { return c.Do(o.Method, o.url(), "{}") }
		answer := request(s.Stranger())
		answer.refusal(o, http.StatusUnauthorized, "unauthenticated")
		assert.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"), o.OperationID)
		request(s.Stranger().With("Authorization", "Bearer nonsense")).
			refusal(o, http.StatusUnauthorized, "unauthenticated")
		request(s.Stranger().With("Authorization", "Basic dXNlcjpwdw==")).
			refusal(o, http.StatusUnauthorized, "unauthenticated")
		scopes := o.scopes()
		if unrelated := request(s.As("acme", r.Unrelated)); len(scopes) > 0 {
			unrelated.refusal(o, http.StatusForbidden, "forbidden")
		} else {
			assert.NotEqual(t, http.StatusForbidden, unrelated.Status, "%s needs no scope", o.OperationID)
		}
		for i := range scopes { // each scope is required
			others := slices.Delete(slices.Clone(scopes), i, i+1)
			request(s.As("acme", others...)).refusal(o, http.StatusForbidden, "forbidden")
		}
		if !slices.Contains(scopes, auth.PlatformAdmin) { // these callers may name every tenant
			request(s.As("acme", scopes...).With("X-Tenant-Id", "globex")).refusal(o, http.StatusForbidden, "forbidden")
		}
		request(s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "Not A Tenant")).
			refusal(o, http.StatusBadRequest, "invalid_parameters", "header.X-Tenant-Id")
		request(s.As("acme", scopes...).With("X-Payload-Origin", strings.Repeat("x", 4097))).
			refusal(o, http.StatusBadRequest, "invalid_parameters", "header.X-Payload-Origin")
	}
	old := s.As("acme", r.Read)
	s.Clock.Advance(2 * time.Hour)
	old.Get(r.list("")).Problem(http.StatusUnauthorized, "unauthenticated")
}

// tenants are separate: the same body is accepted in each, and one does not see the records of another.
func tenants(t *testing.T, s *Service, r Resource) {
	acme, globex := r.editor(s, "acme"), r.editor(s, "globex")
	record := acme.Post(r.Collection, r.Body(1)).Object()
	id := record["id"].(string)
	assert.Equal(t, "acme", record["tenant_id"])
	other := globex.Post(r.Collection, r.Body(1)).Object()
	assert.NotEqual(t, id, other["id"])
	path := r.Collection + "/" + id
	globex.Get(path).Problem(http.StatusNotFound, "not_found")
	globex.Patch(path, r.Change).Problem(http.StatusNotFound, "not_found")
	globex.Delete(r.with(path), nil).Problem(http.StatusNotFound, "not_found")
	assert.EqualValues(t, 1, globex.Get(r.list("")).Object()["total"])
	assert.Equal(t, record, acme.Get(path).Object())
	admin := s.As("root", auth.PlatformAdmin)
	admin.Get(path).Problem(http.StatusNotFound, "not_found")
	assert.Equal(t, record, admin.With("X-Tenant-Id", "acme").Get(path).Object())
}
