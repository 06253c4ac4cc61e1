package automation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// TestCommands limits the commands that operations send to MongoDB.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.KVRead, auth.KVWrite, auth.JobsRead, auth.JobsWrite)
	put(c, at("k"), object{"value": 1}).OK(nil)
	job := jobsPath + "/" + c.Post(jobsPath, object{"code": "there", "name": "Job",
		"schedule": object{"type": "manual"}, "target": object{"type": "nats", "subject": "x"}, "status": "1"}).ID()
	n := 0
	fresh := func() string { n++; return fmt.Sprint("new", n) }
	require.NotEmpty(t, job)
	s.CountCommands("automation", c,
		testkit.Commands{Operation: "get an object", Most: 1, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Get(at("k"))
		}},
		testkit.Commands{Operation: "create an object", Most: 6, Older: 8, Do: func(c *testkit.Client) *testkit.Answer {
			return put(c, at(fresh()), object{"value": 1})
		}},
		testkit.Commands{Operation: "change an object", Most: 6, Do: func(c *testkit.Client) *testkit.Answer {
			return put(c, at("k"), object{"value": fresh()})
		}},
		testkit.Commands{Operation: "a page of objects with their number", Most: 4,
			Do: func(c *testkit.Client) *testkit.Answer { return c.Get(objectsPath) }},
		testkit.Commands{Operation: "create a job", Most: 5, Older: 9, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Post(jobsPath, object{"code": fresh(), "name": "Job", "schedule": object{"type": "manual"},
				"target": object{"type": "nats", "subject": "x"}})
		}},
		testkit.Commands{Operation: "change a job", Most: 5, Older: 7, Do: func(c *testkit.Client) *testkit.Answer {
			return c.Patch(job, object{"name": fresh()})
		}},
	)
}
