package automation_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	hook := newReceiver(t, answering(http.StatusAccepted, ""))
	job := func(c *testkit.Client, n int) string {
		return jobsPath + "/" + c.Post(jobsPath, object{
			"code": fmt.Sprint("j", n), "name": "J", "timeout_seconds": 3600, "schedule": object{"type": "manual"},
			"target": object{"type": "webhook", "url": hook.URL},
		}).ID()
	}
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			functionsPath + "/{id}": func(c *testkit.Client, n int) string {
				return oneFunction(c.Post(functionsPath, javascript("function main() {}",
					object{"code": fmt.Sprint("f", n)})).Object())
			},
			"put-function-module": func(c *testkit.Client, n int) string {
				made := c.Post(functionsPath, object{"code": fmt.Sprint("w", n), "name": "W", "runtime": "wasm"})
				return oneFunction(made.Object())
			},
			componentsPath + "/{id}": func(c *testkit.Client, n int) string {
				return componentsPath + "/" + c.Post(componentsPath, banner(object{"code": fmt.Sprint("c", n)})).ID()
			},
			jobsPath + "/{id}": job,
			jobsPath + "/{id}/sub-jobs/{sid}": func(c *testkit.Client, n int) string {
				at := job(c, n)
				sub := at + "/sub-jobs/" + c.Post(at+"/trigger", nil).ID()
				s.RunTask("run jobs") // the hook accepts the call: from now on only requests change the sub-job
				return sub
			},
			bucketsPath + "/{bucket}": func(c *testkit.Client, n int) string {
				put(c, bucketsPath+fmt.Sprint("/b", n), object{}).OK(nil)
				return bucketsPath + fmt.Sprint("/b", n)
			},
			bucketsPath + "/{bucket}/objects/{key}": func(c *testkit.Client, n int) string {
				put(c, at(fmt.Sprint("k", n)), object{"value": 1}).OK(nil)
				return at(fmt.Sprint("k", n))
			},
		},
		Bodies: map[string]any{"put-function-module": module},
	})
}
