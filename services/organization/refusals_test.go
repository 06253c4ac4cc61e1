package organization_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// ask is a request that a client can send.
type ask = func(*testkit.Client) *testkit.Answer

// refusal is a request that must be refused, and how.
type refusal struct {
	request   ask
	status    int
	code      string
	locations []string // of all faults
}

// The statuses and codes that the contract defines.
func bad(r ask, locations ...string) refusal {
	return refusal{r, http.StatusBadRequest, "invalid_parameters", locations}
}
func missing(r ask) refusal {
	return refusal{r, http.StatusNotFound, "not_found", nil}
}
func taken(r ask, locations ...string) refusal {
	return refusal{r, http.StatusConflict, "already_exists", locations}
}
func conflict(code string, r ask, locations ...string) refusal {
	return refusal{r, http.StatusConflict, code, locations}
}
func outdated(r ask) refusal {
	return refusal{r, http.StatusPreconditionFailed, "version_mismatch", nil}
}
func away(r ask) refusal {
	return refusal{r, http.StatusServiceUnavailable, "unavailable", nil}
}

// The requests.
func get(url string) ask {
	return func(c *testkit.Client) *testkit.Answer { return c.Get(url) }
}
func post(url string, body any) ask {
	return func(c *testkit.Client) *testkit.Answer { return c.Post(url, body) }
}
func patch(url string, body any) ask {
	return func(c *testkit.Client) *testkit.Answer { return c.Patch(url, body) }
}
func remove(url string, body any) ask {
	return func(c *testkit.Client) *testkit.Answer { return c.Delete(url, body) }
}

// ifMatch is the request with that version as If-Match.
func ifMatch(version string, r ask) ask {
	return func(c *testkit.Client) *testkit.Answer { return r(c.With("If-Match", version)) }
}

// refused fails the test unless every request is refused as it must be, and none changes anything or causes an event.
func refused(t *testing.T, s *testkit.Service, c *testkit.Client, rows map[string]refusal) {
	t.Helper()
	before, events := whole(t, c), len(history(t, s))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		answer := row.request(c)
		var doc problem.Document
		assert.NoError(t, json.Unmarshal(answer.Body, &doc), name)
		var locations []string
		for _, fault := range doc.Errors {
			locations = append(locations, fault.Location)
		}
		if assert.Equal(t, row.status, answer.Status, "%s: %s", name, answer.Body) &&
			assert.ElementsMatch(t, row.locations, locations, "%s: %s", name, answer.Body) {
			answer.Problem(row.status, row.code)
		}
		assert.Equal(t, row.status == http.StatusServiceUnavailable, answer.Header.Get("Retry-After") != "", name)
		require.Equal(t, before, whole(t, c), "%s: nothing is changed", name)
	}
	require.Len(t, history(t, s), events, "no event is made")
}

// whole is everything that a tenant has, as its lists show it.
func whole(t testing.TB, c *testkit.Client) object {
	t.Helper()
	all := func(url string) (items []any) {
		next := ""
		for {
			page := c.Get(url + "&page_size=200" + next).Object()
			items = append(items, page["items"].([]any)...)
			token, more := page["next_page_token"].(string)
			if !more {
				return items
			}
			next = "&page_token=" + token
		}
	}
	var objects []object
	c.Get("/v1/core-objects").OK(&objects)
	has := object{"objects": objects, "associations": all("/v1/tree-associations?")}
	for _, o := range objects {
		code := o["code"].(string)
		has["nodes of "+code] = all("/v1/tree-nodes?object_code=" + code)
		has["users of "+code] = all("/v1/tree-nodes/" + o["root_node_id"].(string) + "/users?recursive=true")
	}
	return has
}

// history is every event so far of the tenants in tests. Events of different records in one batch come in any order, so
// it causes an event of its own twice and waits for it: everything before the first is in a batch before that of the
// second.
func history(t testing.TB, s *testkit.Service) (all []stream.Event) {
	t.Helper()
	const tenant = "markers"
	c := in(s, tenant)
	for range 2 {
		var before []object
		c.Get("/v1/core-objects").OK(&before)
		marker := addObject(t, c, fmt.Sprint("marker-", len(before)))
		all = s.EventsUntil(func(e stream.Event) bool { return e.Tenant == tenant && e.Subject == id(marker) })
	}
	return slices.DeleteFunc(all, func(e stream.Event) bool { return e.Tenant == tenant })
}

// told are the types and subjects of events after the first n, without the prefix.
func told(events []stream.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = strings.TrimPrefix(e.Type, "idp.") + " " + e.Subject
	}
	return list
}

// data are the members of an event's data.
func data(t testing.TB, e stream.Event) (m object) {
	t.Helper()
	require.NoError(t, json.Unmarshal(e.Data, &m))
	return m
}

// now is the test's time in the form of records.
func now(s *testkit.Service) string { return s.Clock.Now().String() }
