package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// The password of a NATS user ends at once with its rotation, with a pause, and with the deletion of its subscription.
func TestPasswordsOfSubscribersEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post(subscriptionsPath, object{"name": "n", "event_types": []any{"component.*"},
		"delivery": object{"type": "nats"}}).Object()
	admitted := func(record object) bool {
		answer, err := questions.IsSubscriber.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
			questions.Subscriber{ID: id(made), Password: record["delivery"].(object)["secret"].(string)})
		require.NoError(t, err)
		return answer.Admitted
	}
	require.True(t, admitted(made))
	rotated := c.Post(one(made)+"/reset", object{"rotate_secret": true}).Object()
	require.False(t, admitted(made))
	require.True(t, admitted(rotated))
	c.Post(one(made)+"/pause", nil).OK(nil)
	require.False(t, admitted(rotated))
	c.Post(one(made)+"/resume", nil).OK(nil)
	require.True(t, admitted(rotated))
	c.Delete(one(made), nil).OK(nil)
	require.False(t, admitted(rotated))
}
