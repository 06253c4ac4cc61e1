package organization_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// Another service can build a copy of trees and memberships: it reads all pages, with the sequences after which events
// continue.
func TestRecordsForOtherServices(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	b := s.Deps.Bus
	require.NoError(t, testkit.AnswerFor(b, "users", "existing",
		func(_ context.Context, q questions.UserIDs) (questions.UserIDs, error) {
			return q, nil
		}))
	addObject(t, c, "company")
	addObject(t, in(s, "globex"), "company")
	var node string
	for i := range 5 {
		node = c.Post("/v1/tree-nodes", object{"object_code": "company", "name": strconv.Itoa(i), "parent_id": ""}).ID()
		c.Post("/v1/tree-users", object{"node_id": node, "user_id": "1048577"}).OK(nil)
	}
	c.Patch("/v1/tree-nodes/"+node, object{"name": "renamed"}).OK(nil)

	platform, ctx := request.System(t.Context(), request.Platform), request.System(t.Context(), "acme")
	var tenants []string
	for q := (questions.TenantName{}); ; {
		next, err := questions.NextOrganizationTenant.Ask(platform, b, q)
		require.NoError(t, err)
		if next.Tenant == "" {
			break
		}
		tenants, q = append(tenants, next.Tenant), next
	}
	require.ElementsMatch(t, []string{"acme", "globex"}, tenants)

	objects, err := questions.CoreObjectRecords.Ask(ctx, b, questions.RecordsPage{Limit: 500})
	require.NoError(t, err)
	require.Len(t, objects.CoreObjects, 1)
	require.Equal(t, "company", objects.CoreObjects[0].Code)

	var nodes []questions.Node
	for q := (questions.RecordsPage{Limit: 2}); ; {
		page, err := questions.NodeRecords.Ask(ctx, b, q)
		require.NoError(t, err)
		nodes = append(nodes, page.Nodes...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	require.Len(t, nodes, 6, "with the root")
	last := nodes[5]
	require.Equal(t, "renamed", last.Name)
	events := s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.node.updated" && e.Subject == node })
	require.Equal(t, events[len(events)-1].Sequence, last.Sequence, "the event with this state")

	members, err := questions.MembershipRecords.Ask(ctx, b, questions.MembershipsPage{
		RecordsPage: questions.RecordsPage{Limit: 2000}})
	require.NoError(t, err)
	require.Len(t, members.Memberships, 5)
	require.Equal(t, "1048577", members.Memberships[0].UserID)
	require.Empty(t, members.Next)

	_, err = questions.NodeRecords.Ask(ctx, b, questions.RecordsPage{Limit: 501})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// The groups of a user are the nodes of all trees, and the nodes above them, by their codes.
func TestGroupsOfUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "users", "existing",
		func(_ context.Context, q questions.UserIDs) (questions.UserIDs, error) { return q, nil }))
	groups := func(tenant, user string) []string {
		t.Helper()
		answer, err := questions.GroupsOfUser.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.GroupsQuestion{UserID: user})
		require.NoError(t, err)
		require.NotNil(t, answer.Groups)
		return answer.Groups
	}
	addObject(t, c, "company")
	addObject(t, c, "projects")
	add := func(tree, code, parent string) string {
		return c.Post("/v1/tree-nodes",
			object{"object_code": tree, "name": code, "code": code, "parent_id": parent}).ID()
	}
	rd := add("company", "rd", "")
	backend, apollo := add("company", "backend", rd), add("projects", "阿波罗", "")
	add("company", "sales", "")
	require.Empty(t, groups("acme", "1048577"))
	for _, node := range []string{backend, rd, apollo} {
		c.Post("/v1/tree-users", object{"node_id": node, "user_id": "1048577"}).OK(nil)
	}
	require.Equal(t, []string{"company/backend", "company/company", "company/rd", "projects/projects", "projects/阿波罗"},
		groups("acme", "1048577"))
	require.Empty(t, groups("globex", "1048577"))
	status := func(node, to string) { c.Post("/v1/tree-nodes/"+node+"/"+to, nil).OK(nil) }
	status(backend, "disable")
	require.Equal(t, []string{"company/company", "company/rd", "projects/projects", "projects/阿波罗"},
		groups("acme", "1048577"), "a disabled node is no group")
	status(backend, "enable")
	status(rd, "disable")
	require.Equal(t, []string{"projects/projects", "projects/阿波罗"}, groups("acme", "1048577"),
		"nothing below it is one, and it leads to none above it")
	status(rd, "enable")
	stand := c.Post("/v1/tree-nodes", object{"object_code": "projects", "parent_id": apollo, "name": "R&D people",
		"code": "rd-people", "is_pointer": "1", "pointer_id": rd}).ID()
	require.Equal(t, []string{"company/backend", "company/company", "company/rd", "projects/projects",
		"projects/rd-people", "projects/阿波罗"}, groups("acme", "1048577"), "a pointer has the members of its target")
	status(stand, "disable")
	require.NotContains(t, groups("acme", "1048577"), "projects/rd-people")
	users := func(node string) any { return c.Get("/v1/tree-nodes/" + node + "/users").Object()["total"] }
	require.Equal(t, users(rd), users(stand))
	below := c.Post("/v1/tree-nodes", object{"object_code": "projects", "parent_id": stand, "name": "below"}).ID()
	c.Post("/v1/tree-users", object{"node_id": below, "user_id": "1048578"}).OK(nil)
	all := c.Get("/v1/tree-nodes/" + stand + "/users?recursive=true").Object()["items"].([]any)
	require.Len(t, all, 1, "what is below a pointer is in its recursive list")
	require.Equal(t, "1048578", all[0].(object)["user_id"])
	c.Delete("/v1/tree-nodes/"+below+"?object_code=projects", nil).OK(nil)
	c.Post("/v1/tree-users", object{"node_id": stand, "user_id": "1048577"}).Problem(409, "invalid_state")
	c.Delete("/v1/tree-nodes/"+stand+"?object_code=projects", nil).OK(nil)
	c.Patch("/v1/tree-nodes/"+backend, object{"parent_id": ""}).OK(nil)
	c.Delete("/v1/tree-users", object{"node_id": rd, "user_ids": []string{"1048577"}}).OK(nil)
	require.Equal(t, []string{"company/backend", "company/company", "projects/projects", "projects/阿波罗"},
		groups("acme", "1048577"), "as they are now")
}
