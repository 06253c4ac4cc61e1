package automation_test

import (
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "automation",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		c := s.As("acme", auth.PlatformAdmin)
		for n := range 2 { // the second time, the bucket is known
			put(c, at("k"), object{"value": n}).OK(nil)
		}
		return s, c
	},
	Commands: func(t testing.TB, s *testkit.Service, c *testkit.Client) []testkit.Commands {
		p := &prepared{t, s, c, testkit.Names()}
		return append(append(p.ofObjects(), p.ofJobs()...), p.ofFunctions()...)
	},
	Changes: changes,
}

func TestCommands(t *testing.T) { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)   { writes.TestAtOnce(t) }

// prepared makes the records that operations change. Its own requests are not counted.
type prepared struct {
	t     testing.TB
	s     *testkit.Service
	c     *testkit.Client
	fresh func() string
}

func (p *prepared) ofObjects() []testkit.Commands {
	newObject := func() string { key := at(p.fresh()); put(p.c, key, object{"value": 1}).OK(nil); return key }
	newBucket := func() string {
		path := bucketsPath + "/" + p.fresh()
		put(p.c, path, object{}).OK(nil)
		return path
	}
	put(p.c, bucketsPath+"/other", object{}).OK(nil)
	value := func() any { return object{"value": p.fresh()} }
	return []testkit.Commands{
		testkit.Takes("get an object", http.MethodGet, at("k"), nil),
		testkit.Takes("a page of objects with their number", http.MethodGet, objectsPath, nil),
		testkit.Takes("create an object", http.MethodPost, objectsPath,
			func() any { return object{"key": p.fresh(), "value": 1} }),
		testkit.Takes("put a new object", http.MethodPut, func() string { return at(p.fresh()) }, value),
		testkit.Takes("change an object", http.MethodPut, at("k"), value),
		testkit.Takes("delete an object", http.MethodDelete, newObject, nil),
		testkit.Takes("find buckets by a keyword", http.MethodGet, bucketsPath+"?keyword=the", nil),
		testkit.Takes("create a bucket", http.MethodPut, func() string { return bucketsPath + "/" + p.fresh() },
			object{}),
		testkit.Takes("change a bucket", http.MethodPut, bucketsPath+"/other",
			func() any { return object{"description": p.fresh()} }),
		testkit.Takes("delete a bucket", http.MethodDelete, newBucket, nil),
	}
}

func (p *prepared) ofJobs() []testkit.Commands {
	body := func() any {
		return object{"code": p.fresh(), "name": "Job", "schedule": object{"type": "manual"},
			"target": object{"type": "nats", "subject": "x"}}
	}
	newJob := testkit.Path(func() string { return jobsPath + "/" + p.c.Post(jobsPath, body()).ID() })
	there := newJob()
	several := func(more string) func() any {
		return func() any {
			ids := make([]string, 100)
			for i := range ids {
				path := newJob()
				if ids[i] = idIn(path); more != "" {
					p.c.Post(path+more, nil).OK(nil)
				}
			}
			return object{"ids": ids}
		}
	}
	_, run := running(p.t, p.s, p.c, nil)
	parts := run[:len(run)-len(idIn(run))-1]
	newPart := testkit.Path(func() string {
		return parts + "/" + p.c.Post(parts, object{"parent_id": idIn(run), "name": "Part"}).ID()
	})
	return []testkit.Commands{
		testkit.Takes("find jobs by a keyword", http.MethodGet, jobsPath+"?keyword=job", nil),
		testkit.Takes("create a job", http.MethodPost, jobsPath, body),
		testkit.Takes("replace a job", http.MethodPut, there, body),
		testkit.Takes("change a job", http.MethodPatch, there, func() any { return object{"name": p.fresh()} }),
		testkit.Takes("suspend a job", http.MethodPost, newJob.Below("/suspend"), nil),
		testkit.Takes("resume a job", http.MethodPost, newJob.After(p.c, "/suspend").Below("/resume"), nil),
		testkit.Takes("trigger a job", http.MethodPost, newJob.Below("/trigger"), nil),
		testkit.Takes("reserve a job's id", http.MethodPost, jobsPath+"/pre-created-id", nil),
		testkit.Takes("delete a job", http.MethodDelete, newJob, nil),
		testkit.Takes("suspend 100 jobs", http.MethodPost, "/v1/batch/jobs-suspend", several("")),
		testkit.Takes("resume 100 jobs", http.MethodPost, "/v1/batch/jobs-resume", several("/suspend")),
		testkit.Takes("delete 100 jobs", http.MethodDelete, "/v1/batch/jobs", several("")),
		testkit.Takes("split a part off a run", http.MethodPost, parts,
			func() any { return object{"parent_id": idIn(run), "name": "Part"} }),
		testkit.Takes("report progress", http.MethodPatch, newPart, object{"progress": 5}),
		testkit.Takes("add log lines", http.MethodPost, run+"/logs",
			object{"lines": []any{object{"message": "read"}}}),
		testkit.Takes("cancel a part", http.MethodPost, newPart.Below("/cancel"), nil),
		testkit.Takes("report a result", http.MethodPost, newPart.Below("/result"),
			object{"state": "succeeded"}),
	}
}

func (p *prepared) ofFunctions() []testkit.Commands {
	body := func() any { return javascript("function main() {}", object{"code": p.fresh()}) }
	newFunction := func() string { return functionsPath + "/" + p.c.Post(functionsPath, body()).ID() }
	source := func() any { return object{"source": "function main() { return '" + p.fresh() + "' }"} }
	changed := func() string { path := newFunction(); p.c.Patch(path, source()).OK(nil); return path }
	component := func() any { return banner(object{"code": p.fresh()}) }
	newComponent := testkit.Path(func() string {
		return componentsPath + "/" + p.c.Post(componentsPath, component()).ID()
	})
	f, one := newFunction(), newComponent()
	return []testkit.Commands{
		testkit.Takes("find functions by a keyword", http.MethodGet, functionsPath+"?keyword=f", nil),
		testkit.Takes("find components by a keyword", http.MethodGet, "/v1/components?keyword=c", nil),
		testkit.Takes("create a function", http.MethodPost, functionsPath, body),
		testkit.Takes("replace a function", http.MethodPut, f, body),
		testkit.Takes("change a function", http.MethodPatch, f, func() any { return object{"name": p.fresh()} }),
		testkit.Takes("change a function's source", http.MethodPatch, f, source),
		testkit.Takes("roll a function back", http.MethodPost, func() string { return changed() + "/rollback" }, nil),
		{Operation: "upload a module", Do: func(c *testkit.Client) *testkit.Answer {
			made := p.c.Post(functionsPath, object{"code": p.fresh(), "name": "W", "runtime": "wasm"}).Object()
			return c.With("Content-Type", "application/wasm").Do(http.MethodPut, oneFunction(made)+"/module", module)
		}},
		testkit.Takes("invoke a function", http.MethodPost, f+"/invoke", nil),
		testkit.Takes("delete a function", http.MethodDelete, newFunction, nil),
		testkit.Takes("create a component", http.MethodPost, componentsPath, component),
		testkit.Takes("replace a component", http.MethodPut, one, component),
		testkit.Takes("change a component", http.MethodPatch, one, func() any { return object{"name": p.fresh()} }),
		testkit.Takes("publish a component", http.MethodPost, newComponent.Below("/publish"), nil),
		testkit.Takes("delete a component", http.MethodDelete, newComponent, nil),
	}
}
