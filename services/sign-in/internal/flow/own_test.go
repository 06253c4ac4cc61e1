package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
)

// Later versions must be able to read it: it waits in a flow.
func TestGoldenChange(t *testing.T) {
	t.Parallel()
	r, err := flow.Change{
		UserID: "20", Action: flow.WithdrawConsent, ID: "1048577", Address: "203.0.113.9", Browser: "Firefox/140.0",
	}.Request()
	require.NoError(t, err)
	basic.Golden(t, "testdata/change.json", r.Message)
}
