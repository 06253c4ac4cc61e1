package provisioning_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/provisioning"
)

// object is a JSON object.
type object = map[string]any

const (
	connectionsPath = "/v1/provisioning/connections"
	usersPath       = "/scim/v2/Users"
	groupsPath      = "/scim/v2/Groups"
	scimType        = "application/scim+json"
)

func TestMain(m *testing.M) { basic.Main(m) }

func start(t testing.TB) *testkit.Service { return testkit.Start(t, provisioning.Spec()) }

// client is a SCIM client of a connection.
type client struct {
	*testkit.Client
	t          testing.TB
	service    *testkit.Service
	world      *world
	connection object
}

func (c *client) admin() *testkit.Client {
	return c.service.As("acme", auth.ProvisioningRead, auth.ProvisioningWrite, auth.UsersWrite, auth.UsersSecrets,
		auth.OrganizationWrite)
}

// connect starts the service with others in its world, and a connection.
func connect(t testing.TB, more object) *client {
	s := start(t)
	w := newWorld(t, s)
	return another(t, s, w, "okta", more)
}

// another adds a connection to a service.
func another(t testing.TB, s *testkit.Service, w *world, name string, more object) *client {
	body := object{"name": name, "object_code": name}
	for member, value := range more {
		body[member] = value
	}
	c := &client{t: t, service: s, world: w}
	c.connection = c.admin().Post(connectionsPath, body).Object()
	token := c.admin().Post(c.path("/tokens"), object{"name": "test"}).Object()["token"].(string)
	require.True(t, strings.HasPrefix(token, "scim_"))
	c.Client = s.Stranger().With("Authorization", "Bearer "+token).With("Content-Type", scimType)
	return c
}

func (c *client) path(below string) string {
	return connectionsPath + "/" + c.connection["id"].(string) + below
}

// want sends a request and checks the answer's status. It returns the body as an object, nil if there is none.
func (c *client) want(status int, method, path string, body any) object {
	c.t.Helper()
	a := c.Do(method, path, body)
	require.Equal(c.t, status, a.Status, "%s %s: %s", method, path, a.Body)
	if len(a.Body) == 0 {
		return nil
	}
	require.Equal(c.t, scimType, a.Header.Get("Content-Type"))
	var o object
	a.Status = http.StatusOK
	a.OK(&o)
	return o
}

// fault expects an error with a scimType.
func (c *client) fault(status int, scimType, method, path string, body any) object {
	c.t.Helper()
	o := c.want(status, method, path, body)
	require.Equal(c.t, []any{"urn:ietf:params:scim:api:messages:2.0:Error"}, o["schemas"])
	require.Equal(c.t, fmt.Sprint(status), o["status"])
	if scimType == "" {
		require.NotContains(c.t, o, "scimType")
	} else {
		require.Equal(c.t, scimType, o["scimType"], "%v", o)
	}
	return o
}

func person(name string, more object) object {
	body := object{"schemas": []any{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": name,
		"externalId": "ext-" + name}
	for member, value := range more {
		body[member] = value
	}
	return body
}

func (c *client) addUser(name string, more object) string {
	c.t.Helper()
	return c.want(http.StatusCreated, http.MethodPost, usersPath, person(name, more))["id"].(string)
}

func (c *client) addGroup(name string, members ...string) string {
	c.t.Helper()
	return c.want(http.StatusCreated, http.MethodPost, groupsPath, object{"displayName": name,
		"members": valued(members)})["id"].(string)
}

func valued(ids []string) []any {
	list := []any{}
	for _, id := range ids {
		list = append(list, object{"value": id})
	}
	return list
}

func patchOf(operations ...object) object {
	return object{"schemas": []any{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": operations}
}

func (c *client) patch(status int, path string, operations ...object) object {
	c.t.Helper()
	return c.want(status, http.MethodPatch, path, patchOf(operations...))
}

// members are the ids of the members that the client sees.
func (c *client) members(group string) []string {
	c.t.Helper()
	ids := []string{}
	list, _ := c.want(http.StatusOK, http.MethodGet, groupsPath+"/"+group, nil)["members"].([]any)
	for _, m := range list {
		ids = append(ids, m.(object)["value"].(string))
	}
	return ids
}
