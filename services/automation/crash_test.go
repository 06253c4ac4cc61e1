package automation_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation"
)

const crashRuns = 116

var crashTenants = []string{"acme", "globex"}

// crashRules are the jobs of each tenant, by name. Together they have 58 runs in progress.
var crashRules = map[string]struct {
	target     string
	rule       object
	jobs, runs int // jobs with this rule, and runs of each
	calls      int // calls of a run, at most
}{
	"never-again": {"webhook", object{}, 1, 12, 1},
	"once-more":   {"webhook", object{"retry": object{"max": 1}}, 1, 13, 2},
	"accepted":    {"webhook", object{}, 1, 13, 1},
	"in-the-queue": { // one run of each job at a time
		"webhook", object{"retry": object{"max": 1}, "concurrency": "queue"}, 12, 2, 2,
	},
	"by-nats":     {"nats", object{"retry": object{"max": 3}}, 1, 6, 4},
	"by-function": {"function", object{"retry": object{"max": 3}}, 1, 2, 4}, // a tenant has two workers
}

// crashTarget makes the target of a tenant's jobs. Targets of all kinds end up calling the hook.
func crashTarget(t *testing.T, s *testkit.Service, tenant, kind, hook string) object {
	t.Helper()
	at, err := url.Parse(hook)
	require.NoError(t, err)
	switch kind {
	case "nats":
		return object{"type": "nats", "subject": "work"}
	case "function":
		made := functionsOf(s, tenant).Post(functionsPath, javascript(
			`async function main(run, {env}) {
				const answer = await fetch(env.HOOK, {method: "POST", body: JSON.stringify(run)})
				if (!answer.ok) throw new Error("" + answer.status)
			}`,
			object{
				"allowed_hosts": []any{at.Host}, "env": object{"HOOK": hook},
				"limits": object{"timeout_ms": 25_000},
			},
		))
		return object{"type": "function", "function_id": made.ID()}
	}
	return object{"type": "webhook", "url": hook}
}

// startCrashWorkers starts the workers of NATS targets, which call the hooks.
func startCrashWorkers(t *testing.T, s *testkit.Service, hooks map[string]string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	conn, err := nats.Connect("", nats.InProcessServer(s.NATS))
	require.NoError(t, err)
	var working sync.WaitGroup
	t.Cleanup(working.Wait)
	t.Cleanup(conn.Close)
	for _, tenant := range crashTenants {
		_, err := conn.Subscribe("idp.jobs."+tenant+".work", func(m *nats.Msg) {
			working.Go(func() {
				answer, err := client.Post(hooks[tenant+"/by-nats"], "application/json", bytes.NewReader(m.Data))
				if err != nil {
					t.Error(err)
					return
				}
				_ = answer.Body.Close()
				_ = m.Respond([]byte(`{"state":"succeeded"}`))
			})
		})
		require.NoError(t, err)
	}
	require.NoError(t, conn.Flush())
}

// The process that is killed: it starts the runs and works on them.
func TestCrashingProcess(t *testing.T) {
	with := here(t)
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	startCrashWorkers(t, s, with.Hooks)
	for _, tenant := range crashTenants {
		c := jobsOfFunctions(s, tenant)
		for name, of := range crashRules {
			target := crashTarget(t, s, tenant, of.target, with.Hooks[tenant+"/"+name])
			for n := range of.jobs {
				body := object{"code": fmt.Sprint(name, n), "name": name, "schedule": object{"type": "manual"},
					"timeout_seconds": 86400, "target": target}
				maps.Copy(body, of.rule)
				path := jobsPath + "/" + c.Post(jobsPath, body).ID()
				for run := range of.runs {
					payload := object{"sub_job_id": fmt.Sprint(tenant, run)} // for functions, which get no ids
					c.Post(path+"/trigger", object{"payload": payload}).OK(nil)
				}
			}
		}
	}
	fmt.Println("all runs are triggered")
	select {}
}

