package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

const (
	grantedUsers     = 2000
	grantedResources = 200
	application      = "2001"
)

// granted is a tenant in which each user has a grant of their own for one resource, and belongs to a team. The
// division three levels above all teams is granted a resource set.
type granted struct {
	users []string
	token string
}

// createGrants creates the tenant's records and waits until checks know them.
func createGrants(b testing.TB, c *child, token string) granted {
	b.Helper()
	type object = map[string]any
	importUsers(b, c, token, people(0, grantedUsers))
	g := granted{token: token}
	for next := ""; len(g.users) < grantedUsers; {
		var list page
		fetch(b, c, token, "/v1/users?page_size=200&page_token="+next, &list)
		for _, item := range list.Items {
			g.users = append(g.users, item.ID)
		}
		next = list.Next
	}
	send(b, c, token, "/v1/core-objects", object{"code": "company", "name": "Acme"}, &struct{}{})
	var nodes []string
	parent := ""
	for _, name := range []string{"Division", "Department", "Unit", "Team"} {
		var made struct {
			ID string `json:"id"`
		}
		send(b, c, token, "/v1/tree-nodes", object{"object_code": "company", "parent_id": parent, "name": name}, &made)
		parent = made.ID
		nodes = append(nodes, made.ID)
	}
	division, team := nodes[0], nodes[3]
	for from := 0; from < grantedUsers; from += 1000 {
		var items []object
		for _, user := range g.users[from : from+1000] {
			items = append(items, object{"node_id": team, "user_id": user})
		}
		send(b, c, token, "/v1/batch/tree-users", object{"items": items}, &struct{}{})
	}
	g.createResources(b, c, division)
	last := g.check(grantedUsers-1, 7, "write")
	wait.Until(b, func() bool {
		var answer struct{ Allowed bool }
		status, text := exchange(b, c, token, "/v1/auth-check", json.RawMessage(last))
		require.Equal(b, http.StatusOK, status, "%s", text)
		require.NoError(b, json.Unmarshal(text, &answer))
		return answer.Allowed
	}, "a grant through the tree is not known")
	return g
}

// createResources creates resources, each user's own grant to read one of them, and the division's grant to write the
// first hundred, which are in a set.
func (g *granted) createResources(b testing.TB, c *child, division string) {
	type object = map[string]any
	var members []object
	for i := range grantedResources {
		send(b, c, g.token, "/v1/resources", object{
			"application_id": application, "type": "data", "code": fmt.Sprint("record/", i),
			"name": fmt.Sprintf("Record %d 记录", i), "actions": []object{{"code": "read"}, {"code": "write"}},
		}, &struct{}{})
		if i < 100 {
			members = append(members, object{"resource_code": fmt.Sprint("record/", i), "resource_type": "data"})
		}
	}
	var set struct {
		ID string `json:"id"`
	}
	sendAs(b, c, g.token, "/v1/resource-sets", object{"application_id": application, "code": "first", "name": "First"},
		&set)
	sendAs(b, c, g.token, "/v1/resource-sets/"+set.ID+"/members", object{"members": members}, &struct{}{})
	for i := range grantedResources {
		var identities []object
		for user := i; user < grantedUsers; user += grantedResources {
			identities = append(identities, object{"identity_type": "user", "identity_id": g.users[user]})
		}
		send(b, c, g.token, "/v1/batch/auth-unit-rules", object{"identities": identities, "rules": []object{{
			"application_id": application, "type": "data", "code": fmt.Sprint("record/", i),
			"actions": []string{"read"},
		}}}, &struct{}{})
	}
	send(b, c, g.token, "/v1/batch/auth-unit-rules", object{
		"identities": []object{{"identity_type": "node", "identity_id": division}},
		"rules": []object{{"application_id": application, "type": "res_set", "resource_set_id": set.ID,
			"actions": []string{"write"}}},
	}, &struct{}{})
}

// sendAs is send with the header X-Tenant-Id, which operations of resource sets ask for.
func sendAs(b testing.TB, c *child, token, path string, body, into any) {
	b.Helper()
	text, err := json.Marshal(body)
	require.NoError(b, err)
	r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, bytes.NewReader(text))
	require.NoError(b, err)
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
		"X-Tenant-Id": {"acme"}}
	response, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	defer response.Body.Close()
	require.Equal(b, http.StatusOK, response.StatusCode, path)
	require.NoError(b, json.NewDecoder(response.Body).Decode(into))
}

func (g *granted) check(user, resource int, action string) string {
	return fmt.Sprintf(`{"identity_type":"user","identity_id":%q,"application_id":%q,"object_type":"data",`+
		`"object_code":"record/%d","action":%q}`, g.users[user], application, resource, action)
}

