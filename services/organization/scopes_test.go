package organization_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/organization"
	"github.com/idplatform/idplatform/services/questions"
)

// ruled starts a service beside users 1…9 and rules that give users:write to the node gives, which is in the tree
// company as harmless is.
func ruled(t *testing.T) (s *testkit.Service, r *rules, gives, harmless object) {
	t.Helper()
	s = testkit.Start(t, organization.Spec())
	r = &rules{}
	r.answer(t, s.Deps.Bus)
	p := &people{users: map[string]object{}}
	for i := 1; i <= 9; i++ {
		p.put(fmt.Sprint(i), object{})
	}
	p.answer(t, s.Deps.Bus)
	c := in(s, "acme")
	addObject(t, c, "company")
	gives, harmless = addNode(t, c, "company", "", "gives"), addNode(t, c, "company", "", "harmless")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = map[string][]string{id(gives): {"users:write"}}
	return s, r, gives, harmless
}

// Whoever lets people join a node whose rules give scopes of this API holds these scopes.
func TestNobodyLetsPeopleJoinForScopesThatHeLacks(t *testing.T) {
	t.Parallel()
	const one, batch = "/v1/tree-users", "/v1/batch/tree-users"
	dynamic := object{"is_dynamic": "1", "condition": "user.id == '1'"}
	for name, do := range map[string]func(c *testkit.Client, gives, harmless object) *testkit.Answer{
		"add": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Post(one, object{"node_id": id(gives), "user_id": "1"})
		},
		"try to add": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Post(one+"?dry_run=true", object{"node_id": id(gives), "user_id": "1"})
		},
		"add several": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Post(batch, object{"node_id": id(gives), "user_ids": []string{"1", "2"}})
		},
		"add to several": func(c *testkit.Client, gives, harmless object) *testkit.Answer {
			return c.Post(batch, object{"items": []object{{"node_id": id(harmless), "user_id": "1"},
				{"node_id": id(gives), "user_id": "1"}}})
		},
		"move below": func(c *testkit.Client, gives, harmless object) *testkit.Answer {
			return c.Patch(node(harmless), object{"parent_id": id(gives)})
		},
		"make dynamic": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Patch(node(gives), dynamic)
		},
		"make dynamic below": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Post("/v1/tree-nodes", changed(dynamic, object{"object_code": "company", "name": "x",
				"parent_id": id(gives)}))
		},
		"make dynamic below, in a batch": func(c *testkit.Client, gives, _ object) *testkit.Answer {
			return c.Post(nodesBatch, object{"object_code": "company", "items": []object{
				{"name": "x", "ref": "a", "parent_id": id(gives)},
				changed(dynamic, object{"name": "y", "parent_ref": "a"}),
			}})
		},
		"point": func(c *testkit.Client, gives, harmless object) *testkit.Answer {
			return c.Patch(node(gives), object{"is_pointer": "1", "pointer_id": id(harmless)})
		},
		"point from below": func(c *testkit.Client, gives, harmless object) *testkit.Answer {
			return c.Post("/v1/tree-nodes", object{"object_code": "company", "name": "x", "parent_id": id(gives),
				"is_pointer": "1", "pointer_id": id(harmless)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, gives, harmless := ruled(t)
			p := do(in(s, "acme"), gives, harmless).Problem(http.StatusForbidden, "forbidden")
			require.Contains(t, p.Detail, "users:write")
			require.Empty(t, in(s, "acme").Get(node(gives, "users?recursive=true")).Object()["items"])
			require.Equal(t, gives["parent_id"], in(s, "acme").Get(node(harmless)).Object()["parent_id"])
			do(s.As("acme", auth.OrganizationWrite, auth.UsersWrite), gives, harmless).OK(nil)
			s, r, gives, harmless := ruled(t)
			r.mu.Lock()
			r.fail = apperr.New(apperr.Unavailable, "the index is not ready")
			r.mu.Unlock()
			do(in(s, "acme"), gives, harmless).Problem(http.StatusServiceUnavailable, "unavailable")
			r.mu.Lock()
			r.asked = nil
			r.mu.Unlock()
			do(s.As("acme", auth.PlatformAdmin), gives, harmless).OK(nil)
			require.Empty(t, r.asked, "who holds everything need not ask")
		})
	}
}