// A process is killed with 116 runs in progress, with targets of all types. Each of them succeeds, is tried again or
// fails, as its job says; none is lost, and none runs twice at the same time.
func TestCrash(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("on MongoDB, the database is not killed with the process")
	}
	w := newWorkers(t)
	with := environment{File: t.TempDir() + "/crash.db", Key: secret.NewKey().Reveal(), Hooks: w.addresses()}
	p := startProcess(t, "TestCrashingProcess", with)
	p.await(t, "all runs are triggered")
	wait.Until(t, func() bool { return len(w.seen()) >= crashRuns })
	p.kill(t)

	w.recover()
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	startCrashWorkers(t, s, with.Hooks)
	s.RunTask("run jobs")
	started := len(w.seen())
	s.Clock.Advance(31 * time.Second) // the leases of the dead process end
	s.RunTask("run jobs")
	require.Greater(t, len(w.seen()), started)
	for _, call := range w.accepted() {
		answer := s.Stranger().With("X-Callback-Token", call.CallbackToken).
			Post(jobsPath+"/"+call.JobID+"/sub-jobs/"+call.SubJobID+"/result", object{"state": "succeeded"})
		require.Contains(t, []int{http.StatusOK, http.StatusConflict}, answer.Status)
	}
	w.verify(t, s)
	require.NoError(t, s.Deps.Store.Check(t.Context()))
}

// workers are the targets of the runs. Until recover, those that do not accept runs do not answer.
type workers struct {
	hooks map[string]*receiver // by tenant and job, because the platform opens few connections to one host

	mu        sync.Mutex
	recovered bool
	running   map[string]int // calls in progress, by sub-job
	twice     []string       // sub-jobs with two calls at the same time
	calls     map[string]int
	taken     []call
}

func newWorkers(t *testing.T) *workers {
	w := &workers{hooks: map[string]*receiver{}, running: map[string]int{}, calls: map[string]int{}}
	for _, tenant := range crashTenants {
		for name := range crashRules {
			w.hooks[tenant+"/"+name] = newReceiver(t, func(rw http.ResponseWriter, r *http.Request, c call) {
				recovered := w.enter(c)
				defer w.leave(c)
				switch {
				case name == "accepted":
					w.mu.Lock()
					w.taken = append(w.taken, c)
					w.mu.Unlock()
					rw.WriteHeader(http.StatusAccepted)
				case !recovered:
					<-r.Context().Done()
				}
			})
		}
	}
	return w
}

// addresses are the URLs of the hooks, for the process that is killed.
func (w *workers) addresses() map[string]string {
	urls := map[string]string{}
	for name, hook := range w.hooks {
		urls[name] = hook.URL
	}
	return urls
}

func (w *workers) seen() (all []call) {
	for _, hook := range w.hooks {
		all = append(all, hook.seen()...)
	}
	return all
}

func (w *workers) enter(c call) (recovered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c.SubJobID]++
	if w.running[c.SubJobID]++; w.running[c.SubJobID] > 1 {
		w.twice = append(w.twice, c.SubJobID)
	}
	return w.recovered
}

func (w *workers) leave(c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[c.SubJobID]--
}

func (w *workers) recover() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recovered = true
}

func (w *workers) accepted() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.taken...)
}

// verify compares every run with the rule of its job.
func (w *workers) verify(t *testing.T, s *testkit.Service) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(t, w.twice)
	states := map[string]map[any]int{}
	for name := range crashRules {
		states[name] = map[any]int{}
	}
	for _, tenant := range crashTenants {
		c := jobsOfFunctions(s, tenant)
		for _, item := range c.Get(jobsPath + "?page_size=200").Object()["items"].([]any) {
			job := item.(object)
			name := job["name"].(string)
			for _, run := range subJobs(c, jobsPath+"/"+job["id"].(string)) {
				states[name][run["state"]]++
				key := run["id"].(string)
				if crashRules[name].target == "function" {
					key = run["payload"].(object)["sub_job_id"].(string)
				}
				calls := w.calls[key]
				require.LessOrEqual(t, calls, crashRules[name].calls, "%s: %v", name, run)
				require.EqualValues(t, calls, run["attempt"], "%s: %v", name, run)
			}
		}
	}
	require.Equal(t, map[any]int{"failed": 24}, states["never-again"])
	require.Equal(t, map[any]int{"succeeded": 26}, states["once-more"])
	require.Equal(t, map[any]int{"succeeded": 48}, states["in-the-queue"])
	require.Equal(t, map[any]int{"succeeded": 12}, states["by-nats"])
	require.Equal(t, map[any]int{"succeeded": 4}, states["by-function"])
	// If the process was killed before it had stored that the worker accepted a run, the run fails.
	require.Positive(t, states["accepted"]["succeeded"])
	require.Equal(t, 26, states["accepted"]["succeeded"]+states["accepted"]["failed"])
}
