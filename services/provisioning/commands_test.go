package provisioning_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "provisioning",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		newWorld(t, s)
		return s, s.As("acme", auth.PlatformAdmin)
	},
	Commands: func(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Commands {
		fresh := testkit.Names()
		return append(ofConnections(c, fresh), ofResources(t, c, fresh)...)
	},
	NotCounted: map[string]string{
		"scim-bulk-requests": "it is as many operations as it has", "scim-search-all": "it answers 501",
		"scim-search-users": "it is a list", "scim-search-groups": "it is a list",
	},
	Changes: func(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Change {
		token := tokenOf(c, object{"name": "At once"})
		var n atomic.Int64
		return []testkit.Change{{Name: "users", Do: func(c *testkit.Client, _, _ int) *testkit.Answer {
			return ok(t, c.With("Authorization", token).Post(usersPath, person(fmt.Sprint("once-", n.Add(1)), nil)))
		}}}
	},
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

// tokenOf makes a connection and returns the credential of its client.
func tokenOf(c *testkit.Client, connection object) string {
	id := c.Post(connectionsPath, connection).ID()
	return "Bearer " + c.Post(connectionsPath+"/"+id+"/tokens", object{"name": "test"}).Object()["token"].(string)
}

// ok is an answer of SCIM that is a success, in the form that the others have.
func ok(t testing.TB, a *testkit.Answer) *testkit.Answer {
	t.Helper()
	require.Less(t, a.Status, 300, "%s", a.Body)
	a.Status = http.StatusOK
	return a
}

func ofConnections(c *testkit.Client, fresh func() string) []testkit.Commands {
	body := func() any { return object{"name": fresh()} }
	connection := testkit.Path(func() string { return connectionsPath + "/" + c.Post(connectionsPath, body()).ID() })
	return []testkit.Commands{
		testkit.Takes("create a connection", http.MethodPost, connectionsPath, body),
		testkit.Takes("create a connection with a tree", http.MethodPost, connectionsPath, func() any {
			name := fresh()
			return object{"name": name, "object_code": name}
		}),
		testkit.Takes("change a connection", http.MethodPatch, connection, body),
		testkit.Takes("disable a connection", http.MethodPost, connection.Below("/disable"), nil),
		testkit.Takes("enable a connection", http.MethodPost, connection.After(c, "/disable").Below("/enable"), nil),
		testkit.Takes("make a token", http.MethodPost, connection.Below("/tokens"), object{"name": "t"}),
		testkit.Takes("end a token", http.MethodDelete, func() string {
			at := connection() + "/tokens"
			return at + "/" + c.Post(at, object{"name": "t"}).Object()["id"].(string)
		}, nil),
		testkit.Takes("approve nothing", http.MethodPost, connection.Below("/approve"), nil),
		testkit.Takes("reject nothing", http.MethodPost, connection.Below("/reject"), nil),
		testkit.Takes("delete a connection", http.MethodDelete, connection, nil),
	}
}

func ofResources(t testing.TB, c *testkit.Client, fresh func() string) []testkit.Commands {
	token := tokenOf(c, object{"name": "Okta", "object_code": "okta",
		"gate": object{"percent": 100, "min": 1000, "hours": 1}})
	scim := c.With("Authorization", token)
	made := func(path string, body object) string {
		a := scim.Post(path, body)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		a.Status = http.StatusOK
		return path + "/" + a.ID()
	}
	user := func() string { return made(usersPath, person(fresh(), nil)) }
	group := func() string { return made(groupsPath, object{"displayName": fresh()}) }
	row := func(operation, method string, path func() string, body func() any) testkit.Commands {
		return testkit.Commands{Operation: operation, Do: func(c *testkit.Client) *testkit.Answer {
			return ok(t, c.With("Authorization", token).Do(method, path(), body()))
		}}
	}
	fixed := func(path string) func() string { return func() string { return path } }
	nothing := func() any { return nil }
	there := user()
	rename := func() any { return patchOf(object{"op": "replace", "path": "displayName", "value": fresh()}) }
	return []testkit.Commands{
		row("get a provisioned user", http.MethodGet, fixed(there), nothing),
		row("find a provisioned user", http.MethodGet, fixed(usersPath+"?filter=userName%20eq%20%22x%22"), nothing),
		row("create a provisioned user", http.MethodPost, fixed(usersPath), func() any { return person(fresh(), nil) }),
		row("replace a provisioned user", http.MethodPut, user, func() any { return object{"userName": fresh()} }),
		row("change a provisioned user", http.MethodPatch, user, rename),
		row("delete a provisioned user", http.MethodDelete, user, nothing),
		row("create a provisioned group", http.MethodPost, fixed(groupsPath), func() any {
			return object{"displayName": fresh()}
		}),
		row("replace a provisioned group", http.MethodPut, group, func() any { return object{"displayName": fresh()} }),
		row("change a provisioned group", http.MethodPatch, group, rename),
		row("add a provisioned member", http.MethodPatch, group, func() any {
			return patchOf(object{"op": "add", "path": "members", "value": valued([]string{there[len(usersPath)+1:]})})
		}),
		row("delete a provisioned group", http.MethodDelete, group, nothing),
	}
}
