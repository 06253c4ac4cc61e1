package users_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users"
)

func TestMain(m *testing.M) { basic.Main(m) }

// cheap is a configuration whose hashes cost next to nothing.
func cheap() users.Config {
	c := users.DefaultConfig()
	c.PasswordMemory, c.PasswordIterations = 64, 1
	return c
}

func start(t testing.TB) *testkit.Service { return startWith(t, cheap(), nil) }

// startWith starts the service among users who have scopes of the platform's API, by their ids.
func startWith(t testing.TB, c users.Config, scopes map[string]string, options ...testkit.Options) *testkit.Service {
	s := testkit.Start(t, users.Spec(c), options...)
	require.NoError(t, questions.ScopesOfUser.Answer(s.Deps.Bus,
		func(_ context.Context, q questions.HolderOfScopes) (questions.Scopes, error) {
			return questions.Scopes{Scopes: strings.Fields(scopes[q.UserID])}, nil
		}))
	return s
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/users",
		Body: func(n int) any {
			return map[string]any{
				"username": fmt.Sprintf("user-%d", n), "email": fmt.Sprintf("user-%d@acme.test", n),
				"mobile": fmt.Sprintf("+86138000000%02d", n),
			}
		},
		Change: map[string]any{"display_name": "李伟"},
		Faulty: map[string]any{"username": "a ", "email": "no-address", "mobile": "12"},
		Faults: []string{"body.username", "body.email", "body.mobile"},
		Unique: []string{"username", "email", "mobile"},
		Read:   auth.UsersRead, Write: auth.UsersWrite, Unrelated: auth.KVRead,
	})
}

// A configuration that could not work is refused at the start, not at a login.
func TestConfig(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*users.Config){
		"no failures":       func(c *users.Config) { c.LockoutFailures = 0 },
		"too many failures": func(c *users.Config) { c.LockoutFailures = 101 },
		"no window":         func(c *users.Config) { c.LockoutWithin = 0 },
		"no lock":           func(c *users.Config) { c.LockoutFor = -1 },
		"too little memory": func(c *users.Config) { c.PasswordMemory = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := users.DefaultConfig()
			spoil(&c)
			s := start(t)
			_, err := users.Spec(c).New(t.Context(), s.Deps)
			require.Error(t, err)
		})
	}
}

// object is a JSON object.
type object = map[string]any

// in returns a client of a tenant with all scopes of this service.
func in(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.UsersRead, auth.UsersWrite, auth.UsersSecrets, auth.UsersVerify, auth.OrganizationWrite)
}

// acme starts a service and returns the client that most tests use.
func acme(t testing.TB) (*testkit.Service, *testkit.Client) {
	t.Helper()
	s := start(t)
	return s, in(s, "acme")
}

// addUser creates a user with the name and further members, and returns the record.
func addUser(t testing.TB, c *testkit.Client, username string, more ...object) object {
	t.Helper()
	body := object{"username": username}
	for _, members := range more {
		for name, value := range members {
			body[name] = value
		}
	}
	return c.Post("/v1/users", body).Object()
}

// path returns the path of a record, or of something below it.
func path(user object, below ...string) string {
	p := "/v1/users/" + user["id"].(string)
	for _, segment := range below {
		p += "/" + segment
	}
	return p
}

// unchanged fails the test unless the record is as it was answered.
func unchanged(t testing.TB, c *testkit.Client, user object) {
	t.Helper()
	require.Equal(t, user, c.Get(path(user)).Object())
}