// What lets nobody join asks nobody.
func TestChangesThatLetNobodyJoin(t *testing.T) {
	t.Parallel()
	s, r, gives, harmless := ruled(t)
	c := in(s, "acme")
	below := addNode(t, c, "company", id(gives), "below")
	c.Patch(node(gives), object{"name": "x", "tag": "y"}).OK(nil)
	c.Patch(node(below), object{"parent_id": id(harmless)}).OK(nil)
	admin := s.As("acme", auth.OrganizationWrite, auth.UsersWrite)
	dynamic := addNode(t, admin, "company", id(gives), "dynamic", object{"is_dynamic": "1", "condition": "false"})
	r.mu.Lock()
	r.asked = nil
	r.mu.Unlock()
	c.Patch(node(dynamic), object{"name": "z"}).OK(nil)
	c.Patch(node(dynamic), object{"is_dynamic": "0", "condition": ""}).OK(nil)
	c.Post(node(gives, "disable"), nil).OK(nil)
	require.Empty(t, r.asked)
}

// Of a node that has just been made, the permissions service may not have heard: the nodes above it count.
func TestANodeThatThePermissionsServiceDoesNotKnow(t *testing.T) {
	t.Parallel()
	s, r, gives, harmless := ruled(t)
	c := in(s, "acme")
	mine, other := addNode(t, c, "company", id(gives), "mine"), addNode(t, c, "company", id(harmless), "other")
	r.mu.Lock()
	r.unknown = map[string]bool{id(mine): true, id(other): true, "404404": true}
	r.mu.Unlock()
	add := func(n any) *testkit.Answer {
		return c.Post("/v1/tree-users", object{"node_id": n, "user_id": "1"})
	}
	add(id(mine)).Problem(http.StatusForbidden, "forbidden")
	add(id(other)).OK(nil)
	add("404404").Problem(http.StatusBadRequest, "invalid_parameters", "body.node_id")
}

// A move that another service asks for gives no scope that its caller lacks. Who does not say what the caller holds is
// an older service.
func TestAHandOverGivesOnlyWhatItsCallerHolds(t *testing.T) {
	t.Parallel()
	s, r, gives, harmless := ruled(t)
	ctx := request.System(t.Context(), "acme")
	n := 0
	one := func(from, to string, held *questions.Scopes) error {
		n++
		_, err := questions.ChangeMembership.Ask(ctx, s.Deps.Bus, questions.MembershipChange{ID: fmt.Sprint("one-", n),
			UserID: "1", ObjectCode: "company", FromNodeID: from, ToNodeID: to, Held: held})
		return err
	}
	many := func(from, to string, held *questions.Scopes) error {
		n++
		_, err := questions.ChangeMemberships.Ask(ctx, s.Deps.Bus, questions.MembershipsChange{
			ID: fmt.Sprint("many-", n), UserIDs: []string{"2", "3"}, ObjectCode: "company", FromNodeID: from,
			ToNodeID: to, Held: held})
		return err
	}
	nothing, enough := &questions.Scopes{}, &questions.Scopes{Scopes: []string{"users:write"}}
	for _, move := range []func(from, to string, held *questions.Scopes) error{one, many} {
		require.NoError(t, move("", id(harmless), nothing))
		err := move(id(harmless), id(gives), nothing)
		require.Equal(t, apperr.Forbidden, apperr.KindOf(err))
		require.ErrorContains(t, err, "users:write")
		require.NoError(t, move(id(harmless), id(gives), enough))
		require.NoError(t, move(id(gives), id(gives), nothing), "nothing changes")
		require.NoError(t, move(id(gives), id(harmless), nothing), "who leaves gets nothing")
		require.NoError(t, move(id(harmless), id(gives), nil))
		require.NoError(t, move(id(gives), id(harmless), &questions.Scopes{Scopes: []string{"platform:admin"}}))
	}
	r.mu.Lock()
	r.fail = errors.New("it does not answer")
	r.mu.Unlock()
	require.Error(t, one(id(harmless), id(gives), enough))
}
