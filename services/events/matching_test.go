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
		},
	})
}
