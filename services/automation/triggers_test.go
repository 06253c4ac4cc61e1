package automation_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// entries waits until a function's log has n entries, and returns them, oldest first.
func entries(t *testing.T, c *testkit.Client, made object, n int) (all []object) {
	t.Helper()
	wait.Until(t, func() bool {
		var page struct{ Items []object }
		c.Get(oneFunction(made) + "/logs?page_size=200").OK(&page)
		all = page.Items
		return len(all) >= n
	})
	require.Len(t, all, n)
	return all
}

// on is a trigger for event types.
func on(types ...any) object { return object{"triggers": []any{object{"event_types": types}}} }

// Events trigger the functions of their tenant that listen to their type. The events are about functions.
func TestTriggers(t *testing.T) {
	t.Parallel()
	s := start(t)
	acme, globex := functionsOf(s, "acme"), functionsOf(s, "globex")
	echo := `function main(event) { console.log(event.type, event.subject, event.tenantid, event.data.record.code) }`
	listener := func(c *testkit.Client, code string, types ...any) object {
		return c.Post(functionsPath, javascript(echo, object{"code": code}, on(types...))).Object()
	}
	exact, pattern := listener(acme, "exact", "function.created"), listener(acme, "pattern", "*.created")
	deaf := listener(acme, "deaf", "function.deleted", "user.*")
	other := listener(globex, "other", "*")
	off := listener(acme, "off", "*")
	acme.Patch(oneFunction(off), object{"status": "0"}).OK(nil)
	made := acme.Post(functionsPath, javascript("x", object{"code": "made"})).Object()

	want := fmt.Sprintf("idp.function.created %s acme made", made["id"])
	for _, f := range []object{exact, pattern} {
		wait.Until(t, func() bool { // runs end in any order
			var page struct{ Items []object }
			acme.Get(oneFunction(f) + "/logs").OK(&page)
			var texts []string
			for _, entry := range page.Items {
				require.Equal(t, "event", entry["cause"])
				require.Equal(t, "succeeded", entry["outcome"])
				require.NotEmpty(t, entry["event_id"])
				texts = append(texts, entry["logs"].([]any)[0].(object)["text"].(string))
			}
			return slices.Contains(texts, want)
		})
	}
	require.Empty(t, acme.Items(oneFunction(deaf)+"/logs", "id"))
	for _, entry := range globex.Get(oneFunction(other) + "/logs").Object()["items"].([]any) {
		require.NotContains(t, fmt.Sprint(entry), "acme")
	}
}

// A run that fails is tried again later, five times in all.
func TestTriggeredRunsAreRetried(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	made := c.Post(functionsPath, javascript(`function main() { throw "no" }`, on("function.created"))).Object()
	var attempts []any
	c.Post(functionsPath, javascript("x", object{"code": "made"})).OK(nil)
	wait.Until(t, func() bool {
		s.Clock.Advance(5 * time.Second)
		attempts = nil
		for _, entry := range c.Get(oneFunction(made) + "/logs?page_size=200").Object()["items"].([]any) {
			attempts = append(attempts, entry.(object)["attempt"])
		}
		return len(attempts) >= 10 // its own creation has triggered it, too
	})
	require.ElementsMatch(t, []any{1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0}, attempts)
}

// A chain ends in which a function calls the platform's API, which causes the event that triggers the function.
func TestFunctionsThatTriggerThemselves(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	server := httptest.NewServer(s.Handler)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	made := c.Post(functionsPath, javascript(`async function main(event, {env}) {
		const r = await fetch(env.SITE + "/v1/functions/" + event.subject, {method: "PATCH",
			headers: {"Authorization": "Bearer " + env.TOKEN, "Content-Type": "application/json",
				"X-Payload-Origin": "forged"},
			body: JSON.stringify({description: "after " + event.id})})
		if (!r.ok) throw new Error(await r.text())
	}`, on("function.updated"), object{"allowed_hosts": []any{at.Host},
		"env": object{"SITE": server.URL, "TOKEN": s.Token("acme", auth.FunctionsWrite)}})).Object()
	c.Patch(oneFunction(made), object{"description": "begin"}).OK(nil)
	all := entries(t, c, made, 6)
	succeeded := 0
	for _, entry := range all {
		if entry["outcome"] == "succeeded" {
			succeeded++
		} else {
			require.Contains(t, entry["error"].(object)["message"], "longer chains are refused")
		}
	}
	require.Equal(t, 5, succeeded)
	require.Equal(t, 7.0, c.Get(oneFunction(made)).Object()["version"])

	last := ""
	s.EventsUntil(func(e stream.Event) bool {
		last = e.PayloadOrigin
		return strings.HasPrefix(last, "function/"+made["id"].(string)+"/5/")
	})
	c.With("X-Payload-Origin", last).Post(oneFunction(made)+"/invoke", nil).Problem(409, "invalid_state")
	c.With("X-Payload-Origin", "function/1/5/made-up").Post(oneFunction(made)+"/invoke", nil).OK(nil)
}

