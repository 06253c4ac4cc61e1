package automation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	"github.com/idplatform/idplatform/services/questions"
)

const functionsPath = "/v1/functions"

func functionsOf(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.FunctionsRead, auth.FunctionsWrite)
}

// javascript is the body of a function with a source and other members.
func javascript(source string, more ...object) object {
	body := object{"code": "f", "name": "F", "source": source}
	for _, m := range more {
		for name, value := range m {
			body[name] = value
		}
	}
	return body
}

func oneFunction(made object) string { return functionsPath + "/" + made["id"].(string) }

func invoke(c *testkit.Client, made object, input any) object {
	return c.Post(oneFunction(made)+"/invoke", object{"input": input}).Object()
}

func TestFunctionsKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: functionsPath,
		Body: func(n int) any {
			return javascript(`function main() {}`, object{"code": fmt.Sprint("f", n), "env": object{"KEY": "hidden"}})
		},
		Change: object{"description": "另一个"},
		Faulty: object{"code": "A B", "name": "F", "source": "x", "limits": object{"memory_mb": 1}},
		Faults: []string{"body.code", "body.limits.memory_mb"},
		Unique: []string{"code"},
		Read:   auth.FunctionsRead, Write: auth.FunctionsWrite, Unrelated: auth.UsersRead,
		Secrets: secrets,
	})
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	source := "function main(input, context) { console.log('<called>'); return {to: input.name, key: context.env.KEY} }"
	made := c.Post(functionsPath, javascript(source, object{"env": object{"KEY": "sesame"}})).Object()
	for member, want := range map[string]any{
		"code": "f", "name": "F", "description": "", "runtime": "javascript", "entry": "main", "status": "1",
		"revision": 1.0, "source": source, "env": object{"KEY": "******"}, "allowed_hosts": []any{},
		"triggers": []any{}, "limits": object{"timeout_ms": 3000.0, "cpu_ms": 1000.0, "memory_mb": 32.0},
		"tenant_id": "acme", "version": 1.0,
	} {
		require.Equal(t, want, made[member], member)
	}
	require.Equal(t, made, c.Get(oneFunction(made)).Object())
	require.Equal(t, []any{nil}, c.Items(functionsPath, "source"), "lists have no code")

	answer := invoke(c, made, object{"name": "李伟"})
	require.Equal(t, "succeeded", answer["outcome"])
	require.Equal(t, object{"to": "李伟", "key": "sesame"}, answer["output"])
	require.Equal(t, []any{object{"level": "info", "text": "<called>"}}, answer["logs"])
	require.NotContains(t, answer, "error")
	require.Contains(t, answer, "duration_ms")

	require.Equal(t, made, c.Do(http.MethodPut, oneFunction(made), made).Object(), "a record may be sent back as it is")
	changed := c.Patch(oneFunction(made), object{"status": "0", "env": object{"OTHER": "x"}}).Object()
	require.Equal(t, object{"KEY": "******", "OTHER": "******"}, changed["env"])
	require.Equal(t, 1.0, changed["revision"], "the code is the same")
	c.Post(oneFunction(made)+"/invoke", nil).Problem(http.StatusConflict, "invalid_state")
	changed = c.Patch(oneFunction(made), object{"status": "1", "env": object{"KEY": nil},
		"source": `function main(i, c) { return c.env }`}).Object()
	require.Equal(t, 2.0, changed["revision"])
	require.Equal(t, object{"OTHER": "x"}, invoke(c, made, nil)["output"])

	c.Patch(oneFunction(made), object{"entry": "other", "source": "function main() {} function other() { return 7 }"}).
		OK(nil)
	require.Equal(t, 7.0, invoke(c, made, nil)["output"])

	functionsOf(s, "globex").Post(oneFunction(made)+"/invoke", nil).Problem(http.StatusNotFound, "not_found")
	c.Delete(oneFunction(made), nil).OK(nil)
	c.Post(oneFunction(made)+"/invoke", nil).Problem(http.StatusNotFound, "not_found")
	c.Get(oneFunction(made)+"/logs").Problem(http.StatusNotFound, "not_found")
}

func TestFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	c := functionsOf(start(t), "acme")
	long := strings.Repeat("x", 5000)
	for name, row := range map[string]struct {
		body      object
		locations []string
	}{
		"nothing": {object{}, []string{"body.code", "body.name", "body.source"}},
		"syntax":  {javascript("function main() {\n  return ]\n}"), []string{"body.source"}},
		"limits": {javascript("x", object{"limits": object{"timeout_ms": 30000, "cpu_ms": 1, "memory_mb": 999}}),
			[]string{"body.limits.timeout_ms", "body.limits.cpu_ms", "body.limits.memory_mb"}},
		"names": {javascript("x", object{"code": "A", "name": " ", "status": "1", "entry": strings.Repeat("e", 65)}),
			[]string{"body.code", "body.name", "body.entry"}},
		"environment": {javascript("x", object{"env": object{"A": long, "B": "******", "C": "a\x00", "1": "x"}}),
			[]string{"body.env.A", "body.env.B", "body.env.C", "body.env"}},
		"hosts": {javascript("x", object{"allowed_hosts": []any{"https://x", "a b", "*", "ok.example.com"}}),
			[]string{"body.allowed_hosts[0]", "body.allowed_hosts[1]", "body.allowed_hosts[2]"}},
		"triggers": {javascript("x", object{"triggers": []any{object{"event_types": []any{"User", "user.*", "a.b.c"}},
			object{"event_types": []any{}}}}),
			[]string{"body.triggers[0].event_types[0]", "body.triggers[0].event_types[2]",
				"body.triggers[1].event_types"}},
		"a long source":      {javascript(strings.Repeat(" ", 257<<10)), []string{"body.source"}},
		"a source for wasm":  {javascript("x", object{"runtime": "wasm"}), []string{"body.source"}},
		"an unknown runtime": {javascript("x", object{"runtime": "python"}), []string{"body.runtime"}},
		"no module": {object{"code": "f", "name": "F", "runtime": "wasm", "module_base64": "AGFzbQ=="},
			[]string{"body.module_base64"}},
		"an entry": {javascript("x", object{"entry": "a.b"}), []string{"body.source"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Post(functionsPath, row.body).Problem(http.StatusBadRequest, "invalid_parameters", row.locations...)
		})
	}
	answer := c.Post(functionsPath, javascript("function main() {\n  return ]\n}")).Problem(http.StatusBadRequest,
		"invalid_parameters")
	require.Equal(t, "line 2, column 10: Unexpected token ]", answer.Errors[0].Message)
}

