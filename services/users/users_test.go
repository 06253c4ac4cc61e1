package users_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/users"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// cheap makes hashes that cost next to nothing.
func cheap() users.Config {
	c := users.DefaultConfig()
	c.PasswordMemory, c.PasswordIterations = 64, 1
	return c
}

func start(t testing.TB) *testkit.Service { return testkit.Start(t, users.Spec(cheap())) }

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/users",
		Body:       func(n int) any { return map[string]any{"username": fmt.Sprintf("user-%d", n)} },
		Change:     map[string]any{"display_name": "李伟"},
		Read:       auth.UsersRead, Write: auth.UsersWrite, Unrelated: auth.KVRead,
	})
}
