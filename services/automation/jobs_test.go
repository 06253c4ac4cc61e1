package automation_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/automation"
)

const jobsPath = "/v1/jobs"

// jobsOf is a client of a tenant that may read and write jobs.
func jobsOf(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.JobsRead, auth.JobsWrite)
}

// jobsOfFunctions may also set functions as the targets of jobs.
func jobsOfFunctions(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.JobsRead, auth.JobsWrite, auth.FunctionsWrite)
}

func TestJobsKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: jobsPath,
		Body: func(n int) any {
			return object{
				"code": fmt.Sprint("job-", n), "name": fmt.Sprint("Job ", n),
				"schedule": object{"type": "cron", "cron": "0 3 1 1 *", "timezone": "Europe/Berlin"},
				"target":   object{"type": "webhook", "url": "https://jobs.acme.test/run", "payload": object{"n": n}},
			}
		},
		Change: object{"timeout_seconds": 30, "retry": object{"max": 2}},
		Faulty: object{
			"code": "a b", "name": " ", "schedule": object{"type": "cron", "cron": "61 * * * *", "timezone": "Nowhere"},
			"target": object{"type": "webhook", "url": "ftp://x"}, "timeout_seconds": -1,
		},
		Faults: []string{
			"body.code", "body.name", "body.schedule.cron", "body.schedule.timezone", "body.target.url",
			"body.timeout_seconds",
		},
		Unique: []string{"code"}, Read: auth.JobsRead, Write: auth.JobsWrite, Unrelated: auth.UsersRead,
		Secrets: secrets,
	})
}

// call is the body that a webhook receives.
type call struct {
	JobID         string          `json:"job_id"`
	SubJobID      string          `json:"sub_job_id"`
	Attempt       int             `json:"attempt"`
	Payload       json.RawMessage `json:"payload"`
	CallbackURL   string          `json:"callback_url"`
	CallbackToken string          `json:"callback_token"`
}

// sent is a request as a webhook receives it.
type sent struct {
	header http.Header
	body   []byte
}

// receiver is a webhook that records its calls.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
	sent  []sent
	reply func(w http.ResponseWriter, r *http.Request, c call)
}

func newReceiver(t testing.TB, reply func(w http.ResponseWriter, r *http.Request, c call)) *receiver {
	r := &receiver{reply: reply}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var c call
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = json.Unmarshal(body, &c)
		}
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.calls = append(r.calls, c)
		r.sent = append(r.sent, sent{request.Header, body})
		r.mu.Unlock()
		r.reply(w, request, c)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) seen() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call(nil), r.calls...)
}

func answering(status int, body string) func(http.ResponseWriter, *http.Request, call) {
	return func(w http.ResponseWriter, _ *http.Request, _ call) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// newJob creates a job with a webhook and returns its path.
func newJob(c *testkit.Client, hook *receiver, more object) string {
	body := object{
		"code": fmt.Sprint("j", time.Now().UnixNano()), "name": "Job", "schedule": object{"type": "manual"},
		"target": object{"type": "webhook", "url": hook.URL, "payload": object{"n": 1}},
	}
	for name, value := range more {
		body[name] = value
	}
	return jobsPath + "/" + c.Post(jobsPath, body).ID()
}

func subJobs(c *testkit.Client, path string) (all []object) {
	for _, item := range c.Get(path + "/sub-jobs?page_size=200").Object()["items"].([]any) {
		all = append(all, item.(object))
	}
	return all
}

func states(c *testkit.Client, path string) (all []any) {
	return c.Items(path+"/sub-jobs?page_size=200", "state")
}

func tick(s *testkit.Service) {
	s.RunTask("fire jobs")
	s.RunTask("run jobs")
}

func TestAJobFires(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusOK, `{"rows": 120}`))
	path := newJob(c, hook, object{"schedule": object{"type": "interval", "every_seconds": 60}})
	made := c.Get(path)
	first := s.Clock.Now().Add(time.Minute)
	require.Equal(t, first.String(), made.Object()["next_fire_time"])
	tick(s)
	require.Empty(t, hook.seen())

	s.Clock.Advance(time.Minute)
	tick(s)
	require.Len(t, hook.seen(), 1)
	require.JSONEq(t, `{"n": 1}`, string(hook.seen()[0].Payload))
	run := subJobs(c, path)[0]
	require.Equal(t, hook.seen()[0].SubJobID, run["id"])
	require.Equal(t, "succeeded", run["state"])
	require.Equal(t, object{"rows": 120.0}, run["result"])
	require.Equal(t, first.String(), run["time_scheduled"])
	require.Equal(t, 100.0, run["progress"])
	require.Equal(t, 1.0, run["number"])
	fired := c.Get(path)
	job := fired.Object()
	require.Equal(t, 1.0, job["version"], "firing does not change the version, so a client's If-Match stays valid")
	require.NotEqual(t, made.Header.Get("ETag"), fired.Header.Get("ETag"))
	require.Equal(t, run["id"], job["last_sub_job_id"])
	require.Equal(t, first.Add(time.Minute).String(), job["next_fire_time"])
	require.Equal(t, made.Object()["time_modified"], job["time_modified"])

	var times struct {
		FireTimes []string `json:"fire_times"`
	}
	c.Get(path + "/fire-times?count=2").OK(&times)
	require.Equal(t, []string{first.Add(time.Minute).String(), first.Add(2 * time.Minute).String()}, times.FireTimes)
}

