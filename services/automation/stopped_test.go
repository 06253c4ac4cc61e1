package automation_test

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation"
)

// stoppedJobs is the number of jobs with a retry, and of jobs without.
const stoppedJobs = 4

// The process that is stopped: it fires all jobs and runs them.
func TestProcessToBeStopped(t *testing.T) {
	with := here(t)
	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	c := jobsOf(s, "acme")
	due := s.Clock.Now().Add(10 * time.Second)
	for i := range stoppedJobs {
		for _, retries := range []int{0, 1} {
			c.Post(jobsPath, object{"code": fmt.Sprintf("job-%d-%d", i, retries), "name": fmt.Sprint(retries),
				"schedule": object{"type": "once", "at": due}, "retry": object{"max": retries},
				"target": object{"type": "webhook", "url": with.Hooks[""]}}).OK(nil)
		}
	}
	s.Clock.Advance(10 * time.Second)
	isOver := func() bool { return refused(t, s) == 2*stoppedJobs }
	wait.Until(t, isOver)
	fmt.Println("all reports are refused")
	select {}
}

// refused is how many reports of a replica were refused, because their attempts were over.
func refused(t *testing.T, s *testkit.Service) (n int) {
	families, err := s.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "idp_job_attempts_total" && label.GetValue() == "refused" {
					n += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}

// A replica stands still for longer than the leases of its runs. Another one ends the attempts as their jobs say.
// Reports of the first are refused then, also while the second makes the next attempt.
func TestReplicaThatStandsStill(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") == "" {
		t.Skip("two processes cannot share an SQLite file")
	}
	var released [2]chan struct{} // by attempt
	var release [2]func()
	for i := range released {
		released[i] = make(chan struct{})
		release[i] = sync.OnceFunc(func() { close(released[i]) })
	}
	hook := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		<-released[c.Attempt-1]
		_, _ = fmt.Fprintf(w, `{"attempt": %d}`, c.Attempt)
	})
	t.Cleanup(release[0])
	t.Cleanup(release[1])
	called := func(n int) {
		t.Helper()
		areCalled := func() bool { return len(hook.seen()) == n }
		wait.Until(t, areCalled)
	}
	with := environment{
		Database: basic.NewDatabase(), Key: secret.NewKey().Reveal(), Hooks: map[string]string{"": hook.URL},
	}
	p := startProcess(t, "TestProcessToBeStopped", with)
	called(2 * stoppedJobs)
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))

	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	s.Clock.Advance(10*time.Second + 31*time.Second)
	s.RunTask("fire jobs")
	called(3 * stoppedJobs)
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	release[0]()
	p.await(t, "all reports are refused")
	for code, run := range runsByJob(s) {
		require.NotEqual(t, "succeeded", run["state"], code)
	}
	release[1]()
	s.RunTask("run jobs")
	for code, run := range runsByJob(s) {
		if run["name"] == "1" {
			require.Equal(t, "succeeded", run["state"], code)
			require.Equal(t, object{"attempt": 2.0}, run["result"], code)
		} else {
			require.Equal(t, "failed", run["state"], code)
			require.Equal(t, "the process that ran it has stopped or stood still", run["error"], code)
		}
	}
	require.Len(t, runsByJob(s), 2*stoppedJobs, "each job has fired once")
	require.Len(t, hook.seen(), 3*stoppedJobs)
}

// runsByJob returns the run of each job, by the job's code. Each has one.
func runsByJob(s *testkit.Service) map[any]object {
	c := jobsOf(s, "acme")
	all := map[any]object{}
	for _, item := range c.Get(jobsPath + "?page_size=200").Object()["items"].([]any) {
		job := item.(object)
		found := subJobs(c, jobsPath+"/"+job["id"].(string))
		if len(found) == 1 {
			all[job["code"]] = found[0]
		}
	}
	return all
}
