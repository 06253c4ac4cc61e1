package automation_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// The events of each change are a format that others rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	began := s.Clock.Now()
	tick := func() { s.Clock.Advance(time.Second) }
	emitted := objectEvents(s, tick) + jobEvents(s, tick) + componentEvents(s, tick) + functionEvents(s, tick)
	events := s.Events(emitted) // the order of events about different records may vary
	slices.SortStableFunc(events, func(a, b stream.Event) int {
		return cmp.Or(a.Time.Std().Compare(b.Time.Std()), cmp.Compare(a.Source, b.Source))
	})
	testkit.GoldenEvents(t, began, events,
		"kv_bucket.created", "kv_bucket.updated", "kv_bucket.deleted",
		"kv_object.created", "kv_object.updated", "kv_object.expired", "kv_object.deleted",
		"job.created", "job.updated", "job.suspended", "job.resumed", "job.finished", "job.deleted",
		"sub_job.created", "sub_job.updated", "sub_job.finished",
		"component.created", "component.updated", "component.published", "component.deleted",
		"function.created", "function.updated", "function.deleted", "function_invocation.created",
	)
	testkit.EventTypes(t, s, "automation", began, events, map[string]string{
		"kv_bucket": "KVBucket", "kv_object": "KVObject", "job": "Job", "sub_job": "SubJob",
		"component": "Component", "function": "Function",
	})
}

// objectEvents causes events of each type about objects and buckets, and returns their number.
func objectEvents(s *testkit.Service, tick func()) int {
	c := kvOf(s, "acme")
	put(c, at("console/theme"), object{"value": object{"dark": true}}).OK(nil)
	tick()
	put(c.With("X-Payload-Origin", "console"), at("console/theme"), object{"value": object{"dark": false}}).OK(nil)
	tick()
	put(c, boxPath, object{"history": 3}).OK(nil)
	tick()
	put(c, at("short"), object{"value": "confidential", "ttl_seconds": 1}).OK(nil)
	tick()
	s.RunTask("expire objects")
	tick()
	c.Delete(at("console/theme"), nil).OK(nil)
	tick()
	c.Delete(boxPath, nil).OK(nil)
	tick()
	return 8
}

// jobEvents causes events of each type about jobs and their runs, and returns their number.
func jobEvents(s *testkit.Service, tick func()) int {
	c := jobsOf(s, "acme")
	path := jobsPath + "/" + c.Post(jobsPath, object{
		"code": "report", "name": "Report", "schedule": object{"type": "interval", "every_seconds": 3600},
		"target": object{"type": "nats", "subject": "reports", "payload": object{"full": true}},
	}).ID()
	tick()
	c.Post(path+"/suspend", nil).OK(nil)
	tick()
	c.Post(path+"/resume", nil).OK(nil)
	tick()
	soon := s.Clock.Now().Add(time.Second)
	c.Patch(path, object{"schedule": object{"type": "once", "every_seconds": nil, "at": soon},
		"retry": object{"max": 1}}).OK(nil)
	tick()
	s.RunTask("fire jobs")
	s.RunTask("run jobs") // no worker listens to the subject, so both attempts fail
	tick()
	c.Delete(path, nil).OK(nil)
	tick()
	return 9
}

// componentEvents causes events of each type about components, and returns their number.
func componentEvents(s *testkit.Service, tick func()) int {
	c := s.As("acme", auth.FunctionsRead, auth.FunctionsWrite)
	path := componentsPath + "/" + c.Post(componentsPath, banner(nil)).ID()
	tick()
	c.Patch(path, object{"config": object{"title": "Hello"}}).OK(nil)
	tick()
	c.Post(path+"/publish", nil).OK(nil)
	tick()
	c.Delete(path, nil).OK(nil)
	return 4
}

// functionEvents causes events of each type about functions, and returns their number.
func functionEvents(s *testkit.Service, tick func()) int {
	c := functionsOf(s, "acme")
	made := c.Post(functionsPath, javascript("function main() {}", object{"env": object{"KEY": "hidden"}})).Object()
	tick()
	c.Patch(oneFunction(made), object{"source": "function main() { return 1 }"}).OK(nil)
	tick()
	invoke(c, made, object{"confidential": true})
	tick()
	c.Delete(oneFunction(made), nil).OK(nil)
	tick()
	return 4
}
