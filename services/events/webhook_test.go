package events_test

import (
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

// verify checks the signature of a request with the library of Standard Webhooks.
func verify(t testing.TB, r received, secret string) {
	t.Helper()
	w, err := webhooks.NewWebhook(secret)
	require.NoError(t, err)
	require.NoError(t, w.VerifyIgnoringTimestamp(r.Body, r.Header))
}