// requests makes the requests of many users with a body each.
func (g *granted) requests(path string, body func(user int) string) [][]byte {
	list := make([][]byte, 1000)
	for user := range list {
		list[user] = post(path, g.token, body(user))
	}
	return list
}

// BenchmarkChecks asks who may do what, beside reading a user, in the same run.
func BenchmarkChecks(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	g := createGrants(b, c, c.token("--tenant", "acme"))
	users, searches := make([][]byte, 1000), make([][]byte, 1000)
	for i := range users {
		users[i] = get("/v1/users/"+g.users[i], g.token)
		searches[i] = get("/v1/auth-check/objects?identity_type=user&object_type=data&action=write&page_size=100&"+
			"application_id="+application+"&identity_id="+g.users[i], g.token)
	}
	for _, ask := range []struct {
		name     string
		requests [][]byte
	}{
		{"get a user", users},
		{"direct grant", g.requests("/v1/auth-check", func(u int) string {
			return g.check(u, u%grantedResources, "read")
		})},
		{"grant three levels above, by a set", g.requests("/v1/auth-check", func(u int) string {
			return g.check(u, u%100, "write")
		})},
		{"AuthZEN, direct grant", g.requests("/access/v1/evaluation", func(u int) string {
			return fmt.Sprintf(`{"subject":{"type":"user","id":%q},"action":{"name":"read"},"resource":{"type":"data",`+
				`"id":"record/%d","properties":{"application_id":%q}}}`, g.users[u], u%grantedResources, application)
		})},
		{"batch of 100", g.requests("/v1/batch/auth-check", func(u int) string {
			checks := g.check(u, 0, "write")
			for i := 1; i < 100; i++ {
				checks += "," + g.check(u, i, "write")
			}
			return `{"checks":[` + checks + `]}`
		})},
		{"what can a user do, 100 objects", searches},
	} {
		b.Run(ask.name, func(b *testing.B) {
			share(b, yard, c, func(w, n int) []byte { return ask.requests[(w*31+n)%len(ask.requests)] })
		})
	}
}

// costlyTrue is a condition that costs much, and is true.
const costlyTrue = `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20].all(a, ` +
	`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20].all(b, a + b - a - b + a + b >= 0))`

// BenchmarkCheckNeighbour measures the checks of one tenant while another asks long questions without a pause: batches
// of a thousand checks with a costly condition, and who may do something of 5,000 users. Checks come at a steady pace,
// so that times of waiting for the processor show.
func BenchmarkCheckNeighbour(b *testing.B) {
	c := startPlatform(b, b.TempDir())
	calm, busy := c.token("--tenant", "acme"), c.token("--tenant", "busy")
	g := createGrants(b, c, calm)
	checks := g.requests("/v1/auth-check", func(u int) string { return g.check(u, u%100, "write") })
	importUsers(b, c, busy, people(0, 5000))
	type object = map[string]any
	send(b, c, busy, "/v1/resources", object{"application_id": application, "type": "data", "code": "record/1"},
		&struct{}{})
	send(b, c, busy, "/v1/batch/auth-unit-rules", object{
		"identities": []object{{"identity_type": "everyone", "identity_id": "*"}},
		"rules": []object{{"application_id": application, "type": "data", "code": "record/1",
			"resource_match_all_actions": "1", "condition": costlyTrue}},
	}, &struct{}{})
	var first page
	fetch(b, c, busy, "/v1/users?page_size=1", &first)
	one := fmt.Sprintf(`{"identity_type":"user","identity_id":%q,"application_id":%q,"object_type":"data",`+
		`"object_code":"record/1","action":"read"}`, first.Items[0].ID, application)
	long := [][]byte{
		post("/v1/batch/auth-check", busy, `{"checks":[`+one+strings.Repeat(","+one, 999)+`]}`),
		get("/v1/auth-check/identities?object_type=data&object_code=record/1&action=read&application_id="+application,
			busy),
	}
	during := func(asking bool) measured {
		var all sync.WaitGroup
		if asking {
			all.Go(func() {
				m, err := generate(c.Addr, 4, 5*time.Second, func(w, n int) []byte { return long[(w+n)%len(long)] })
				require.NoError(b, err)
				b.Logf("%d long questions", m.requests)
			})
		}
		m, err := generate(c.Addr, 4, 5*time.Second, func(w, n int) []byte {
			time.Sleep(2 * time.Millisecond)
			return checks[(w*31+n)%len(checks)]
		})
		require.NoError(b, err)
		all.Wait()
		return m
	}
	c.settle()
	during(false) // what is used for the first time is slower
	for range repeats {
		quiet := during(false)
		reportReads(b, "nothing else", quiet, quiet.p99)
		reportReads(b, "long questions of a neighbour", during(true), quiet.p99)
	}
}
