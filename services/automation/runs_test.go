package automation_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// running starts a run that its worker accepts, and returns the paths of the job and of the run.
func running(t testing.TB, s *testkit.Service, c *testkit.Client, more object) (job, run string) {
	t.Helper()
	job = newJob(c, newReceiver(t, answering(http.StatusAccepted, "")), more)
	id := c.Post(job+"/trigger", nil).ID()
	s.RunTask("run jobs")
	run = job + "/sub-jobs/" + id
	require.Equal(t, "running", c.Get(run).Object()["state"])
	return job, run
}

func idIn(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func TestParts(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	job, run := running(t, s, c, nil)
	part := c.Post(job+"/sub-jobs",
		object{"parent_id": idIn(run), "name": "Page 1", "payload": object{"page": 1}}).Object()
	require.Equal(t, "pending", part["state"])
	require.Equal(t, idIn(run), part["root_id"])
	token := part["callback_token"].(string)
	path := job + "/sub-jobs/" + part["id"].(string)
	require.NotContains(t, c.Get(path).Object(), "callback_token", "the token is shown once")
	worker := s.Stranger().With("X-Callback-Token", token)
	worker.Patch(run, object{"progress": 1}).Problem(http.StatusUnauthorized, "unauthenticated")
	require.Equal(t, "running", worker.Patch(path, object{"state": "running", "progress": 10}).Object()["state"])
	inner := c.Post(job+"/sub-jobs", object{"parent_id": part["id"], "name": "Line 1"}).Object()
	require.Equal(t, idIn(run), inner["root_id"])
	other := c.Post(job+"/sub-jobs", object{"parent_id": idIn(run), "name": "Page 2"}).Object()
	require.Equal(t, []any{part["id"], other["id"]}, c.Items(job+"/sub-jobs?parent_id="+idIn(run), "id"))

	ended := worker.Post(path+"/result", object{"state": "failed", "error": "torn"}).Object()
	require.Equal(t, "failed", ended["state"])
	worker.Post(path+"/result", object{"state": "succeeded"}).Problem(http.StatusConflict, "invalid_state")
	require.Equal(t, "cancelled", c.Get(job + "/sub-jobs/" + inner["id"].(string)).Object()["state"])
	require.Equal(t, "pending", c.Get(job + "/sub-jobs/" + other["id"].(string)).Object()["state"])
	c.Post(job+"/sub-jobs", object{"parent_id": part["id"], "name": "Late"}).
		Problem(http.StatusConflict, "invalid_state")
	c.Post(run+"/result", object{"state": "succeeded"}).OK(nil)
	require.Equal(t, "cancelled", c.Get(job + "/sub-jobs/" + other["id"].(string)).Object()["state"])
	c.Get(job + "/sub-jobs?state=cancelled").OK(nil)
	require.Len(t, c.Items(job+"/sub-jobs?state=cancelled", "id"), 2)

	for location, body := range map[string]object{
		"body.parent_id": {"parent_id": "1", "name": "x"},
		"body.name":      {"parent_id": idIn(run), "name": " "},
	} {
		c.Post(job+"/sub-jobs", body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	elsewhere, _ := running(t, s, c, nil)
	c.Get(elsewhere+"/sub-jobs/"+idIn(run)).Problem(http.StatusNotFound, "not_found")
	c.Delete(job, nil).OK(nil)
	c.Get(path).Problem(http.StatusNotFound, "not_found")
	c.Get(job+"/sub-jobs").Problem(http.StatusNotFound, "not_found")
	require.NoError(t, s.Deps.Store.Check(t.Context()))
}

func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	job, run := running(t, s, c, nil)
	for range 100 {
		c.Post(job+"/sub-jobs", object{"parent_id": idIn(run), "name": "x"}).OK(nil)
	}
	c.Post(job+"/sub-jobs", object{"parent_id": idIn(run), "name": "x"}).Problem(http.StatusConflict, "invalid_state")
}

func TestLogs(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	job, run := running(t, s, c, nil)
	add := func(path string, lines ...any) *testkit.Answer { return c.Post(path+"/logs", object{"lines": lines}) }
	early := s.Clock.Now().Add(-time.Hour)
	add(run, object{"message": "two"}, object{"message": "one", "time": early, "level": "warn"}).OK(nil)
	part := job + "/sub-jobs/" + c.Post(job+"/sub-jobs", object{"parent_id": idIn(run), "name": "x"}).ID()
	s.Clock.Advance(time.Second)
	add(part, object{"message": "three\nlines"}).OK(nil)
	require.Equal(t, []any{"one", "two", "three\nlines"}, c.Items(job+"/logs", "message"))
	require.Equal(t, []any{"one", "two"}, c.Items(run+"/logs", "message"))
	require.Equal(t, []any{"warn", "info"}, c.Items(run+"/logs", "level"))
	add(run, object{"message": strings.Repeat("x", 4097)}, object{"message": "x\x00"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.lines[0].message", "body.lines[1].message")
	add(run).Problem(http.StatusBadRequest, "invalid_parameters", "body.lines")
	lines := make([]any, 100)
	for i := range lines {
		lines[i] = object{"message": "x"}
	}
	for range 9 {
		add(run, lines...).OK(nil)
	}
	add(part, lines[:98]...).Problem(http.StatusConflict, "invalid_state")
	add(part, lines[:97]...).OK(nil)
	c.Post(run+"/result", object{"state": "succeeded"}).OK(nil)
	add(run, object{"message": "late"}).Problem(http.StatusConflict, "invalid_state")
	require.EqualValues(t, 1000, c.Get(job + "/logs?page_size=1").Object()["total"])
	jobsOf(s, "globex").Get(run+"/logs").Problem(http.StatusNotFound, "not_found")
}

func TestPreCreatedIDs(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	body := func(id string) object {
		return object{"id": id, "code": "j" + id, "name": "Job", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": "reports"}}
	}
	id := c.Post(jobsPath+"/pre-created-id", nil).ID()
	c.Get(jobsPath+"/"+id).Problem(http.StatusNotFound, "not_found")
	jobsOf(s, "globex").Post(jobsPath, body(id)).Problem(http.StatusBadRequest, "invalid_parameters", "body.id")
	c.Post(jobsPath+"?dry_run=true", body(id)).OK(nil)
	require.Equal(t, id, c.Post(jobsPath, body(id)).ID())
	again := body(id)
	again["code"] = "other"
	c.Post(jobsPath, again).Problem(http.StatusBadRequest, "invalid_parameters", "body.id")
	late := c.Post(jobsPath+"/pre-created-id", nil).ID()
	s.Clock.Advance(24 * time.Hour)
	c = jobsOf(s, "acme")
	c.Post(jobsPath, body(late)).Problem(http.StatusBadRequest, "invalid_parameters", "body.id")
	s.RunTask("release job ids")
	c.Post(jobsPath, body(late)).Problem(http.StatusBadRequest, "invalid_parameters", "body.id")
}

func TestStatesOfJobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusOK, ""))
	path := newJob(c, hook, object{"schedule": object{"type": "interval", "every_seconds": 60}})
	suspended := c.Post(path+"/suspend", nil).Object()
	require.Equal(t, "suspended", suspended["state"])
	require.Nil(t, suspended["next_fire_time"])
	require.Equal(t, suspended, c.Post(path+"/suspend", nil).Object())
	s.Clock.Advance(time.Hour)
	tick(s)
	require.Empty(t, hook.seen())
	c.Post(path+"/trigger", nil).OK(nil)
	s.RunTask("run jobs")
	require.Len(t, hook.seen(), 1)
	resumed := c.Post(path+"/resume", nil).Object()
	require.Equal(t, s.Clock.Now().Add(time.Minute).String(), resumed["next_fire_time"])
	disabled := c.Patch(path, object{"status": "0"}).Object()
	require.Nil(t, disabled["next_fire_time"])
	c.Post(path+"/trigger", nil).Problem(http.StatusConflict, "invalid_state")
	c.Patch(path, object{"status": "1"}).OK(nil)
	tick(s)
	require.Len(t, hook.seen(), 1)
	c.Post(path+"/trigger?dry_run=true", nil).OK(nil)
	c.Post(path+"/trigger", object{"payload": strings.Repeat("x", 64<<10)}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.payload")
	require.Len(t, states(c, path), 1)
}

func TestBatchesOfJobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusOK, ""))
	var ids []any
	for range 3 {
		ids = append(ids, idIn(newJob(c, hook, nil)))
	}
	foreign := idIn(newJob(jobsOf(s, "globex"), hook, nil))
	c.Post("/v1/batch/jobs-suspend", object{"ids": []any{ids[0], "1", foreign}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.ids[1]", "body.ids[2]")
	require.Equal(t, "scheduled", c.Get(jobsPath + "/" + ids[0].(string)).Object()["state"])
	c.Post("/v1/batch/jobs-suspend", object{"ids": ids}).OK(nil)
	require.Len(t, c.Items(jobsPath+"?state=suspended", "id"), 3)
	c.Post("/v1/batch/jobs-resume", object{"ids": ids[:2]}).OK(nil)
	require.Len(t, c.Items(jobsPath+"?state=suspended", "id"), 1)
	c.Post("/v1/batch/jobs-resume", object{"ids": []any{}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.ids")
	removed := c.Delete("/v1/batch/jobs", object{"ids": append(ids, "1", foreign)}).Object()
	require.Equal(t, object{"removed": 3.0}, removed)
	require.Empty(t, c.Items(jobsPath, "id"))
	jobsOf(s, "globex").Get(jobsPath + "/" + foreign).OK(nil)
}

// A run is sent to a subject of the tenant. A worker's reply accepts or ends it; without a worker it fails.
func TestNATSTargets(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	made := func(code string) string {
		return jobsPath + "/" + c.Post(jobsPath, object{
			"code": code, "name": "Job", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": "reports." + code, "payload": object{"n": 1}},
		}).ID()
	}
	once := func(path string) object {
		c.Post(path+"/trigger", nil).OK(nil)
		s.RunTask("run jobs")
		return subJobs(c, path)[0]
	}
	require.Equal(t, "no worker listens to the subject", once(made("nobody"))["error"])

	conn, err := nats.Connect("", nats.InProcessServer(s.NATS))
	require.NoError(t, err)
	defer conn.Close()
	for code, reply := range map[string]string{
		"accepts": "", "ends": `{"state":"succeeded","result":{"rows":3}}`,
		"fails": `{"state":"failed","error":"no paper"}`, "babbles": `{}`,
	} {
		_, err := conn.Subscribe("idp.jobs.acme.reports."+code, func(m *nats.Msg) {
			if err := m.Respond([]byte(reply)); err != nil {
				t.Error(err)
			}
		})
		require.NoError(t, err)
	}
	require.NoError(t, conn.Flush())
	require.Equal(t, "running", once(made("accepts"))["state"])
	require.Equal(t, object{"rows": 3.0}, once(made("ends"))["result"])
	require.Equal(t, "no paper", once(made("fails"))["error"])
	require.Equal(t, "failed", once(made("babbles"))["state"])
	for _, subject := range []string{"", "a..b", "a.*", ">", "a b", ".a", strings.Repeat("a", 129)} {
		c.Post(jobsPath, object{"code": "x", "name": "x", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": subject}}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.target.subject")
	}
}

// 100 finished runs of a job are kept, for a week.
func TestRunsAreForgotten(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	path := newJob(c, newReceiver(t, answering(http.StatusOK, "")), nil)
	for range 105 {
		c.Post(path+"/trigger", nil).OK(nil)
		s.RunTask("run jobs")
	}
	require.LessOrEqual(t, len(subJobs(c, path)), 101)
	require.Equal(t, 105.0, c.Get(path).Object()["fired"])
	s.Clock.Advance(7 * 24 * time.Hour)
	s.RunTask("forget runs")
	require.Empty(t, subJobs(jobsOf(s, "acme"), path))
}

// A tenant with many runs does not delay another's.
func TestTenantsRunInTurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	busy, calm := jobsOf(s, "busy"), jobsOf(s, "calm")
	release := make(chan struct{})
	slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ call) { <-release })
	quick := newReceiver(t, answering(http.StatusOK, ""))
	path := newJob(busy, slow, object{"timeout_seconds": 3600})
	for range 600 {
		busy.Post(path+"/trigger", nil).OK(nil)
	}
	own := newJob(calm, quick, nil)
	calm.Post(own+"/trigger", nil).OK(nil)
	isDone := func() bool { return states(calm, own)[0] == "succeeded" }
	wait.Until(t, isDone)
	require.NotEmpty(t, busy.Items(path+"/sub-jobs?state=pending&page_size=1", "id"))
	close(release)
}

// A tenant with many jobs that are due does not delay another's.
func TestTenantsFireInTurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	busy, calm := jobsOf(s, "busy"), jobsOf(s, "calm")
	due := func(c *testkit.Client, code string, at time.Duration) {
		c.Post(jobsPath, object{"code": code, "name": "Job",
			"schedule": object{"type": "once", "at": s.Clock.Now().Add(at)},
			"target":   object{"type": "nats", "subject": "x"}}).OK(nil)
	}
	const many = 600
	for i := range many {
		due(busy, fmt.Sprint("job-", i), time.Minute)
	}
	due(calm, "late", time.Minute+time.Second)
	s.Clock.Advance(time.Minute + time.Second)
	fired := func(c *testkit.Client) float64 {
		return c.Get(jobsPath + "?state=finished&page_size=1").Object()["total"].(float64)
	}
	wait.Until(t, func() bool { return fired(calm) == 1 })
	require.Less(t, fired(busy), float64(many/2))
}

func TestRefusedJobs(t *testing.T) {
	t.Parallel()
	c := start(t).As("acme", auth.JobsRead, auth.JobsWrite)
	for i, row := range []struct {
		change   object
		location string
	}{
		{object{"schedule": object{"type": "cron", "cron": "0 0 30 2 *"}}, "body.schedule.cron"},
		{
			object{"schedule": object{"type": "cron", "every_seconds": 5, "cron": "@daily"}},
			"body.schedule.every_seconds",
		},
		{object{"schedule": object{"type": "interval"}}, "body.schedule.every_seconds"},
		{object{"schedule": object{"type": "once"}}, "body.schedule.at"},
		{object{"schedule": object{"type": "manual", "cron": "@daily"}}, "body.schedule.cron"},
		{object{"target": object{"type": "function"}}, "body.target.function_id"},
		{object{"target": object{"type": "function", "function_id": "1", "url": "https://x.test"}}, "body.target.url"},
		{object{"target": object{"type": "webhook", "url": "https://u:p@x.test"}}, "body.target.url"},
		{object{"retry": object{"max": 21}}, "body.retry.max"},
		{object{"retry": object{"backoff_seconds": 3601}}, "body.retry.backoff_seconds"},
		{object{"timeout_seconds": 86401}, "body.timeout_seconds"},
		{object{"concurrency": "some"}, "body.concurrency"},
		{object{"misfire": "some"}, "body.misfire"},
		{object{"status": "2"}, "body.status"},
	} {
		body := object{"code": fmt.Sprint("j", i), "name": "Job", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": "x"}}
		for name, value := range row.change {
			body[name] = value
		}
		c.Post(jobsPath, body).Problem(http.StatusBadRequest, "invalid_parameters", row.location)
	}
}

// A worker that does not know whether its report has arrived sends it again with the same key.
func TestReportsAreRepeated(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	job, run := running(t, s, c, nil)
	newPart := func() (path, token string) {
		part := c.Post(job+"/sub-jobs", object{"parent_id": idIn(run), "name": "Part"}).Object()
		return job + "/sub-jobs/" + part["id"].(string), part["callback_token"].(string)
	}
	path, token := newPart()
	worker := s.Stranger().With("X-Callback-Token", token).With("Idempotency-Key", "k")
	report := object{"state": "succeeded", "result": 1}
	first := worker.Post(path+"/result", report)
	require.Equal(t, "succeeded", first.Object()["state"])
	require.Empty(t, first.Header.Get("Idempotent-Replayed"))
	again := worker.Post(path+"/result", report)
	require.Equal(t, first.Object(), again.Object())
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	worker.Post(path+"/result", object{"state": "failed"}).Problem(422, "idempotency_key_reused")
	worker.With("Idempotency-Key", "l").Post(path+"/result", report).Problem(http.StatusConflict, "invalid_state")
	c.With("Idempotency-Key", "k").Post(path+"/result", report).Problem(http.StatusConflict, "invalid_state")

	other, _ := newPart()
	worker.Post(other+"/result", report).Problem(http.StatusUnauthorized, "unauthenticated")
	lines := object{"lines": []any{object{"message": "read"}}}
	other, token = newPart()
	worker = s.Stranger().With("X-Callback-Token", token).With("Idempotency-Key", "k")
	for range 2 {
		worker.Post(other+"/logs", lines).OK(nil)
	}
	require.Len(t, c.Items(other+"/logs", "id"), 1)
}
