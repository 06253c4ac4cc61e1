package applications_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/applications"
)

func TestMain(m *testing.M) { basic.Main(m) }

// object is a JSON object.
type object = map[string]any

// alone starts a service whose questions nobody answers.
func alone(t testing.TB) *testkit.Service {
	return testkit.Start(t, applications.Spec(applications.DefaultConfig()))
}

// start starts a service beside others that know users and connections with ids below 1000, and no grants.
func start(t testing.TB) *testkit.Service {
	s := alone(t)
	answers(t, s)
	return s
}

// answers are the answers of those services.
func answers(t testing.TB, s *testkit.Service) {
	t.Helper()
	grants(t, s, 0)
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "users", "existing",
		func(_ context.Context, q idsQuestion) (object, error) {
			return object{"ids": q.existing()}, nil
		}))
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "identity-sources", "existing",
		func(_ context.Context, q idsQuestion) (object, error) {
			list := []object{}
			for _, id := range q.existing() {
				list = append(list, object{"id": id, "provider_code": "provider-" + id})
			}
			return object{"connections": list}, nil
		}))
}

type idsQuestion struct {
	IDs []string `json:"ids"`
}

func (q idsQuestion) existing() []string {
	list := []string{}
	for _, id := range q.IDs {
		if len(id) <= 3 && strings.Trim(id, "0123456789") == "" {
			list = append(list, id)
		}
	}
	return list
}

// grants answers for the permissions service.
func grants(t testing.TB, s *testkit.Service, count int) {
	t.Helper()
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "permissions", "grants-of-application",
		func(context.Context, object) (object, error) {
			return object{"count": count}, nil
		}))
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/applications",
		Body: func(n int) any {
			return object{"name": fmt.Sprintf("Application %d", n), "domain_sn": fmt.Sprintf("app-%d", n)}
		},
		Change: object{"descr": "Claims and receipts"},
		Faulty: object{
			"name": " ", "login_url": "/login", "logout_url": "https://acme.test/#end", "type": "2",
			"protocol_prop": object{"digest_algorithm": "md5"}, "config_prop": object{"tenant_id": "globex"},
		},
		Faults: []string{
			"body.name", "body.login_url", "body.logout_url", "body.template_id", "body.protocol_prop.digest_algorithm",
			"body.config_prop.tenant_id",
		},
		Unique: []string{"name", "domain_sn"},
		Read:   auth.ApplicationsRead, Write: auth.ApplicationsWrite, Unrelated: auth.KVRead,
		Open: []string{"create-token", "revoke-token", "introspect-token", "get-jwks",
			"get-authorization-server-metadata"},
		AnyToken: []string{"who-am-i"},
		Secrets: map[string]testkit.Secret{
			"signing_keys": {NotSent: true},
			"protocols": {NotSent: true, Make: func(c *testkit.Client) string {
				return addSAML(t, c, "With a protocol's key") + "/protocols/saml"
			}},
			"applications": {NotSent: true, Make: func(c *testkit.Client) string {
				return addSAML(t, c, "With a key")
			}},
			"accounts": {NotSent: true, Make: func(c *testkit.Client) string {
				app := addApp(t, c, "With sub-accounts")
				account := addAccount(t, c, app, "7", "li", object{"password": "form fill"})
				return path(app, "accounts", account["id"].(string))
			}},
		},
	})
}

// in returns a client of a tenant with all scopes of this service.
func in(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.ApplicationsRead, auth.ApplicationsWrite, auth.ApplicationsSecrets)
}

// acme starts a service and returns the client that most tests use.
func acme(t testing.TB) (*testkit.Service, *testkit.Client) {
	t.Helper()
	s := start(t)
	return s, in(s, "acme")
}

// addApp creates an application with a name and further members, and returns the record without client_secret.
func addApp(t testing.TB, c *testkit.Client, name string, more ...object) object {
	t.Helper()
	body := object{"name": name}
	for _, members := range more {
		maps.Copy(body, members)
	}
	app := c.Post("/v1/applications", body).Object()
	delete(app, "client_secret")
	return app
}

// path returns the path of a record, or of something below it.
func path(app object, below ...string) string {
	return strings.Join(append([]string{"/v1/applications", app["id"].(string)}, below...), "/")
}

// unchanged fails the test unless the record is as it was answered.
func unchanged(t testing.TB, c *testkit.Client, app object) {
	t.Helper()
	require.Equal(t, app, c.Get(path(app)).Object())
}

// values are the values of a member in the records of a list.
func values(t testing.TB, answer *testkit.Answer, member string) []any {
	t.Helper()
	list := []any{}
	for _, item := range answer.Object()["items"].([]any) {
		list = append(list, item.(object)[member])
	}
	return list
}
