package permissions_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// scopeResources are api resources of application 9 whose codes are scopes; that of events:read is global and of
// application 8.
func scopeResources(admin *testkit.Client) {
	for _, code := range []string{"users:read", "users:write", "kv:read", "kv:write"} {
		admin.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": code,
			"actions": []object{{"code": "use"}}}).OK(nil)
	}
	admin.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": "users:secrets"}).OK(nil)
	admin.Post("/v1/resources", object{"application_id": "8", "type": "api", "code": "events:read", "is_global": "1",
		"actions": []object{{"code": "use"}}}).OK(nil)
}

// toUse is a rule that gives a scope.
func toUse(scope string, more ...object) object {
	rule := object{"type": "api", "code": scope, "actions": []string{"*"}}
	for _, m := range more {
		for name, value := range m {
			rule[name] = value
		}
	}
	return rule
}

// What rules give a user counts by whichever way it comes, also if a condition or a deny stands against it now.
func TestAnswerScopesOfUser(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	of := func(tenant, user string) []string {
		t.Helper()
		answer, err := questions.ScopesOfUser.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.HolderOfScopes{UserID: user})
		require.NoError(t, err)
		return answer.Scopes
	}
	require.Equal(t, []string{}, of("acme", "20"))
	scopeResources(admin)
	give(t, admin, "everyone/*", toUse("kv:read"))
	require.Empty(t, of("acme", "20"), "everyone has it")
	give(t, admin, "user/20", object{"type": "app"}, object{"type": "data", "code": "users:secrets",
		"actions": []string{"*"}}, toUse("kv:write", object{"affect": "deny"}))
	require.Empty(t, of("acme", "20"), "nothing that gives a scope")
	now := s.Clock.Now()
	give(t, admin, "user/20", toUse("kv:write", object{"valid_to": now.Add(time.Hour).String()}))
	require.Equal(t, []string{"kv:write"}, of("acme", "20"), "although it is denied")
	give(t, admin, "node/11", toUse("users:read", object{"condition": "false"}))
	require.Equal(t, []string{"users:read", "kv:write"}, of("acme", "20"), "of the node above")
	give(t, admin, "core_object/1", object{"type": "res", "code": "users:w*", "actions": []string{"*"}})
	require.Equal(t, []string{"users:read", "users:write", "kv:write"}, of("acme", "20"), "of the tree")
	require.Empty(t, of("acme", "21"), "who does not belong there")
	give(t, admin, "user/404404", object{"type": "api", "application_id": "8", "code": "events:read",
		"actions": []string{"*"}})
	require.Equal(t, []string{"events:read"}, of("acme", "404404"), "the index may hear of the user later")
	give(t, admin, "group/staff", object{"type": "res", "resource_match_all_resources": "1", "actions": []string{"*"}})
	unit := unitOf(t, admin, "group/staff")["id"].(string)
	admin.Post("/v1/auth-units/"+unit+"/members", object{"user_ids": []string{"21"}}).OK(nil)
	require.Equal(t, []string{"users:read", "users:write", "kv:read", "kv:write"}, of("acme", "21"), "of a group")
	s.Clock.Advance(time.Hour)
	require.Equal(t, []string{"users:read", "users:write"}, of("acme", "20"), "the rule has ended")
	require.Empty(t, of("globex", "20"))
}

// What counts for a node are its own rules, those of nodes above it, and those of its tree; not those below.
func TestAnswerScopesOfNodes(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	ask := func(tenant string, nodes ...string) (questions.ScopesOfMembers, error) {
		return questions.ScopesOfNodes.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.NodeIDs{IDs: nodes})
	}
	of := func(nodes ...string) []string {
		t.Helper()
		answer, err := ask("acme", nodes...)
		require.NoError(t, err)
		require.Empty(t, answer.Unknown)
		return answer.Scopes.Scopes
	}
	require.Equal(t, []string{}, of("10", "11", "404404"), "nothing gives a scope")
	scopeResources(admin)
	give(t, admin, "everyone/*", toUse("kv:read"))
	give(t, admin, "user/20", toUse("kv:read"))
	require.Empty(t, of("12"), "rules for others")
	give(t, admin, "node/12", object{"type": "data", "code": "users:secrets", "actions": []string{"*"}},
		toUse("kv:write", object{"affect": "deny"}))
	require.Empty(t, of("12"))
	give(t, admin, "node/11", toUse("users:read", object{"condition": "false"}))
	require.Equal(t, []string{"users:read"}, of("11"))
	require.Equal(t, []string{"users:read"}, of("12"), "below")
	require.Empty(t, of("10"), "above")
	give(t, admin, "core_object/1", object{"type": "res", "code": "kv:w*", "actions": []string{"use"}})
	require.Equal(t, []string{"kv:write"}, of("10"))
	require.Equal(t, []string{"users:read", "kv:write"}, of("10", "12"))
	give(t, admin, "node/404404", toUse("users:write"))
	answer, err := ask("acme", "404404", "404405", "10")
	require.NoError(t, err)
	require.Equal(t, questions.ScopesOfMembers{Scopes: questions.Scopes{Scopes: []string{"users:write", "kv:write"}},
		Unknown: []string{"404404", "404405"}}, answer)
	answer, err = ask("globex", "12")
	require.NoError(t, err)
	require.Empty(t, answer.Scopes.Scopes)
	_, err = ask("acme", make([]string, questions.MaxScopeNodes+1)...)
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// Who adds people to a group, or gives a unit's rules to somebody else, holds the scopes that the rules give.
func TestNobodyIsGivenAScopeByMembership(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	c := in(s, "acme")
	holder := s.As("acme", auth.PermissionsWrite, auth.UsersWrite)
	scopeResources(admin)
	members := func(of string) string { return "/v1/auth-units/" + unitOf(t, admin, of)["id"].(string) + "/members" }
	user := object{"user_ids": []string{"20"}}
	c.Post("/v1/auth-units", object{"identity_type": "group", "identity_id": "harmless"}).OK(nil)
	c.Post(members("group/harmless"), user).OK(nil)
	set := addSet(t, admin, "users", admin.Get("/v1/resources?application_id=9&code=users:write").
		Object()["items"].([]any)[0].(object)["id"].(string))
	for name, rule := range map[string]object{
		"one":           toUse("users:write"),
		"a pattern":     {"type": "res", "code": "users:w*", "actions": []string{"*"}},
		"a set":         {"type": "res_set", "resource_set_id": set, "actions": []string{"*"}},
		"a later one":   toUse("users:write", object{"valid_from": s.Clock.Now().Add(time.Hour).String()}),
		"a condition's": toUse("users:write", object{"condition": "false"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := "group/" + strings.ReplaceAll(name, " ", "-")
			give(t, admin, group, rule)
			refused := c.Post(members(group), user).Problem(http.StatusForbidden, "forbidden")
			require.Contains(t, refused.Detail, "users:write")
			c.Post(members(group)+"?dry_run=true", user).Problem(http.StatusForbidden, "forbidden")
			unit := strings.TrimSuffix(members(group), "/members")
			c.Patch(unit, object{"identity_type": "user", "identity_id": "21"}).
				Problem(http.StatusForbidden, "forbidden")
			c.Patch(unit, object{"description": "x", "identity_name": "Those"}).OK(nil)
			holder.Post(members(group), user).OK(nil)
			c.Do(http.MethodDelete, members(group), user).OK(nil)
			admin.Post(members(group), user).OK(nil)
			holder.Patch(unit, object{"identity_id": group + "-2"}).OK(nil)
		})
	}
}
