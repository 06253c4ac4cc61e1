package automation_test

import (
	"fmt"
	"io"
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
	"github.com/idplatform/idplatform/services/automation"
)

// stoppedJobs is how many jobs try again after a failed attempt, and how many do not.
const stoppedJobs = 4

// The process to be stopped: it fires all jobs and makes their runs.
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
	require.Eventually(t, isOver, time.Minute, 10*time.Millisecond)
	fmt.Println("what it reported is refused")
	select {}
}

// refused is how many attempts of a replica were over when it reported them.
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

// A replica stands still, with runs that it makes, for longer than its leases: another one ends them by the rules of
// their jobs, and what the first one reports afterwards is refused.
func TestReplicaThatStandsStill(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") == "" {
		t.Skip("two processes cannot share an SQLite file")
	}
	answering := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answering) })
	hook := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		if c.Attempt == 1 {
			<-answering
		}
		_, _ = io.WriteString(w, fmt.Sprintf(`{"attempt": %d}`, c.Attempt))
	})
	t.Cleanup(answer)
	with := surroundings{
		Database: testkit.NewDatabase(), Key: secret.NewKey().Reveal(), Hooks: map[string]string{"": hook.URL},
	}
	p := startProcess(t, "TestProcessToBeStopped", with)
	allCalled := func() bool { return len(hook.seen()) == 2*stoppedJobs }
	require.Eventually(t, allCalled, time.Minute, 5*time.Millisecond)
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))

	s := testkit.Start(t, automation.Spec(automation.DefaultConfig()), with.options())
	s.Clock.Advance(10*time.Second + 31*time.Second)
	tick(s)
	ended := runsByJob(s)
	for code, run := range ended {
		if run["name"] == "1" {
			require.Equal(t, "succeeded", run["state"], code)
			require.Equal(t, object{"attempt": 2.0}, run["result"], code)
		} else {
			require.Equal(t, "failed", run["state"], code)
			require.Equal(t, "the process that ran it has stopped or stood still", run["error"], code)
		}
	}
	require.Len(t, ended, 2*stoppedJobs)
	require.Len(t, hook.seen(), 3*stoppedJobs)

	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	answer()
	p.await(t, "what it reported is refused")
	tick(s)
	require.Equal(t, ended, runsByJob(s))
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
