package permissions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