// The waiting runs of a deleted function are deleted. Those of other functions for the same event go on.
func TestWaitingRunsGoWithTheirFunction(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	failing := func(code string) object {
		return c.Post(functionsPath, javascript(`function main() { throw "no" }`, object{"code": code},
			on("component.created"))).Object()
	}
	gone, stays := failing("gone"), failing("stays")
	c.Post(componentsPath, banner(nil)).OK(nil)
	entries(t, c, gone, 1)
	entries(t, c, stays, 1)
	c.Delete(oneFunction(gone), nil).OK(nil)
	goesOn := func() bool {
		s.Clock.Advance(5 * time.Second)
		return len(c.Items(oneFunction(stays)+"/logs", "id")) >= 2
	}
	wait.Until(t, goesOn)
	c.Get(oneFunction(gone)+"/logs").Problem(http.StatusNotFound, "not_found")
	for id := range testkit.Stored(t, s, "acme", "function_runs") {
		require.NotContains(t, id, gone["id"])
	}
}

// Many more events than may wait as runs: they wait in the stream, other tenants' functions go on meanwhile, and in the
// end each has run once, with the event as it is.
func TestEventsWaitInTheStream(t *testing.T) {
	t.Parallel()
	const events = 250
	var mu sync.Mutex
	got := map[string]int{}
	goOn := make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var event struct {
			SpecVersion, ID, Sequence string
			DataContentType           string
		}
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil || event.Sequence != "10" ||
			event.SpecVersion != "1.0" || event.DataContentType != "application/json" {
			t.Errorf("not the event as it is: %v %v", event, err)
		}
		select {
		case <-goOn:
		case <-r.Context().Done():
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got[event.ID]++
	}))
	t.Cleanup(hook.Close)
	at, err := url.Parse(hook.URL)
	require.NoError(t, err)
	s := start(t)
	acme, globex := functionsOf(s, "acme"), functionsOf(s, "globex")
	acme.Post(functionsPath, javascript(
		`async function main(event, {env}) { await fetch(env.HOOK, {method: "POST", body: JSON.stringify(event)}) }`,
		on("kv_object.created", "user.*"), object{"allowed_hosts": []any{at.Host}, "env": object{"HOOK": hook.URL},
			"limits": object{"timeout_ms": 25_000}})).OK(nil)
	other := globex.Post(functionsPath, javascript(`function main() {}`, on("kv_object.created"))).Object()
	kv := kvOf(s, "acme")
	for i := range events {
		put(kv, objectsPath+"/"+fmt.Sprint(i), object{"value": i}).OK(nil)
	}
	put(kvOf(s, "globex"), objectsPath+"/1", object{"value": 1}).OK(nil)
	entries(t, globex, other, 1)
	require.Less(t, len(testkit.Stored(t, s, "acme", "function_runs")), events-50, "the others wait in the stream")
	close(goOn)
	wait.Reach(t, events, func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(got)
	})
	wait.Until(t, func() bool { return len(testkit.Stored(t, s, "acme", "function_runs")) == 0 })
	for id, times := range got {
		require.Equal(t, 1, times, id)
	}
}

// An event that is in the stream twice, as after a long outage of NATS, stops neither its function nor other tenants'.
func TestAnEventThatIsTwiceInTheStream(t *testing.T) {
	t.Parallel()
	s := start(t)
	acme, globex := functionsOf(s, "acme"), functionsOf(s, "globex")
	ours := acme.Post(functionsPath, javascript(`function main() { throw "no" }`, on("kv_object.created"))).Object()
	other := globex.Post(functionsPath, javascript(`function main() {}`, on("kv_object.created"))).Object()
	put(kvOf(s, "acme"), objectsPath+"/1", object{"value": 1}).OK(nil)
	entries(t, acme, ours, 1) // its run waits for the next attempt
	var found stream.Event
	s.EventsUntil(func(e stream.Event) bool { found = e; return e.Type == "idp.kv_object.created" })
	nc := s.Deps.Bus.JetStream().Conn()
	for range 2 {
		require.NoError(t, nc.Publish("idp.events.acme.kv_object.created", found.JSON))
	}
	require.NoError(t, nc.Flush())
	for i := range 2 {
		put(kvOf(s, "globex"), objectsPath+fmt.Sprint("/", i), object{"value": 1}).OK(nil)
	}
	entries(t, globex, other, 2)
	put(kvOf(s, "acme"), objectsPath+"/2", object{"value": 1}).OK(nil)
	entries(t, acme, ours, 2)
}
