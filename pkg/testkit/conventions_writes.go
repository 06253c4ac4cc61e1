package testkit

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/pkg/auth"
)

// dryRun: a dry run is answered like a real request and changes nothing.
func dryRun(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	answer := c.Post(r.Collection+"?dry_run=true", r.Body(1))
	would := answer.Object()
	assert.Equal(t, "true", answer.Header.Get("Dry-Run"))
	assert.EqualValues(t, 0, c.Get(r.list("")).Object()["total"])
	c.Get(r.Collection+"/"+would["id"].(string)).Problem(http.StatusNotFound, "not_found")
	record := c.Post(r.Collection+"?dry_run=false", r.Body(1)).Object()
	path := r.Collection + "/" + record["id"].(string)
	c.Post(r.Collection+"?dry_run=1", r.Body(1)).Problem(http.StatusConflict, "already_exists")
	assert.EqualValues(t, 2, c.Patch(path+"?dry_run=true", r.Change).Object()["version"])
	c.Delete(r.with(path+"?dry_run=true"), nil).OK(nil)
	assert.Equal(t, record, c.Get(path).Object())
	c.Delete(r.with(path), nil).OK(nil)
	events := s.Events(r.Seeds + 2)
	assert.Regexp(t, `\.created$`, events[r.Seeds].Type, "the dry runs have no events")
	assert.Regexp(t, `\.deleted$`, events[r.Seeds+1].Type)
	assert.Equal(t, record["id"], events[r.Seeds+1].Subject)
}

// idempotency checks Idempotency-Key: requests with one key make one change and get one answer.
func idempotency(t *testing.T, start func(testing.TB) *Service, r Resource) {
	t.Run("replay", func(t *testing.T) { t.Parallel(); replays(t, start(t), r) })
	t.Run("refusals", func(t *testing.T) { t.Parallel(); refusedKeys(t, start(t), r) })
	t.Run("at once", func(t *testing.T) { t.Parallel(); concurrentRequests(t, start(t), r) })
}

// replays: the second request gets the first answer for 24 hours, unless it is another caller's or another request.
func replays(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme").With("Idempotency-Key", "key-1")
	first := c.Post(r.Collection, r.Body(1)).OK(nil)
	again := c.Post(r.Collection, r.Body(1)).OK(nil)
	assert.JSONEq(t, string(first.Body), string(again.Body))
	assert.Equal(t, first.Header.Get("ETag"), again.Header.Get("ETag"))
	assert.Empty(t, first.Header.Get("Idempotent-Replayed"))
	assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	assert.EqualValues(t, 1, c.Get(r.list("")).Object()["total"])
	c.Post(r.Collection, r.Body(2)).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	c.Post(r.Collection+"?other=query", r.Body(1)).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")

	globex := r.editor(s, "globex").With("Idempotency-Key", "key-1")
	assert.Empty(t, globex.Post(r.Collection, r.Body(1)).OK(nil).Header.Get("Idempotent-Replayed"),
		"a key belongs to its caller")

	s.Clock.Advance(25 * time.Hour)
	fresh := r.editor(s, "acme").With("Idempotency-Key", "key-1")
	fresh.Post(r.Collection, r.Body(1)).Problem(http.StatusConflict, "already_exists")
}

// refusedKeys: keys that are not 1…255 printable ASCII characters are refused. A refusal is replayed, too.
func refusedKeys(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	for _, key := range []string{"", strings.Repeat("k", 256), "clé", "tab\there"} {
		client := &Client{c.t, c.handler, http.Header{"Authorization": c.header["Authorization"],
			"Idempotency-Key": {key}}}
		client.Post(r.Collection, r.Body(1)).Problem(http.StatusBadRequest, "invalid_parameters",
			"header.Idempotency-Key")
	}
	c.Post(r.Collection, r.Body(1)).OK(nil)
	conflicting := c.With("Idempotency-Key", "key-2")
	conflicting.Post(r.Collection, r.Body(1)).Problem(http.StatusConflict, "already_exists")
	replayed := conflicting.Post(r.Collection, r.Body(1))
	assert.Equal(t, http.StatusConflict, replayed.Status)
	assert.Equal(t, "true", replayed.Header.Get("Idempotent-Replayed"))
}

// concurrentRequests: of requests at the same time one makes the record; the others get its answer, or 409 while it
// runs.
func concurrentRequests(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	answers := make([]*Answer, 16)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = c.With("Idempotency-Key", "key-3").Post(r.Collection, r.Body(1)) })
	}
	all.Wait()
	ids := map[string]bool{}
	for _, a := range answers {
		if a.Status == http.StatusConflict {
			a.Problem(http.StatusConflict, "request_in_progress")
			assert.NotEmpty(t, a.Header.Get("Retry-After"))
			continue
		}
		ids[a.ID()] = true
	}
	assert.Len(t, ids, 1)
	assert.EqualValues(t, 1, c.Get(r.list("")).Object()["total"])
}

// keptAnswers: every POST that is sent twice with one key is answered with its first answer. A momentary operation (see
// rest.Op) runs again instead.
func keptAnswers(t *testing.T, s *Service) {
	for i, o := range s.operations() {
		if o.Method != http.MethodPost || o.RequestBody == nil || o.scim() ||
			o.RequestBody.Content["application/json"].Example == nil {
			continue
		}
		c := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme").
			With("Idempotency-Key", fmt.Sprint("kept-", i))
		body := string(o.RequestBody.Content["application/json"].Example)
		first, again, other := c.Post(o.url(), body), c.Post(o.url(), body), c.Post(o.url(), body+" ")
		assert.Empty(t, first.Header.Get("Idempotent-Replayed"), o.OperationID)
		if o.Momentary {
			assert.Empty(t, again.Header.Get("Idempotent-Replayed"), o.OperationID)
			assert.NotEqual(t, http.StatusUnprocessableEntity, other.Status, o.OperationID)
			continue
		}
		assert.Equal(t, first.Status, again.Status, o.OperationID)
		if first.Status < http.StatusInternalServerError {
			assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), o.OperationID)
			other.Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
		}
	}
}
