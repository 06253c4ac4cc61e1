package webhook_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/webhook"
)

func TestSign(t *testing.T) {
	t.Parallel()
	current, former, other := webhook.NewSecret(), webhook.NewSecret(), webhook.NewSecret()
	payload := []byte(`{"a":1}`)
	h := http.Header{}
	webhook.Sign(h, "msg-1", time.Now(), payload, current, former)
	require.Equal(t, "msg-1", h.Get("Webhook-Id"))
	for _, secret := range []string{current, former} {
		w, err := webhooks.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, w.Verify(payload, h))
		require.Error(t, w.Verify([]byte(`{"a":2}`), h))
	}
	w, err := webhooks.NewWebhook(other)
	require.NoError(t, err)
	require.Error(t, w.Verify(payload, h))
}

// The example of the specification.
func TestSignatureOfTheSpecification(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	webhook.Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`),
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.Equal(t, "1614265330", h.Get("Webhook-Timestamp"))
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", h.Get("Webhook-Signature"))
}

func TestWithoutASecret(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	webhook.Sign(h, "msg-1", time.Unix(1, 0), nil)
	require.Equal(t, http.Header{"Webhook-Id": {"msg-1"}, "Webhook-Timestamp": {"1"}}, h)
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for text, valid := range map[string]bool{
		webhook.NewSecret(): true, of(24): true, of(64): true, of(23): false, of(65): false, "": false,
		of(24)[6:]: false, "whsec_": false, "whsec_***": false,
	} {
		require.Equal(t, valid, webhook.ValidSecret(text), text)
	}
	require.NotEqual(t, webhook.NewSecret(), webhook.NewSecret())
}
