package automation_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/automation"
)

const crashRuns = 100

var crashTenants = []string{"acme", "globex"}

// crashRules are the jobs of each tenant, by name. Together they have 50 runs in flight.
var crashRules = map[string]struct {
	rule       object
	jobs, runs int // of each job
	calls      int // of a run, at most
}{
	"never-again":  {object{}, 1, 12, 1},
	"once-more":    {object{"retry": object{"max": 1}}, 1, 13, 2},
	"accepted":     {object{}, 1, 13, 1},
	"in-the-queue": {object{"retry": object{"max": 1}, "concurrency": "queue"}, 12, 2, 2}, // one run of each at a time
}

// The process to be killed: it starts the runs and works on them.
func TestCrashingProcess(t *testing.T) {
	with := here(t)
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	for _, tenant := range crashTenants {
		c := jobsOf(s, tenant)
		for name, of := range crashRules {
			for n := range of.jobs {
				body := object{"code": fmt.Sprint(name, n), "name": name, "schedule": object{"type": "manual"},
					"timeout_seconds": 86400, "target": object{"type": "webhook", "url": with.Hooks[tenant+"/"+name]}}
				maps.Copy(body, of.rule)
				path := jobsPath + "/" + c.Post(jobsPath, body).ID()
				for range of.runs {
					c.Post(path+"/trigger", nil).OK(nil)
				}
			}
		}
	}
	fmt.Println("all runs are triggered")
	select {}
}

// A process is killed with 100 runs in flight. Each of them is finished, tried again or failed, as its job says; none
// is lost, and none runs twice at the same time.
func TestCrash(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("the database does not die with the process")
	}
	w := newWorkers(t)
	with := surroundings{File: t.TempDir() + "/crash.db", Key: secret.NewKey().Reveal(), Hooks: w.addresses()}
	p := startProcess(t, "TestCrashingProcess", with)
	p.await(t, "all runs are triggered")
	require.Eventually(t, func() bool { return len(w.seen()) >= crashRuns }, 30*time.Second, time.Millisecond)
	p.kill(t)

	w.recover()
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
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

// workers are the targets of the runs. Until recover, those that do not accept a run never answer.
type workers struct {
	hooks map[string]*receiver // by tenant and job: the platform opens few connections to one host

	mu        sync.Mutex
	recovered bool
	running   map[string]int // by sub-job
	twice     []string       // sub-jobs that ran twice at the same time
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

// addresses are the URLs of the hooks, for the process to be killed.
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
		c := jobsOf(s, tenant)
		for _, item := range c.Get(jobsPath + "?page_size=200").Object()["items"].([]any) {
			job := item.(object)
			name := job["name"].(string)
			for _, run := range subJobs(c, jobsPath+"/"+job["id"].(string)) {
				states[name][run["state"]]++
				calls := w.calls[run["id"].(string)]
				require.LessOrEqual(t, calls, crashRules[name].calls, "%s: %v", name, run)
				require.EqualValues(t, calls, run["attempt"], "%s: %v", name, run)
			}
		}
	}
	require.Equal(t, map[any]int{"failed": 24}, states["never-again"])
	require.Equal(t, map[any]int{"succeeded": 26}, states["once-more"])
	require.Equal(t, map[any]int{"succeeded": 48}, states["in-the-queue"])
	// A run is lost to its worker if the process died before it had stored that the worker accepted it.
	require.Positive(t, states["accepted"]["succeeded"])
	require.Equal(t, 26, states["accepted"]["succeeded"]+states["accepted"]["failed"])
}
