package automation_test

import (
	"net/http"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/webhook"
)

// Requests to a webhook with a secret are signed. Neither answers nor events show the secret.
func TestSignedWebhooks(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := jobsOf(s, "acme")
	hook := newReceiver(t, answering(http.StatusOK, ""))
	target := func(secret any) object {
		return object{"target": object{"type": "webhook", "url": hook.URL, "secret": secret}}
	}
	run := func(path string) sent {
		c.Post(path+"/trigger", nil).OK(nil)
		s.RunTask("run jobs")
		hook.mu.Lock()
		defer hook.mu.Unlock()
		return hook.sent[len(hook.sent)-1]
	}
	first, second := webhook.NewSecret(), webhook.NewSecret()
	signed := func(path, secret string) {
		t.Helper()
		w, err := webhooks.NewWebhook(secret)
		require.NoError(t, err)
		got := run(path)
		require.NoError(t, w.Verify(got.body, got.header))
	}

	path := newJob(c, hook, target(first))
	job := c.Get(path)
	require.Equal(t, "******", job.Object()["target"].(object)["secret"])
	signed(path, first)
	require.Equal(t, job.Object()["version"], c.Do(http.MethodPut, path, job.Object()).Object()["version"])
	signed(path, first)
	c.Patch(path, object{"target": object{"secret": second}}).OK(nil)
	signed(path, second)
	c.Patch(path, object{"target": object{"secret": nil}}).OK(nil)
	require.NotContains(t, c.Get(path).Object()["target"], "secret")
	got := run(path)
	require.Empty(t, got.header.Get("Webhook-Signature"))
	require.NotEmpty(t, got.header.Get("Webhook-Id"))

	const location = "body.target.secret"
	for _, secret := range []any{"short", "******", "whsec_AAAA"} {
		c.Patch(path, target(secret)).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	c.Patch(path, object{"target": object{"type": "nats", "url": nil, "subject": "x", "secret": second}}).
		Problem(http.StatusBadRequest, "invalid_parameters", location)
	for _, e := range s.Events(8) {
		require.NotContains(t, string(e.Data), first[6:])
		require.NotContains(t, string(e.Data), second[6:])
	}
}
