package automation_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands limits the commands that operations send to MongoDB: all that write, and reads that are frequent.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.KVRead, auth.KVWrite, auth.JobsRead, auth.JobsWrite, auth.FunctionsRead, auth.FunctionsWrite)
	m := &made{s: s, Client: c}
	for n := range 2 { // the second time, the bucket is known
		put(c, at("k"), object{"value": n}).OK(nil)
	}
	s.CountCommands("automation", c, append(append(m.ofObjects(), m.ofJobs(t)...), m.ofFunctions()...)...)
}

// made makes the records that operations change. Its own requests are not counted.
type made struct {
	*testkit.Client
	s *testkit.Service
	n int
}

func (m *made) fresh() string { m.n++; return fmt.Sprint("new", m.n) }

// op returns an operation that m prepares: path makes its path, and body its body.
func (m *made) op(name string, most, older int, method string, path func() string, body func() any) testkit.Commands {
	return testkit.Commands{Operation: name, Most: most, Older: older, Do: func(c *testkit.Client) *testkit.Answer {
		return c.Do(method, path(), body())
	}}
}

func always[T any](v T) func() T { return func() T { return v } }

func (m *made) ofObjects() []testkit.Commands {
	newObject := func() string { key := at(m.fresh()); put(m.Client, key, object{"value": 1}).OK(nil); return key }
	newBucket := func() string {
		path := bucketsPath + "/" + m.fresh()
		put(m.Client, path, object{}).OK(nil)
		return path
	}
	put(m.Client, bucketsPath+"/other", object{}).OK(nil)
	value := func() any { return object{"value": m.fresh()} }
	nothing := always[any](nil)
	return []testkit.Commands{
		m.op("get an object", 1, 1, http.MethodGet, always(at("k")), nothing),
		m.op("a page of objects with their number", 4, 4, http.MethodGet, always(objectsPath), nothing),
		m.op("create an object", 4, 6, http.MethodPost, always(objectsPath),
			func() any { return object{"key": m.fresh(), "value": 1} }),
		m.op("put a new object", 5, 7, http.MethodPut, func() string { return at(m.fresh()) }, value),
		m.op("change an object", 4, 6, http.MethodPut, always(at("k")), value),
		m.op("delete an object", 4, 6, http.MethodDelete, newObject, nothing),
		m.op("create a bucket", 6, 10, http.MethodPut, func() string { return bucketsPath + "/" + m.fresh() },
			always[any](object{})),
		m.op("change a bucket", 9, 11, http.MethodPut, always(bucketsPath+"/other"),
			func() any { return object{"description": m.fresh()} }),
		m.op("delete a bucket", 16, 21, http.MethodDelete, newBucket, nothing),
	}
}

func (m *made) ofJobs(t *testing.T) []testkit.Commands {
	body := func() any {
		return object{"code": m.fresh(), "name": "Job", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": "x"}}
	}
	newJob := func() string { return jobsPath + "/" + m.Post(jobsPath, body()).ID() }
	after := func(path string, more string) string { m.Post(path+more, nil).OK(nil); return path }
	there := newJob()
	_, run := running(t, m.s, m.Client, nil)
	parts := run[:len(run)-len(idIn(run))-1]
	newPart := func() string {
		return parts + "/" + m.Post(parts, object{"parent_id": idIn(run), "name": "Part"}).ID()
	}
	nothing, job := always[any](nil), always(there)
	return []testkit.Commands{
		m.op("create a job", 5, 10, http.MethodPost, always(jobsPath), body),
		m.op("replace a job", 5, 8, http.MethodPut, job, body),
		m.op("change a job", 5, 8, http.MethodPatch, job, func() any { return object{"name": m.fresh()} }),
		m.op("suspend a job", 5, 8, http.MethodPost, func() string { return newJob() + "/suspend" }, nothing),
		m.op("resume a job", 5, 8, http.MethodPost,
			func() string { return after(newJob(), "/suspend") + "/resume" }, nothing),
		m.op("trigger a job", 6, 13, http.MethodPost, func() string { return newJob() + "/trigger" }, nothing),
		m.op("reserve a job's id", 4, 6, http.MethodPost, always(jobsPath+"/pre-created-id"), nothing),
		m.op("delete a job", 9, 13, http.MethodDelete, newJob, nothing),
		m.op("split a part off a run", 6, 10, http.MethodPost, always(parts),
			func() any { return object{"parent_id": idIn(run), "name": "Part"} }),
		m.op("report progress", 5, 7, http.MethodPatch, newPart, always[any](object{"progress": 5})),
		m.op("add log lines", 5, 7, http.MethodPost, always(run+"/logs"),
			always[any](object{"lines": []any{object{"message": "read"}}})),
		m.op("cancel a part", 8, 9, http.MethodPost, func() string { return newPart() + "/cancel" }, nothing),
		m.op("report a result", 8, 9, http.MethodPost, func() string { return newPart() + "/result" },
			always[any](object{"state": "succeeded"})),
	}
}

func (m *made) ofFunctions() []testkit.Commands {
	body := func() any { return javascript("function main() {}", object{"code": m.fresh()}) }
	newFunction := func() string { return functionsPath + "/" + m.Post(functionsPath, body()).ID() }
	source := func() any { return object{"source": "function main() { return '" + m.fresh() + "' }"} }
	changed := func() string { path := newFunction(); m.Patch(path, source()).OK(nil); return path }
	component := func() any { return banner(object{"code": m.fresh()}) }
	newComponent := func() string { return componentsPath + "/" + m.Post(componentsPath, component()).ID() }
	nothing, f, one := always[any](nil), always(newFunction()), always(newComponent())
	return []testkit.Commands{
		m.op("create a function", 5, 11, http.MethodPost, always(functionsPath), body),
		m.op("replace a function", 7, 11, http.MethodPut, f, body),
		m.op("change a function", 7, 11, http.MethodPatch, f, func() any { return object{"name": m.fresh()} }),
		m.op("change a function's source", 6, 10, http.MethodPatch, f, source),
		m.op("roll a function back", 6, 11, http.MethodPost, func() string { return changed() + "/rollback" }, nothing),
		m.op("invoke a function", 4, 4, http.MethodPost, always(f()+"/invoke"), nothing),
		m.op("delete a function", 10, 18, http.MethodDelete, newFunction, nothing),
		m.op("create a component", 4, 7, http.MethodPost, always(componentsPath), component),
		m.op("replace a component", 5, 6, http.MethodPut, one, component),
		m.op("change a component", 5, 6, http.MethodPatch, one, func() any { return object{"name": m.fresh()} }),
		m.op("publish a component", 7, 10, http.MethodPost,
			func() string { return newComponent() + "/publish" }, nothing),
		m.op("delete a component", 5, 6, http.MethodDelete, newComponent, nothing),
	}
}
