package permissions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// The answer is that of a check about the application, at once after a rule has changed.
func TestAnswerMayUse(t *testing.T) {
	t.Parallel()
	s := start(t)
	ready(t, s)
	c := in(s, "acme")
	may := func(tenant, user string) questions.MayUseAnswer {
		t.Helper()
		answer, err := questions.MayUse.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.Use{UserID: user, AppID: "9"})
		require.NoError(t, err)
		return answer
	}
	require.Equal(t, questions.MayUseAnswer{Reason: "not_granted"}, may("acme", "20"))
	give(t, c, "everyone/*", object{"type": "app"})
	granted := may("acme", "20")
	require.True(t, granted.Allowed)
	require.Equal(t, "granted", granted.Reason)
	require.NotEmpty(t, granted.RuleID)
	require.False(t, may("acme", "404404").Allowed, "an unknown user")
	require.False(t, may("globex", "20").Allowed, "another tenant's rule")
	give(t, c, "user/20", object{"type": "app", "affect": "deny"})
	require.Equal(t, "denied", may("acme", "20").Reason)
}

// Of many applications at once, the answer is that of each.
func TestAnswerUsable(t *testing.T) {
	t.Parallel()
	s := start(t)
	ready(t, s)
	c := in(s, "acme")
	usable := func(tenant, user string) []string {
		t.Helper()
		answer, err := questions.Usable.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.UsableQuestion{UserID: user, AppIDs: []string{"8", "404404", "9"}})
		require.NoError(t, err)
		return answer.IDs
	}
	require.Equal(t, []string{}, usable("acme", "20"))
	give(t, c, "everyone/*", object{"type": "app"})
	require.Equal(t, []string{"9"}, usable("acme", "20"))
	require.Empty(t, usable("acme", "404404"), "an unknown user")
	require.Empty(t, usable("globex", "20"), "another tenant's rule")
	give(t, c, "user/20", object{"type": "app", "affect": "deny"})
	require.Empty(t, usable("acme", "20"))
	_, err := questions.Usable.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
		questions.UsableQuestion{UserID: "20", AppIDs: make([]string, questions.MaxUsable+1)})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}

// A user has a scope if there is an api resource with its code, and rules allow the user one of its actions.
func TestAnswerHeldScopes(t *testing.T) {
	t.Parallel()
	s := start(t)
	ready(t, s)
	c := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	held := func(tenant, user string) []string {
		t.Helper()
		answer, err := questions.HeldScopes.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.ScopesQuestion{UserID: user, AppID: "9",
				Scopes: []string{"users:write", "users:read", "events:read", "nothing"}})
		require.NoError(t, err)
		return answer.Scopes
	}
	resource := func(kind, code string, actions ...object) {
		c.Post("/v1/resources", object{"application_id": "9", "type": kind, "code": code, "actions": actions}).OK(nil)
	}
	require.Equal(t, []string{}, held("acme", "20"))
	resource("api", "users:read", object{"code": "use"}, object{"code": "see"})
	resource("api", "users:write", object{"code": "use"})
	resource("data", "users:write", object{"code": "use"})
	resource("api", "events:read")
	give(t, c, "everyone/*", object{"type": "api", "code": "users:read", "actions": []string{"see"}},
		object{"type": "data", "code": "users:write", "actions": []string{"*"}},
		object{"type": "api", "code": "events:read", "actions": []string{"*"}})
	require.Equal(t, []string{"users:read"}, held("acme", "20"), "not what has no action, and no other type")
	give(t, c, "user/20", object{"type": "res", "code": "users:*", "actions": []string{"*"}})
	require.Equal(t, []string{"users:write", "users:read"}, held("acme", "20"))
	give(t, c, "user/20", object{"type": "api", "code": "users:read", "actions": []string{"see"}, "affect": "deny"})
	require.Equal(t, []string{"users:write", "users:read"}, held("acme", "20"), "the other action is left")
	give(t, c, "user/20", object{"type": "api", "code": "users:read", "actions": []string{"*"}, "affect": "deny"})
	require.Equal(t, []string{"users:write"}, held("acme", "20"))
	require.Empty(t, held("acme", "404404"), "an unknown user")
	require.Empty(t, held("globex", "20"), "another tenant's rules")
	_, err := questions.HeldScopes.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
		questions.ScopesQuestion{UserID: "20", AppID: "9", Scopes: make([]string, questions.MaxScopes+1)})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
}