func TestFireTimesOfASchedule(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.JobsRead)
	const path = "/v1/jobs/fire-times"
	now := s.Clock.Now()
	fire := func(schedule object, count any) []string {
		t.Helper()
		body := object{"schedule": schedule}
		if count != nil {
			body["count"] = count
		}
		var times struct {
			FireTimes []string `json:"fire_times"`
		}
		c.Post(path, body).OK(&times)
		return times.FireTimes
	}
	after := func(d time.Duration) string { return now.Add(d).String() }
	minute := object{"type": "interval", "every_seconds": 60}
	require.Equal(t, []string{after(time.Minute), after(2 * time.Minute)}, fire(minute, 2))
	require.Len(t, fire(minute, nil), 10)
	require.Equal(t, []string{after(time.Hour)}, fire(object{"type": "once", "at": now.Add(time.Hour)}, 5))
	c.Post(path, object{"schedule": object{"type": "once", "at": now}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.schedule.at")
	require.Equal(t, []string{}, fire(object{"type": "manual"}, nil))
	midnight := fire(object{"type": "cron", "cron": "0 0 * * *", "timezone": "Asia/Shanghai"}, 1)
	require.Regexp(t, "T16:00:00.000Z$", midnight[0])

	// As a job with this schedule has them.
	cron := object{"type": "cron", "cron": "30 2 * * MON-FRI", "timezone": "Europe/Berlin"}
	hook := newReceiver(t, answering(http.StatusNoContent, ""))
	var job struct {
		FireTimes []string `json:"fire_times"`
	}
	all := jobsOf(s, "acme")
	all.Get(newJob(all, hook, object{"schedule": cron}) + "/fire-times?count=100").OK(&job)
	require.Equal(t, job.FireTimes, fire(cron, 100))

	for name, row := range map[string]struct {
		body     any
		location string
	}{
		"no schedule": {object{"count": 1}, "body.schedule"},
		"count 0":     {object{"schedule": minute, "count": 0}, "body.count"},
		"count 101":   {object{"schedule": minute, "count": 101}, "body.count"},
		"type":        {object{"schedule": object{"type": "daily"}}, "body.schedule.type"},
		"cron":        {object{"schedule": object{"type": "cron", "cron": "61 * * * *"}}, "body.schedule.cron"},
		"never":       {object{"schedule": object{"type": "cron", "cron": "0 0 30 2 *"}}, "body.schedule.cron"},
		"zone": {object{"schedule": object{"type": "cron", "cron": "@daily", "timezone": "X"}},
			"body.schedule.timezone"},
		"another's":     {object{"schedule": object{"type": "manual", "cron": "@daily"}}, "body.schedule.cron"},
		"interval of 0": {object{"schedule": object{"type": "interval"}}, "body.schedule.every_seconds"},
		"unknown":       {object{"schedule": minute, "since": "now"}, "body.since"},
		"unknown below": {object{"schedule": object{"type": "manual", "x": 1}}, "body.schedule.x"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Post(path, row.body).Problem(http.StatusBadRequest, "invalid_parameters", row.location)
		})
	}
	s.As("acme", auth.KVRead).Post(path, object{"schedule": minute}).Problem(http.StatusForbidden, "forbidden")
}

func TestAJobThatFiresOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusNoContent, ""))
	at := s.Clock.Now().Add(time.Hour)
	path := newJob(c, hook, object{"schedule": object{"type": "once", "at": at}})
	s.Clock.Advance(time.Hour)
	tick(s)
	tick(s)
	job := c.Get(path).Object()
	require.Equal(t, "finished", job["state"])
	require.Nil(t, job["next_fire_time"])
	require.Len(t, hook.seen(), 1)
	c.Post(path+"/suspend", nil).Problem(http.StatusConflict, "invalid_state")
	c.Patch(path, object{"schedule": object{"at": at.Add(time.Hour)}}).OK(nil)
	require.Equal(t, "scheduled", c.Get(path).Object()["state"])
}

