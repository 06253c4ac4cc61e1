package events_test

import (
	"testing"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	testkit.Searches(t, in(start(t), "acme"), testkit.Searched{
		Path: subscriptionsPath, NoCodes: true, Make: func(c *testkit.Client, name, _ string) string {
			return c.Post(subscriptionsPath, hook(name, "https://hr.acme.test", object{"status": "0"})).ID()
		},
	})
}
