package organization_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/questions"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(rounds.Of(25, 100))); err != nil { // of TestModel
		panic(err)
	}
	basic.Main(m)
}

func start(t testing.TB) *testkit.Service {
	s := testkit.Start(t, organization.Spec())
	(&rules{}).answer(t, s.Deps.Bus)
	return s
}

// rules stand for the permissions service. The zero value has none that give scopes.
type rules struct {
	mu      sync.Mutex
	given   map[string][]string // by node; scopes
	unknown map[string]bool     // nodes of which it has not heard
	asked   [][]string
	fail    error
}

func (r *rules) answer(t testing.TB, b *bus.Bus) {
	t.Helper()
	require.NoError(t, questions.ScopesOfNodes.Answer(b, func(_ context.Context, q questions.NodeIDs) (
		answer questions.ScopesOfMembers, _ error,
	) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, q.IDs)
		for _, id := range q.IDs {
			if r.unknown[id] {
				answer.Unknown = append(answer.Unknown, id)
			}
			answer.Scopes.Scopes = append(answer.Scopes.Scopes, r.given[id]...)
		}
		return answer, r.fail
	}))
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, func(t testing.TB) *testkit.Service {
		s := start(t)
		for _, tenant := range []string{"acme", "globex"} {
			addObject(t, in(s, tenant), "company")
		}
		return s
	}, testkit.Resource{
		Collection: "/v1/tree-nodes",
		Body: func(n int) any {
			return object{"object_code": "company", "name": fmt.Sprint("node ", n), "parent_id": "",
				"code": fmt.Sprint("code-", n), "tag": "mine"}
		},
		Change: object{"description": "另一个"},
		Faulty: object{"object_code": "company", "name": "", "parent_id": ""},
		Faults: []string{"body.name"},
		Unique: []string{"code"},
		Read:   auth.OrganizationRead, Write: auth.OrganizationWrite, Unrelated: auth.KVRead,
		Query: "object_code=company&tag=mine", Seeds: 4,
	})
}

// object is a JSON object.
type object = map[string]any

// in returns a client of a tenant with all scopes of this service.
func in(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.OrganizationRead, auth.OrganizationWrite)
}

// acme starts a service and returns the client that most tests use.
func acme(t testing.TB) (*testkit.Service, *testkit.Client) {
	t.Helper()
	s := start(t)
	return s, in(s, "acme")
}

// addObject creates a core object with the code.
func addObject(t testing.TB, c *testkit.Client, code string, more ...object) object {
	t.Helper()
	return c.Post("/v1/core-objects", with(object{"code": code, "name": strings.ToUpper(code)}, more)).Object()
}

// addNode creates a node below parent, which may be "", with further members.
func addNode(t testing.TB, c *testkit.Client, code, parent, name string, more ...object) object {
	t.Helper()
	return c.Post("/v1/tree-nodes", with(object{"object_code": code, "parent_id": parent, "name": name}, more)).Object()
}

func with(body object, more []object) object {
	for _, members := range more {
		for name, value := range members {
			body[name] = value
		}
	}
	return body
}

func id(record object) string { return record["id"].(string) }

// node and path return the path of a record, or of something below it.
func node(record object, below ...string) string {
	return strings.Join(append([]string{"/v1/tree-nodes", id(record)}, below...), "/")
}

// members of the same name in the records of a list.
func members(list any, name string) []any {
	values := []any{}
	for _, item := range list.([]any) {
		values = append(values, item.(object)[name])
	}
	return values
}

// people stands for the users service. The zero value knows no users.
type people struct {
	mu    sync.Mutex
	users map[string]object // by id; the record
	asked int

	// called after a question was answered, before the answer is sent; may be nil
	meanwhile func(ctx context.Context, question string) error
}

// behind calls meanwhile.
func (p *people) behind(ctx context.Context, question string) error {
	p.mu.Lock()
	meanwhile := p.meanwhile
	p.mu.Unlock()
	if meanwhile == nil {
		return nil
	}
	return meanwhile(ctx, question)
}

