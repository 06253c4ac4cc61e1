package permissions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
