package fair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/request"
)

// Later versions must be able to read the stored form.
func TestStoredTurn(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.add("t0", 1)
	doc, err := o.rota.Turns().Find(request.System(t.Context(), "t0"), o.store, fair.TurnID)
	require.NoError(t, err)
	text, err := doc.JSON()
	require.NoError(t, err)
	now := o.clock.Now().String()
	require.JSONEq(t, `{"id":"turn","tenant_id":"t0","version":1,"time_created":"`+now+`","time_modified":"`+now+
		`","next":"`+now+`","idle":false}`, string(text))
}