// A time that comes again, because the clock was set back, does not fire again and does not stop the schedule.
func TestATimeThatComesAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	path := newJob(c, newReceiver(t, answering(http.StatusOK, "")), object{
		"schedule": object{"type": "cron", "cron": "0 * * * * *"},
	})
	s.Clock.Advance(time.Minute)
	tick(s)
	require.Len(t, subJobs(c, path), 1)
	fired := c.Get(path).Object()["next_fire_time"]
	s.Clock.Advance(-time.Minute)
	c = jobsOf(s, "acme")
	c.Post(path+"/suspend", nil).OK(nil)
	require.NotEqual(t, fired, c.Post(path+"/resume", nil).Object()["next_fire_time"])
	s.Clock.Advance(time.Minute)
	tick(s)
	require.Len(t, subJobs(c, path), 1)
	require.Equal(t, fired, c.Get(path).Object()["next_fire_time"])
	s.Clock.Advance(time.Minute)
	tick(s)
	require.Len(t, subJobs(c, path), 2)
}

// Two replicas fire and run jobs at the same time. Each time of each job fires once, and each run is called once.
func TestReplicasFireEachTimeOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	replica := s.Replica(automation.Spec(automation.DefaultConfig()))
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusOK, ""))
	var paths []string
	for range 20 {
		paths = append(paths, newJob(c, hook, object{"schedule": object{"type": "interval", "every_seconds": 10}}))
	}
	const times = 5
	for range times {
		s.Clock.Advance(10 * time.Second)
		var both sync.WaitGroup
		for _, r := range []*testkit.Service{s, replica} {
			both.Go(func() { tick(r) })
		}
		both.Wait()
	}
	tick(s)
	seen := map[string]int{}
	for _, call := range hook.seen() {
		seen[call.SubJobID]++
	}
	require.Len(t, seen, times*len(paths))
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
	for _, path := range paths {
		fired := map[any]bool{}
		for _, run := range subJobs(c, path) {
			fired[run["time_scheduled"]] = true
		}
		require.Len(t, fired, times)
	}
}

func TestMisfires(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		misfire string
		late    time.Duration
		runs    int
	}{
		"half a minute late":     {"skip", 30 * time.Second, 1},
		"a minute late":          {"skip", time.Minute, 1},
		"missed, and skipped":    {"skip", 10*time.Minute + 30*time.Second, 0},
		"missed, and fired once": {"fire_once", 10*time.Minute + 30*time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testkit.Start(t, automation.Spec(automation.DefaultConfig()))
			c := jobsOf(s, "acme")
			hook := newReceiver(t, answering(http.StatusOK, ""))
			path := newJob(c, hook, object{
				"schedule": object{"type": "interval", "every_seconds": 120}, "misfire": row.misfire,
			})
			began := s.Clock.Now()
			s.Clock.Advance(2*time.Minute + row.late)
			tick(s)
			require.Len(t, subJobs(c, path), row.runs)
			passed := (2*time.Minute + row.late) / (2 * time.Minute)
			require.Equal(t, began.Add((passed+1)*2*time.Minute).String(), c.Get(path).Object()["next_fire_time"])
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusServiceUnavailable, "down"))
	path := newJob(c, hook, object{"retry": object{"max": 2, "backoff_seconds": 10}})
	c.Post(path+"/trigger", object{"payload": object{"n": 2}}).OK(nil)
	s.RunTask("run jobs")
	run := subJobs(c, path)[0]
	require.Equal(t, "pending", run["state"])
	require.Equal(t, "the webhook answered 503", run["error"])
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second} {
		calls := len(hook.seen())
		s.Clock.Advance(pause - time.Millisecond)
		s.RunTask("run jobs")
		require.Len(t, hook.seen(), calls, "the pause goes on")
		s.Clock.Advance(time.Millisecond)
		s.RunTask("run jobs")
		require.Len(t, hook.seen(), calls+1)
	}
	run = subJobs(c, path)[0]
	require.Equal(t, "failed", run["state"])
	require.Equal(t, 3.0, run["attempt"])
	s.Clock.Advance(time.Hour)
	s.RunTask("run jobs")
	require.Len(t, hook.seen(), 3)
	require.JSONEq(t, `{"n": 2}`, string(hook.seen()[2].Payload))
}

