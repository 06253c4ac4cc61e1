package testkit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
)

// uniqueMembers: a second record with the unique values of another is refused, and the error names every taken member.
func uniqueMembers(t *testing.T, s *Service, r Resource) {
	require.NotEmpty(t, r.Unique)
	var taken []string
	for _, member := range r.Unique {
		taken = append(taken, "body."+member)
	}
	c := r.editor(s, "acme")
	first := c.Post(r.Collection, r.Body(1)).Object()
	second := c.Post(r.Collection, r.Body(2)).Object()
	refused := func(a *Answer) {
		t.Helper()
		a.Problem(http.StatusConflict, "already_exists", taken...)
		for _, member := range r.Unique {
			assert.NotContains(t, string(a.Body), fmt.Sprint(`"`, first[member], `"`), "no value is repeated")
		}
	}
	refused(c.Post(r.Collection, r.Body(1)))
	refused(c.Post(r.Collection+"?dry_run=true", r.Body(1)))
	change := map[string]any{}
	for _, member := range r.Unique {
		change[member] = first[member]
	}
	path := r.Collection + "/" + second["id"].(string)
	refused(c.Patch(path, change))
	assert.Equal(t, second, c.Get(path).Object())
	c.Delete(r.with(r.Collection+"/"+first["id"].(string)), nil).OK(nil)
	c.Patch(path, change).OK(nil)
}

// events: each change of a record has an event with the changed record. EventsUntil checks that sequences grow.
func events(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	record := c.Post(r.Collection, r.Body(1)).Object()
	path := r.Collection + "/" + record["id"].(string)
	changed := c.Patch(path, r.Change).Object()
	c.Delete(r.with(path), nil).OK(nil)
	var told []stream.Event
	s.EventsUntil(func(e stream.Event) bool {
		if e.Subject == record["id"] {
			told = append(told, e)
		}
		return e.Subject == record["id"] && strings.HasSuffix(e.Type, ".deleted")
	})
	assert.Equal(t, "created", told[0].Type[strings.LastIndexByte(told[0].Type, '.')+1:])
	for i, e := range told {
		var data struct {
			Record struct {
				ID       string `json:"id"`
				TenantID string `json:"tenant_id"`
				Version  int64  `json:"version"`
			} `json:"record"`
		}
		require.NoError(t, json.Unmarshal(e.Data, &data))
		want := changed["version"]
		if i == 0 {
			want = record["version"]
		}
		assert.EqualValues(t, want, data.Record.Version, "%s has the record's version", e.Type)
		assert.Equal(t, []any{record["id"], "acme"}, []any{data.Record.ID, data.Record.TenantID})
	}
}

// conditionalRequests: ETag, If-Match, If-None-Match (RFC 9110 §13), and versions.
func conditionalRequests(t *testing.T, s *Service, r Resource) {
	c := r.editor(s, "acme")
	answer := c.Post(r.Collection, r.Body(1))
	record := answer.Object()
	path := r.Collection + "/" + record["id"].(string)
	tag := answer.Header.Get("ETag")
	assert.Regexp(t, `^"1(-0)?"$`, tag, "the version, and -0 if the record has counts")
	assert.EqualValues(t, 1, record["version"])
	assert.Equal(t, record["time_created"], record["time_modified"])
	assert.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, record["time_created"])
	assert.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))

	for _, named := range []string{tag, "W/" + tag, `"7", ` + tag, "*"} {
		unchanged := c.With("If-None-Match", named).Get(path)
		assert.Equal(t, http.StatusNotModified, unchanged.Status, named)
		assert.Empty(t, unchanged.Body)
		assert.Equal(t, tag, unchanged.Header.Get("ETag"))
	}
	assert.Equal(t, http.StatusOK, c.With("If-None-Match", `"2"`).Get(path).Status)
	assert.Equal(t, http.StatusOK, c.With("If-None-Match", `"1-7"`).Get(path).Status,
		"If-None-Match compares the counts, too")
	for _, tag := range []string{`"2"`, `W/"1"`, "1", `""`, "nonsense", `"x"`, `"1-"`, `"1-x"`, `"2-0"`} {
		c.With("If-Match", tag).Patch(path, r.Change).Problem(http.StatusPreconditionFailed, "version_mismatch")
		c.With("If-Match", tag).Delete(r.with(path), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	}
	assert.Equal(t, record, c.Get(path).Object(), "a refused change must change nothing")

	s.Clock.Advance(time.Second)
	for _, named := range []string{tag, `"1"`, `"1-7"`} {
		assert.Equal(t, http.StatusOK, c.With("If-Match", named).Patch(path+"?dry_run=true", r.Change).Status,
			"If-Match compares only the version")
	}
	changed := c.With("If-Match", tag).Patch(path, r.Change)
	assert.Equal(t, strings.Replace(tag, "1", "2", 1), changed.OK(nil).Header.Get("ETag"))
	after := changed.Object()
	assert.EqualValues(t, 2, after["version"])
	assert.NotEqual(t, after["time_created"], after["time_modified"])
	assert.Equal(t, after, c.Get(path).Object())
	same := c.With("If-Match", "*").Patch(path, r.Change).Object()
	assert.Equal(t, after, same, "a request without a change makes no new version")
	assert.Equal(t, after, c.Patch(path, after).Object(), "a record may be sent back as it is")

	c.With("If-Match", `"1"`).Delete(r.with(path), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	assert.Equal(t, map[string]any{"id": record["id"]}, c.With("If-Match", `"2"`).Delete(r.with(path), nil).Object())
	c.Delete(r.with(path), nil).Problem(http.StatusNotFound, "not_found")
	assert.NotEqual(t, record["id"], c.Post(r.Collection, r.Body(1)).ID(), "ids are not used twice")
}