// interfere sets meanwhile.
func (p *people) interfere(meanwhile func(ctx context.Context, question string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meanwhile = meanwhile
}

// withPeople starts a service beside a users service that knows users 1…n, in every tenant.
func withPeople(t testing.TB, n int) (*testkit.Service, *testkit.Client, *people) {
	t.Helper()
	s, c := acme(t)
	p := &people{users: map[string]object{}}
	for i := 1; i <= n; i++ {
		p.put(fmt.Sprint(i), object{})
	}
	p.answer(t, s.Deps.Bus)
	return s, c, p
}

// put creates or changes a user.
func (p *people) put(id string, record object) object {
	p.mu.Lock()
	defer p.mu.Unlock()
	version := 1
	if old := p.users[id]; old != nil {
		version = old["version"].(int) + 1
	}
	record["id"], record["version"] = id, version
	if record["status"] == nil {
		record["status"] = "1"
	}
	p.users[id] = record
	return record
}

// sorted are the ids in the order of the users service's pages.
func (p *people) sorted() []string {
	ids := make([]string, 0, len(p.users))
	for id := range p.users {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (p *people) answer(t testing.TB, b *bus.Bus) {
	t.Helper()
	type ids struct {
		IDs []string `json:"ids"`
	}
	require.NoError(t, testkit.AnswerFor(b, "users", "existing", func(ctx context.Context, q ids) (ids, error) {
		p.mu.Lock()
		p.asked++
		q.IDs = slices.DeleteFunc(q.IDs, func(id string) bool {
			return p.users[id] == nil || p.users[id]["status"] == "resigned"
		})
		p.mu.Unlock()
		return q, p.behind(ctx, "existing")
	}))
	type page struct {
		After     string   `json:"after"`
		Limit     int      `json:"limit"`
		Users     []object `json:"users"`
		Sequences []int    `json:"sequences"`
		Next      string   `json:"next"`
	}
	require.NoError(t, testkit.AnswerFor(b, "users", "records", func(ctx context.Context, q page) (page, error) {
		p.mu.Lock()
		q.Users, q.Sequences = []object{}, []int{}
		for _, id := range p.sorted() {
			if id <= q.After {
				continue
			}
			if len(q.Users) == q.Limit {
				q.Next = q.Users[q.Limit-1]["id"].(string)
				break
			}
			q.Users = append(q.Users, p.users[id])
			q.Sequences = append(q.Sequences, 10*p.users[id]["version"].(int))
		}
		p.mu.Unlock()
		return q, p.behind(ctx, "records")
	}))
	type matching struct {
		Keyword string   `json:"keyword"`
		IDs     []string `json:"ids"`
		Limit   int      `json:"limit"`
		More    bool     `json:"more"`
	}
	require.NoError(t, testkit.AnswerFor(b, "users", "matching", func(_ context.Context, q matching) (matching, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		among := q.IDs
		if among == nil {
			among = p.sorted()
		}
		q.IDs = []string{}
		for _, id := range among {
			name, _ := p.users[id]["display_name"].(string)
			if !strings.Contains(name, q.Keyword) {
				continue
			}
			if q.More = len(q.IDs) == q.Limit; q.More {
				break
			}
			q.IDs = append(q.IDs, id)
		}
		return q, nil
	}))
}

// A tour of everything that the service does.
func TestTour(t *testing.T) {
	t.Parallel()
	_, c, p := withPeople(t, 3)
	company := addObject(t, c, "company")
	rd := addNode(t, c, "company", "", "R&D")
	platform := addNode(t, c, "company", id(rd), "平台组")
	require.Equal(t, []any{company["root_node_id"], rd["id"], platform["id"]}, platform["path"])
	require.Equal(t, []any{platform["id"]}, c.Items("/v1/tree-nodes?object_code=company&name=台", "id"))
	m := c.Post("/v1/tree-users", object{"node_id": platform["id"], "user_id": "1", "title": "架构师"}).Object()
	require.Equal(t, []any{"COMPANY", "R&D", "平台组"}, m["node_path"])
	require.Equal(t, "1", m["is_primary"])
	batch := c.Post("/v1/batch/tree-users", object{"node_id": rd["id"], "user_ids": []string{"1", "2", "3"}}).Object()
	require.Equal(t, []any{"0", "1", "1"}, members(batch["items"], "is_primary"))
	require.Equal(t, 2, p.asked)
	page := c.Get(node(rd, "users?recursive=true")).Object()
	require.EqualValues(t, 3, page["total"])
	require.Equal(t, []any{"1", "2", "3"}, members(page["items"], "user_id"))
	require.Len(t, page["items"].([]any)[0].(object)["nodes"], 2)
	c.Delete(node(rd)+"?object_code=company", nil).Problem(409, "has_children")
	c.Patch(node(rd), object{"parent_id": platform["id"]}).Problem(400, "invalid_parameters", "body.parent_id")
	moved := c.Patch(node(platform), object{"parent_id": ""}).Object()
	require.Equal(t, []any{company["root_node_id"], platform["id"]}, moved["path"])
	c.Delete(node(rd)+"?object_code=company", nil).OK(nil)
	var left []object
	c.Get("/v1/tree-users?user_id=2").OK(&left)
	require.Empty(t, left)
	c.Get("/v1/tree-users?user_id=1").OK(&left)
	require.Len(t, left, 1)
	require.Equal(t, "1", left[0]["is_primary"])
}