// A webhook that says when it wants to be called again is not called sooner (RFC 9110 §10.2.3).
func TestRetriesNoSoonerThanAsked(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ call) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	path := newJob(c, hook, object{"retry": object{"max": 1, "backoff_seconds": 10}})
	c.Post(path+"/trigger", nil).OK(nil)
	s.RunTask("run jobs")
	s.Clock.Advance(90*time.Second - time.Millisecond)
	s.RunTask("run jobs")
	require.Len(t, hook.seen(), 1)
	s.Clock.Advance(time.Millisecond)
	s.RunTask("run jobs")
	require.Len(t, hook.seen(), 2)
}

// A run times out after timeout_seconds, whether the target does not answer or accepts the run and reports no result.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	slow := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ call) { <-r.Context().Done() })
	path := newJob(c, slow, object{"timeout_seconds": 1})
	c.Post(path+"/trigger", nil).OK(nil)
	s.RunTask("run jobs")
	require.Equal(t, []any{"timed_out"}, states(c, path))

	silent := newReceiver(t, answering(http.StatusAccepted, ""))
	path = newJob(c, silent, object{"timeout_seconds": 600, "retry": object{"max": 1}})
	c.Post(path+"/trigger", nil).OK(nil)
	s.RunTask("run jobs")
	require.Equal(t, []any{"running"}, states(c, path))
	s.Clock.Advance(10*time.Minute - time.Millisecond)
	s.RunTask("run jobs")
	require.Len(t, silent.seen(), 1)
	s.Clock.Advance(time.Millisecond)
	s.RunTask("run jobs")
	require.Len(t, silent.seen(), 2)
	s.Clock.Advance(10 * time.Minute)
	s.RunTask("run jobs")
	require.Equal(t, []any{"timed_out"}, states(c, path))
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusAccepted, ""))
	finish := func(path string, run object) {
		c.Post(path+"/sub-jobs/"+run["id"].(string)+"/result", object{"state": "succeeded"}).OK(nil)
	}
	each := object{"type": "interval", "every_seconds": 60}
	for rule, want := range map[string][]any{
		"allow": {"running", "running", "running"},
		"skip":  {"running"},
		"queue": {"running", "pending", "pending"},
	} {
		path := newJob(c, hook, object{"schedule": each, "concurrency": rule, "timeout_seconds": 86400})
		for range 3 {
			s.Clock.Advance(time.Minute)
			tick(s)
		}
		require.Equal(t, want, states(c, path), rule)
		if rule == "skip" {
			c.Post(path+"/trigger", nil).Problem(http.StatusConflict, "invalid_state")
		}
		if rule == "queue" {
			c.Post(path+"/sub-jobs/"+subJobs(c, path)[1]["id"].(string)+"/cancel", nil).OK(nil)
			s.RunTask("run jobs")
			require.Equal(t, []any{"running", "cancelled", "pending"}, states(c, path))
			for _, i := range []int{0, 2} {
				finish(path, subJobs(c, path)[i])
				s.RunTask("run jobs")
			}
			require.Equal(t, []any{"succeeded", "cancelled", "succeeded"}, states(c, path))
		}
		c.Delete(path, nil).OK(nil)
	}
}