// The answer to an invocation is 200 however the function ends.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	made := c.Post(functionsPath, javascript(`function main(input) {
		console.log("begun")
		switch (input) {
		case "throw": throw new Error("boom")
		case "loop": for (;;) {}
		case "memory": const all = []; for (;;) all.push(new Array(1000).fill(1.5))
		}
	}`, object{"limits": object{"timeout_ms": 25000, "cpu_ms": 2000, "memory_mb": 8}})).Object()
	for input, outcome := range map[string]string{
		"": "succeeded", "throw": "failed", "loop": "timed_out", "memory": "out_of_memory",
	} {
		answer := invoke(c, made, input)
		require.Equal(t, outcome, answer["outcome"], answer)
		require.Nil(t, answer["output"])
		require.Len(t, answer["logs"], 1)
		if outcome != "succeeded" {
			require.NotEmpty(t, answer["error"].(object)["message"])
		}
	}
	answer := invoke(c, made, "throw")
	require.Equal(t, object{"message": "Error: boom", "line": 4.0, "column": 23.0}, answer["error"])

	var page struct{ Items []object }
	c.Get(oneFunction(made) + "/logs?page_sort=time_created[desc]&page_size=2").OK(&page)
	require.Equal(t, "failed", page.Items[0]["outcome"])
	require.Equal(t, "invoke", page.Items[0]["cause"])
	require.Equal(t, []any{object{"level": "info", "text": "begun"}}, page.Items[0]["logs"])

	dry := c.Post(oneFunction(made)+"/invoke?dry_run=true", object{"input": "throw"}).Object()
	require.Equal(t, "succeeded", dry["outcome"], "a dry run calls nothing")
	require.Len(t, c.Items(oneFunction(made)+"/logs", "id"), 5)

	keyed := c.With("Idempotency-Key", "k")
	first := invoke(keyed, made, "throw")
	require.Equal(t, first, invoke(keyed, made, "throw"))
	require.Len(t, c.Items(oneFunction(made)+"/logs", "id"), 6, "the second request gets the first answer again")

	for range 100 {
		invoke(c, made, "")
	}
	require.Len(t, c.Items(oneFunction(made)+"/logs?page_size=200", "id"), 100)
	s.Clock.Advance(8 * 24 * time.Hour)
	s.RunTask("forget function logs")
	require.Empty(t, functionsOf(s, "acme").Items(oneFunction(made)+"/logs", "id"))
}

// The same call ends in different ways under different limits.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := functionsOf(start(t), "acme")
	made := c.Post(functionsPath, javascript(`function main(input) {
		for (let i = 0; i < input.rounds; i++) {}
		const all = []
		for (let i = 0; i < input.kib; i++) all.push(new Array(128).fill(1.5))
	}`)).Object()
	loop, much := object{"rounds": 1_000_000, "kib": 0}, object{"rounds": 0, "kib": 12 << 10}
	wide := object{"timeout_ms": 25000, "cpu_ms": 10000, "memory_mb": 128}
	for name, row := range map[string]struct {
		limits, input object
		outcome       string
	}{
		"a loop":                {wide, loop, "succeeded"},
		"a loop, a short time":  {object{"timeout_ms": 10, "cpu_ms": 10000, "memory_mb": 128}, loop, "timed_out"},
		"a loop, little work":   {object{"timeout_ms": 25000, "cpu_ms": 10, "memory_mb": 128}, loop, "timed_out"},
		"memory":                {wide, much, "succeeded"},
		"memory, a small share": {object{"timeout_ms": 25000, "cpu_ms": 10000, "memory_mb": 8}, much, "out_of_memory"},
	} {
		c.Patch(oneFunction(made), object{"limits": row.limits}).OK(nil)
		answer := invoke(c, made, row.input)
		require.Equal(t, row.outcome, answer["outcome"], "%s: %v", name, answer)
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	c := functionsOf(start(t), "acme")
	source := func(n int) string { return fmt.Sprintf("function main() { return %d }", n) }
	made := c.Post(functionsPath, javascript(source(1))).Object()
	c.Post(oneFunction(made)+"/rollback", nil).Problem(http.StatusConflict, "invalid_state")
	for n := 2; n <= 12; n++ {
		require.EqualValues(t, n, c.Patch(oneFunction(made), object{"source": source(n)}).Object()["revision"])
	}
	require.Equal(t, []any{12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0},
		c.Items(oneFunction(made)+"/revisions", "revision"))
	revisionsInPages(t, c, oneFunction(made)+"/revisions")
	back := c.Post(oneFunction(made)+"/rollback", nil).Object()
	require.Equal(t, source(11), back["source"])
	require.Equal(t, 13.0, back["revision"])
	require.Equal(t, 11.0, invoke(c, made, nil)["output"])
	require.Equal(t, source(5), c.Post(oneFunction(made)+"/rollback", object{"revision": 5}).Object()["source"])
	c.Post(oneFunction(made)+"/rollback", object{"revision": 3}).Problem(http.StatusConflict, "invalid_state")
	require.Equal(t, "0", c.Patch(oneFunction(made), object{"status": "0"}).Object()["status"])

	entry := c.Patch(oneFunction(made), object{"entry": "other"}).Object()
	require.Equal(t, 15.0, entry["revision"], "another entry makes a new revision")
	require.Equal(t, "main", c.Post(oneFunction(made)+"/rollback", nil).Object()["entry"])
}

// revisionsInPages: the list of revisions 3…12 is one like all others.
func revisionsInPages(t *testing.T, c *testkit.Client, path string) {
	t.Helper()
	page := c.Get(path + "?page_size=4&page_num=2").Object()
	require.Equal(t, 10.0, page["total"])
	require.Equal(t, 2.0, page["page_num"])
	require.Equal(t, 4.0, page["page_size"])
	require.Equal(t, []any{8.0, 7.0, 6.0, 5.0}, revisionsOf(page))
	var seen []any
	for next := ""; ; {
		page := c.Get(path + "?page_size=4&count=false&page_sort=revision&page_token=" + next).Object()
		require.NotContains(t, page, "total")
		seen = append(seen, revisionsOf(page)...)
		more, ok := page["next_page_token"].(string)
		if !ok {
			break
		}
		next = more
		c.Get(path+"?page_token="+next).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_token")
	}
	require.Equal(t, []any{3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}, seen)
	require.Empty(t, c.Get(path + "?page_num=9").Object()["items"])
	for _, query := range []string{"page_size=201", "page_num=0", "page_sort=code", "page_token=x"} {
		c.Get(path+"?"+query).Problem(http.StatusBadRequest, "invalid_parameters",
			"query."+strings.Split(query, "=")[0])
	}
}

func revisionsOf(page object) (all []any) {
	for _, item := range page["items"].([]any) {
		all = append(all, item.(object)["revision"])
	}
	return all
}

// An invocation tells who called which function and how it ended, and nothing of what it was given or returned.
func TestInvocationsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	made := c.Post(functionsPath, javascript(`function main(i) { if (i.no) throw "sesame"; return "sesame" }`)).Object()
	invoke(c, made, object{"secret": "sesame"})
	invoke(c, made, object{"no": true})
	c.Post(oneFunction(made)+"/invoke?dry_run=true", nil).OK(nil)
	c.Patch(oneFunction(made), object{"status": "0"}).OK(nil)
	c.Post(oneFunction(made)+"/invoke", nil).Problem(http.StatusConflict, "invalid_state")
	c.Delete(oneFunction(made), nil).OK(nil)
	var outcomes []any
	s.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.function_invocation.created" {
			var data struct{ Record object }
			require.NoError(t, json.Unmarshal(e.Data, &data))
			require.Equal(t, made["id"], data.Record["function_id"])
			require.Equal(t, "f", data.Record["code"])
			require.NotEmpty(t, e.Actor)
			require.NotEqual(t, "system", e.Actor)
			require.NotContains(t, string(e.JSON), "sesame")
			outcomes = append(outcomes, data.Record["outcome"])
		}
		return e.Type == "idp.function.deleted"
	})
	require.ElementsMatch(t, []any{"succeeded", "failed"}, outcomes)
}

// module is the smallest WASI command: its _start does nothing.
const module = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00" +
	"\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

func TestModules(t *testing.T) {
	t.Parallel()
	c := functionsOf(start(t), "acme")
	wasm := object{"code": "w", "name": "W", "runtime": "wasm"}
	made := c.Post(functionsPath, wasm).Object()
	require.Equal(t, 0.0, made["revision"])
	c.Post(oneFunction(made)+"/invoke", nil).Problem(http.StatusConflict, "invalid_state")
	binary := c.With("Content-Type", "application/wasm")
	binary.Do(http.MethodPut, oneFunction(made)+"/module", "not a module").
		Problem(http.StatusBadRequest, "invalid_parameters", "body.module_base64")
	binary.Do(http.MethodPut, oneFunction(made)+"/module", strings.Repeat("x", 4<<20+1)).
		Problem(http.StatusRequestEntityTooLarge, "too_large")
	changed := binary.Do(http.MethodPut, oneFunction(made)+"/module", module).Object()
	require.Equal(t, 1.0, changed["revision"])
	require.Equal(t, "_start", changed["entry"])
	answer := invoke(c, made, nil)
	require.Equal(t, "succeeded", answer["outcome"], answer)

	wasm["code"], wasm["module_base64"] = "x", changed["module_base64"]
	other := c.Post(functionsPath, wasm).Object()
	require.Equal(t, "succeeded", invoke(c, other, nil)["outcome"])
	c.Do(http.MethodPut, oneFunction(other), javascript("function main() {}", object{"code": "x"})).OK(nil)
	require.Equal(t, "succeeded", invoke(c, other, nil)["outcome"], "it is JavaScript now")
}

func TestMaxFunctions(t *testing.T) {
	t.Parallel()
	c := functionsOf(start(t), "acme")
	for n := range 200 {
		c.Post(functionsPath, object{"code": fmt.Sprint("w", n), "name": "W", "runtime": "wasm"}).OK(nil)
	}
	c.Post(functionsPath, javascript("x")).Problem(http.StatusConflict, "invalid_state")
}

// A job calls a function with its payload. The run has the output, or the reason of the failure.
func TestJobsRunFunctions(t *testing.T) {
	t.Parallel()
	s := start(t)
	functions, jobs := functionsOf(s, "acme"), jobsOfFunctions(s, "acme")
	made := functions.Post(functionsPath, javascript(`function main(input) {
		if (input.fail) throw new Error("asked to")
		return {doubled: 2 * input.n}
	}`)).Object()
	for name, row := range map[string]struct {
		payload object
		state   string
		member  string
		want    any
	}{
		"succeeds": {object{"n": 21}, "succeeded", "result", object{"doubled": 42.0}},
		"fails":    {object{"fail": true}, "failed", "error", "failed: Error: asked to"},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobs.Post(jobsPath, object{
				"code": name, "name": name, "schedule": object{"type": "manual"},
				"target": object{"type": "function", "function_id": made["id"], "payload": row.payload},
			}).Object()
			path := jobsPath + "/" + job["id"].(string)
			jobs.Post(path+"/trigger", nil).OK(nil)
			wait.Until(t, func() bool {
				all := subJobs(jobs, path)
				return len(all) == 1 && all[0]["state"] == row.state
			})
			require.Equal(t, row.want, subJobs(jobs, path)[0][row.member])
		})
	}
	entry := functions.Get(oneFunction(made) + "/logs").Object()["items"].([]any)[0].(object)
	require.Equal(t, "job", entry["cause"])
}

// A function that is the target of a job cannot be deleted, and a job's function must exist.
func TestFunctionsThatJobsRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	functions, jobs := functionsOf(s, "acme"), jobsOfFunctions(s, "acme")
	made := functions.Post(functionsPath, javascript(`function main() {}`)).Object()
	job := func(code string, function any) object {
		return object{"code": code, "name": code, "schedule": object{"type": "manual"},
			"target": object{"type": "function", "function_id": function}}
	}
	var paths []string
	for _, code := range []string{"a", "b"} {
		paths = append(paths, jobsPath+"/"+jobs.Post(jobsPath, job(code, made["id"])).ID())
	}
	problem := functions.Delete(oneFunction(made), nil)
	problem.Problem(http.StatusConflict, "in_use", "jobs")
	require.Contains(t, string(problem.Body), `"count":2`)
	functions.Get(oneFunction(made)).OK(nil)
	jobs.Delete(paths[0], nil).OK(nil)
	functions.Delete(oneFunction(made), nil).Problem(http.StatusConflict, "in_use", "jobs")
	jobs.Patch(paths[1], object{"target": object{"type": "nats", "subject": "x", "function_id": nil}}).OK(nil)
	functions.Delete(oneFunction(made), nil).OK(nil)

	for _, c := range []*testkit.Client{jobs, jobsOfFunctions(s, "globex")} {
		c.Post(jobsPath, job("c", made["id"])).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.target.function_id")
	}
	jobs.Patch(paths[1], object{"target": object{"type": "function", "subject": nil, "function_id": "1"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.target.function_id")
}

// A function is deleted while a job is created with it as its target. Exactly one of the two succeeds.
func TestAFunctionIsDeletedWhileAJobIsCreated(t *testing.T) {
	t.Parallel()
	s := start(t)
	functions, jobs := functionsOf(s, "acme"), jobsOfFunctions(s, "acme")
	for i := range 20 {
		draft := javascript(`function main() {}`, object{"code": fmt.Sprint("f", i)})
		made := functions.Post(functionsPath, draft).Object()
		var created, deleted *testkit.Answer
		var both sync.WaitGroup
		both.Go(func() {
			created = jobs.Post(jobsPath, object{"code": fmt.Sprint("j", i), "name": "J",
				"schedule": object{"type": "manual"},
				"target":   object{"type": "function", "function_id": made["id"]}})
		})
		both.Go(func() { deleted = functions.Delete(oneFunction(made), nil) })
		both.Wait()
		require.NotEqual(t, created.Status == http.StatusOK, deleted.Status == http.StatusOK,
			"%s\n%s", created.Body, deleted.Body)
	}
}

// BenchmarkInvoke measures calls of a function that does nothing, from the request to the answer.
func BenchmarkInvoke(b *testing.B) {
	c := functionsOf(start(b), "acme")
	made := c.Post(functionsPath, javascript(`function main() {}`)).Object()
	wasm := c.With("Content-Type", "application/wasm").Do(http.MethodPut, functionsPath+"/"+
		c.Post(functionsPath, object{"code": "w", "name": "W", "runtime": "wasm"}).ID()+"/module", module).Object()
	for name, f := range map[string]object{"javascript": made, "wasm": wasm} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			require.Equal(b, "succeeded", invoke(c, f, nil)["outcome"])
			for b.Loop() {
				began := time.Now()
				answer := c.Post(oneFunction(f)+"/invoke", object{"input": nil})
				took = append(took, time.Since(began))
				require.Equal(b, http.StatusOK, answer.Status)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// Who may write jobs, but not functions, does not set what a function is run with. Other changes of such a job are
// possible, and so is a target of another type.
func TestJobsOfFunctionsNeedTheirScope(t *testing.T) {
	t.Parallel()
	s := start(t)
	made := functionsOf(s, "acme").Post(functionsPath, javascript("x", nil)).Object()
	both := s.As("acme", auth.JobsRead, auth.JobsWrite, auth.FunctionsWrite)
	c := s.As("acme", auth.JobsRead, auth.JobsWrite)
	draft := func(code string, target object) object {
		return object{"code": code, "name": "Job", "schedule": object{"type": "manual"}, "target": target}
	}
	target := object{"type": "function", "function_id": made["id"], "payload": object{"a": 1, "b": 2}}
	elsewhere := object{"type": "nats", "subject": "x"}
	c.Post(jobsPath, draft("refused", target)).Problem(http.StatusForbidden, "forbidden")
	mine := jobsPath + "/" + both.Post(jobsPath, draft("mine", target)).ID()
	other := jobsPath + "/" + c.Post(jobsPath, draft("other", elsewhere)).ID()

	c.Do(http.MethodPut, other, draft("other", target)).Problem(http.StatusForbidden, "forbidden")
	c.Patch(other, object{"target": object{"type": "function", "subject": nil, "function_id": made["id"]}}).
		Problem(http.StatusForbidden, "forbidden")
	c.Patch(mine, object{"target": object{"payload": object{"a": 2}}}).Problem(http.StatusForbidden, "forbidden")
	c.Post(mine+"/trigger", object{"payload": object{"a": 2}}).Problem(http.StatusForbidden, "forbidden")

	c.Post(mine+"/trigger", nil).OK(nil)
	c.Do(http.MethodPut, mine, draft("renamed", object{"type": "function", "function_id": made["id"],
		"payload": object{"b": 2, "a": 1}})).OK(nil)
	both.Patch(mine, object{"target": object{"payload": object{"a": 2}}}).OK(nil)
	c.Do(http.MethodPut, mine, draft("mine", elsewhere)).OK(nil)
}

// A trigger for events that nobody publishes is refused, but what a function has keeps, and without the events service
// all are accepted.
func TestUnknownEventTypes(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := functionsOf(s, "acme")
	waits := func(code string, types ...any) object {
		return javascript("function main() {}", object{"code": code, "triggers": []any{object{"event_types": types}}})
	}
	unchecked := c.Post(functionsPath, waits("early", "user.crated")).Object()
	require.NoError(t, questions.UnknownEventTypes.Answer(s.Deps.Bus,
		func(_ context.Context, q questions.EventTypes) (questions.EventTypes, error) {
			return questions.EventTypes{Types: slices.DeleteFunc(q.Types, func(event string) bool {
				return event == "user.*"
			})}, nil
		}))
	c.Post(functionsPath, waits("late", "user.*", "user.crated")).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.triggers[0].event_types[1]")
	c.Post(functionsPath, waits("late", "user.*")).OK(nil)
	path := functionsPath + "/" + unchecked["id"].(string)
	c.Patch(path, object{"triggers": []any{object{"event_types": []any{"user.crated", "user.*"}}}}).OK(nil)
	c.Patch(path, object{"triggers": []any{object{"event_types": []any{"users.*"}}}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.triggers[0].event_types[0]")
}
