package automation_test

import (
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	made := func(path string, more object) func(*testkit.Client, string, string) string {
		return func(c *testkit.Client, name, code string) string {
			body := object{"name": name, "code": code}
			for member, value := range more {
				body[member] = value
			}
			return c.Post(path, body).ID()
		}
	}
	for what, list := range map[string]testkit.Searched{
		"jobs": {Path: jobsPath, Make: made(jobsPath, object{
			"schedule": object{"type": "manual"}, "target": object{"type": "nats", "subject": "x"},
		})},
		"functions": {Path: functionsPath, Make: made(functionsPath, object{
			"runtime": "javascript", "source": "function main() {}",
		})},
		"components": {Path: "/v1/components", Make: made("/v1/components", object{"type": "form"})},
		"buckets": {Path: bucketsPath, NoNames: true, Make: func(c *testkit.Client, _, code string) string {
			return c.Do(http.MethodPut, bucketsPath+"/"+code, object{}).ID()
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			testkit.Searches(t, start(t).As("acme", auth.PlatformAdmin), list)
		})
	}
}
