package events_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

const auditPath = "/v1/audit-logs"

func spec() service.Spec { return events.Spec(events.DefaultConfig()) }

// awaitEntries waits until a query of the audit log selects n entries, and no more.
func awaitEntries(t testing.TB, c *testkit.Client, query string, n int) []object {
	t.Helper()
	var page struct{ Items []object }
	wait.Until(t, func() bool {
		page.Items = nil
		c.Get(auditPath + "?page_size=200&" + query).OK(&page)
		return len(page.Items) >= n
	}, "%s", query)
	require.Len(t, page.Items, n)
	return page.Items
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	tell(t, s, "acme", "7", 1, "created")
	s.Clock.Advance(10 * time.Minute)
	middle := s.Clock.Now()
	tell(t, s, "acme", "7", 2, "updated")
	tell(t, s, "globex", "8", 1, "created")
	s.Clock.Advance(10 * time.Minute)
	tell(t, s, "acme", "9", 1, "deleted")
	all := awaitEntries(t, c, "", 3)
	updated := all[1]
	for member, want := range map[string]any{
		"actor": "ann", "request_id": "request-1", "entity": "component", "record": "7", "action": "updated",
		"outcome": "done", "time": middle.String(), "count": 1.0,
		"changes": []any{object{"member": "name", "before": "old", "after": "new"}},
	} {
		require.Equal(t, want, updated[member], member)
	}
	require.Equal(t, updated, c.Get(auditPath+"/"+id(updated)).Object())
	require.Equal(t, []any{
		object{"member": "name", "before": nil, "after": "new"},
		object{"member": "secret", "before": nil, "after": "******"},
	}, all[0]["changes"])
	require.Equal(t, []any{
		object{"member": "name", "before": "new", "after": nil},
		object{"member": "secret", "before": "******", "after": nil},
	}, all[2]["changes"])
	for query, want := range map[string][]int{
		"page_sort=time[desc]": {2, 1, 0}, "actor=ann": {0, 1, 2}, "actor=bob": {}, "entity=component": {0, 1, 2},
		"entity=user": {}, "record=7": {0, 1}, "action=created": {0}, "record=7&action=updated": {1},
		"outcome=done": {0, 1, 2}, "outcome=denied": {},
		"time_from=" + middle.String(): {1, 2}, "time_to=" + middle.String(): {0},
		"record=7&time_from=" + middle.String():                                      {1},
		"actor=ann&page_sort=time[desc]&time_to=" + middle.Add(time.Second).String(): {1, 0},
	} {
		var page struct {
			Items []object
			Total int
		}
		c.Get(auditPath + "?" + query).OK(&page)
		require.Equal(t, len(want), page.Total, query)
		for i, n := range want {
			require.Equal(t, all[n], page.Items[i], query)
		}
	}
	in(s, "globex").Get(auditPath+"/"+id(updated)).Problem(http.StatusNotFound, "not_found")
	c.Get(auditPath+"?time_from=soon&outcome=x").Problem(http.StatusBadRequest, "invalid_parameters")
	c.Get(auditPath+"?page_sort=actor").Problem(http.StatusBadRequest, "invalid_parameters", "query.page_sort")

	exported := c.Get(auditPath + "/export?record=7")
	require.Equal(t, "application/x-ndjson; charset=utf-8", exported.Header.Get("Content-Type"))
	var lines []object
	for scanner := bufio.NewScanner(bytes.NewReader(exported.Body)); scanner.Scan(); {
		var line object
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &line))
		lines = append(lines, line)
	}
	require.Equal(t, all[:2], lines)
}

func TestAuditLogIsPaged(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	var want []any
	for n := range 12 {
		s.Clock.Advance(time.Millisecond)
		tell(t, s, "acme", "7", int64(n+1), "updated")
	}
	for _, entry := range awaitEntries(t, c, "record=7&page_sort=time[desc]", 12) {
		want = append(want, entry["id"])
	}
	var walked []any
	for token := ""; ; {
		page := c.Get(auditPath + "?record=7&page_size=5&page_sort=time[desc]&page_token=" + token).Object()
		for _, item := range page["items"].([]any) {
			walked = append(walked, item.(object)["id"])
		}
		if token, _ = page["next_page_token"].(string); token == "" {
			break
		}
	}
	require.Equal(t, want, walked)
}

func TestAuditLogAsEventStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	tell(t, s, "acme", "1", 1, "created")
	awaitEntries(t, c, "", 1)
	live := c.Events(auditPath + "?action=updated")
	tell(t, s, "acme", "2", 1, "created")
	tell(t, s, "acme", "1", 2, "updated")
	tell(t, s, "acme", "1", 3, "updated")
	first, second := live.Next(), live.Next()
	var entry object
	require.NoError(t, json.Unmarshal(first.Data, &entry))
	require.Equal(t, []any{"1", "updated", first.ID}, []any{entry["record"], entry["action"], entry["id"]})
	require.Empty(t, live.Drain())
	resumed := c.With("Last-Event-ID", first.ID).Events(auditPath + "?action=updated")
	require.Equal(t, second, resumed.Next())
	resumed.Leave()
}

// Equal denied attempts become one entry with a count.
func TestDeniedAttempts(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	for range 20 {
		s.As("acme", read).Post(subscriptionsPath, hook("x", "http://x.test")).
			Problem(http.StatusForbidden, "forbidden")
	}
	s.As("acme", write).With("X-Tenant-Id", "globex").Post(subscriptionsPath, hook("x", "http://x.test")).
		Problem(http.StatusForbidden, "forbidden")
	s.As("acme", write).Get(subscriptionsPath).Problem(http.StatusForbidden, "forbidden") // the audit log has no reads
	s.TellDenied()
	entries := awaitEntries(t, c, "outcome=denied", 2)
	counts := map[string]float64{}
	for _, entry := range entries {
		require.Equal(t, []any{"access", "create-event-subscription", "test#tester", "192.0.2.1", ""},
			[]any{entry["entity"], entry["action"], entry["actor"], entry["address"], entry["record"]})
		counts[entry["reason"].(string)] = entry["count"].(float64)
	}
	require.Equal(t, map[string]float64{
		"forbidden: the scope events:write is needed": 20, "forbidden: the credential belongs to another tenant": 1,
	}, counts)
}

func TestAuditLogIsKeptForATime(t *testing.T) {
	t.Parallel()
	config := events.DefaultConfig()
	config.Audit.Keep = 24 * time.Hour
	s := startWith(t, config)
	for n := range 3 {
		tell(t, s, "acme", fmt.Sprint(n), 1, "created")
	}
	awaitEntries(t, in(s, "acme"), "", 3)
	s.Clock.Advance(20 * time.Hour)
	tell(t, s, "acme", "9", 1, "created")
	awaitEntries(t, in(s, "acme"), "", 4)
	s.Clock.Advance(5 * time.Hour)
	s.RunTask("forget audit log entries")
	require.Equal(t, "9", awaitEntries(t, in(s, "acme"), "", 1)[0]["record"])
}