func TestCallbacks(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusAccepted, ""))
	path := newJob(c, hook, object{"retry": object{"max": 1, "backoff_seconds": 10}})
	c.Post(path+"/trigger", nil).OK(nil)
	s.RunTask("run jobs")
	got := hook.seen()[0]
	require.Equal(t, "https://idp.test"+path+"/sub-jobs/"+got.SubJobID+"/result", got.CallbackURL)
	sub := path + "/sub-jobs/" + got.SubJobID
	require.NotContains(t, string(c.Get(sub).Body), got.CallbackToken)
	worker := s.Stranger().With("X-Callback-Token", got.CallbackToken)
	stranger := s.Stranger().With("X-Callback-Token", "acme.wrong")
	for _, other := range []*testkit.Client{
		stranger, s.Stranger().With("X-Callback-Token", strings.Replace(got.CallbackToken, "acme", "globex", 1)),
		s.Stranger().With("X-Callback-Token", "*platform.x"), s.Stranger(),
	} {
		other.Post(sub+"/result", object{"state": "succeeded"}).Problem(http.StatusUnauthorized, "unauthenticated")
		other.Patch(sub, object{"progress": 1}).Problem(http.StatusUnauthorized, "unauthenticated")
		other.Post(sub+"/logs", object{"lines": []any{object{"message": "x"}}}).
			Problem(http.StatusUnauthorized, "unauthenticated")
		other.Get(sub).Problem(http.StatusUnauthorized, "unauthenticated")
	}
	worker.Post(path+"/cancel", nil).Problem(http.StatusNotFound, "not_found")
	worker.Post(sub+"/cancel", nil).Problem(http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, 40.0, worker.Patch(sub, object{"progress": 40}).Object()["progress"])
	worker.Patch(sub, object{"progress": 101}).Problem(http.StatusBadRequest, "invalid_parameters", "body.progress")
	worker.Patch(sub, object{"state": "succeeded"}).Problem(http.StatusBadRequest, "invalid_parameters", "body.state")
	worker.Post(sub+"/result", object{"state": "cancelled"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.state")
	worker.Post(sub+"/result?dry_run=true", object{"state": "succeeded"}).OK(nil)

	failure := worker.Post(sub+"/result", object{"state": "failed", "error": "no disk"}).Object()
	require.Equal(t, "pending", failure["state"])
	require.Equal(t, "no disk", failure["error"])
	worker.Post(sub+"/result", object{"state": "succeeded"}).Problem(http.StatusConflict, "invalid_state")
	c.Post(sub+"/result", object{"state": "succeeded"}).Problem(http.StatusConflict, "invalid_state")
	s.Clock.Advance(10 * time.Second)
	s.RunTask("run jobs")
	again := hook.seen()[1]
	require.Equal(t, got.SubJobID, again.SubJobID)
	require.NotEqual(t, got.CallbackToken, again.CallbackToken)
	worker.Post(sub+"/result", object{"state": "succeeded"}).Problem(http.StatusConflict, "invalid_state")
	worker = s.Stranger().With("X-Callback-Token", again.CallbackToken)
	done := worker.Post(sub+"/result", object{"state": "succeeded", "result": []any{1}}).Object()
	require.Equal(t, "succeeded", done["state"])
	require.Equal(t, []any{1.0}, done["result"])
	worker.Post(sub+"/result", object{"state": "succeeded"}).Problem(http.StatusConflict, "invalid_state")
	c.Post(sub+"/result", object{"state": "failed"}).Problem(http.StatusConflict, "invalid_state")
	worker.Patch(sub, object{"progress": 1}).Problem(http.StatusConflict, "invalid_state")
	stranger.Post(sub+"/result", object{"state": "failed"}).Problem(http.StatusUnauthorized, "unauthenticated")
}

// A replica that stands still for longer than its lease loses the run, and its report is refused.
func TestALateResultIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	replica := s.Replica(automation.Spec(automation.DefaultConfig()))
	c := jobsOf(s, "acme")
	entered, release := make(chan struct{}), make(chan struct{})
	hook := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, got call) {
		if got.Attempt == 1 {
			close(entered)
			<-release
		}
		_, _ = fmt.Fprintf(w, `{"attempt": %d}`, got.Attempt)
	})
	path := newJob(c, hook, object{"timeout_seconds": 3600, "retry": object{"max": 1}})
	c.Post(path+"/trigger", nil).OK(nil)
	<-entered // one of the replicas runs it
	s.Clock.Advance(30*time.Second - time.Millisecond)
	require.Equal(t, 1.0, subJobs(c, path)[0]["attempt"])
	s.Clock.Advance(time.Millisecond)
	wait.Until(t, func() bool { return states(c, path)[0] == "succeeded" })
	before := subJobs(c, path)[0]
	require.Equal(t, object{"attempt": 2.0}, before["result"])
	close(release)
	s.RunTask("run jobs") // returns when this replica has no run in progress
	replica.RunTask("run jobs")
	require.Equal(t, before, subJobs(c, path)[0])
	require.Len(t, hook.seen(), 2)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	entered, left := make(chan struct{}), make(chan struct{})
	hook := newReceiver(t, func(_ http.ResponseWriter, r *http.Request, _ call) {
		close(entered)
		<-r.Context().Done()
		close(left)
	})
	path := newJob(c, hook, object{"timeout_seconds": 3600})
	id := c.Post(path+"/trigger", nil).ID()
	<-entered
	require.Equal(t, "cancelled", c.Post(path+"/sub-jobs/"+id+"/cancel", nil).Object()["state"])
	<-left // the call is broken off
	c.Post(path+"/sub-jobs/"+id+"/cancel", nil).Problem(http.StatusConflict, "invalid_state")
	s.RunTask("run jobs")
	require.Equal(t, []any{"cancelled"}, states(c, path))
	jobsOf(s, "globex").Post(path+"/sub-jobs/"+id+"/cancel", nil).Problem(http.StatusNotFound, "not_found")
}
