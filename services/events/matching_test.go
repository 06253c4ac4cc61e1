package events_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			subscriptionsPath + "/{id}": func(c *testkit.Client, n int) string {
				return subscriptionsPath + "/" + c.Post(subscriptionsPath,
					hook(fmt.Sprint("S", n), "https://hr.acme.test/events", object{"status": "0"})).ID()
			},
			deadLettersPath + "/{id}": func(c *testkit.Client, n int) string {
				park(t, s, fmt.Sprint("things-", n), "7")
				letters := c.Get(deadLettersPath + fmt.Sprint("?consumer=things-", n)).Object()["items"].([]any)
				return deadLettersPath + "/" + id(letters[0].(object))
			},
		},
	})
}
