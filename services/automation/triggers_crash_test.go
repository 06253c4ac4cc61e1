package automation_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation"
)

const crashEvents = 12 // of each tenant; each triggers a function

// The process that is killed: events trigger functions there.
func TestProcessWithTriggeredRuns(t *testing.T) {
	with := here(t)
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	hook, err := url.Parse(with.Hooks[""])
	require.NoError(t, err)
	for _, tenant := range crashTenants {
		functionsOf(s, tenant).Post(functionsPath, javascript(
			`async function main(event, {env}) { await fetch(env.HOOK, {method: "POST", body: event.id}) }`,
			on("kv_object.created"), object{"allowed_hosts": []any{hook.Host}, "env": object{"HOOK": hook.String()},
				"limits": object{"timeout_ms": 25_000}},
		)).OK(nil)
		for i := range crashEvents {
			put(kvOf(s, tenant), at(fmt.Sprint(i)), object{"value": i}).OK(nil)
		}
	}
	areStored := func() bool {
		n := 0
		for _, tenant := range crashTenants {
			n += len(testkit.Stored(t, s, tenant, "function_runs"))
		}
		return n == len(crashTenants)*crashEvents
	}
	wait.Until(t, areStored)
	fmt.Println("all runs are stored")
	select {}
}

// A process is killed while it runs functions that events have triggered. None of the runs is lost, and none begins
// again before the lease of the killed process ends.
func TestCrashWithTriggeredRuns(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("on MongoDB, the database is not killed with the process")
	}
	hook := newEventHook(t)
	with := environment{
		File: t.TempDir() + "/crash.db", Key: secret.NewKey().Reveal(), Hooks: map[string]string{"": hook.URL},
	}
	p := startProcess(t, "TestProcessWithTriggeredRuns", with)
	p.await(t, "all runs are stored")
	slots := automation.DefaultConfig().FunctionWorkers
	wait.Until(t, func() bool { return hook.running() == slots })
	p.kill(t)
	wait.Until(t, func() bool { return hook.running() == 0 })
	cut := hook.called()
	require.Len(t, cut, slots)

	hook.recover()
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	left := func() (n int) {
		for _, tenant := range crashTenants {
			n += len(testkit.Stored(t, s, tenant, "function_runs"))
		}
		return n
	}
	wait.Until(t, func() bool { return left() == slots })
	for id := range cut {
		require.Equal(t, 1, hook.called()[id], "the killed process still has the lease")
	}
	s.Clock.Advance(61 * time.Second)
	wait.Until(t, func() bool { return left() == 0 })
	calls := hook.called()
	require.Len(t, calls, len(crashTenants)*crashEvents)
	for id := range cut {
		require.GreaterOrEqual(t, calls[id], 2)
	}
	require.Empty(t, hook.together(), "runs that were made twice at the same time")
	for _, tenant := range crashTenants {
		c := functionsOf(s, tenant)
		made := c.Get(functionsPath).Object()["items"].([]any)[0].(object)
		succeeded := map[any]bool{}
		for _, item := range c.Get(oneFunction(made) + "/logs?page_size=200").Object()["items"].([]any) {
			if entry := item.(object); entry["outcome"] == "succeeded" {
				succeeded[entry["event_id"]] = true
			}
		}
		require.Len(t, succeeded, crashEvents)
	}
}

// eventHook is the server that functions fetch from; they send the id of an event. Until recover, it does not answer.
type eventHook struct {
	*httptest.Server
	mu        sync.Mutex
	recovered bool
	calls     map[string]int // by event
	open      map[string]int
	twice     []string // events with two calls at the same time
}

func newEventHook(t *testing.T) *eventHook {
	h := &eventHook{calls: map[string]int{}, open: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if answers := h.enter(string(body)); !answers {
			<-r.Context().Done()
		}
		h.leave(string(body))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *eventHook) enter(event string) (answers bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[event]++
	if h.open[event]++; h.open[event] > 1 {
		h.twice = append(h.twice, event)
	}
	return h.recovered
}

func (h *eventHook) leave(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[event]--; h.open[event] == 0 {
		delete(h.open, event)
	}
}

func (h *eventHook) recover() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recovered = true
}

func (h *eventHook) running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

func (h *eventHook) called() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.calls)
}

func (h *eventHook) together() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.twice
}
