package permissions_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/permissions"
)

// A replica that has heard nothing from NATS for too long answers no checks, until it hears again. Without a limit it
// goes on with what it knows.
func TestReplicasKnowThatTheyAreStale(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, permissions.Spec(permissions.Config{MaxStaleness: time.Nanosecond}))
	answer(t, s, func() company { return acme })
	ready(t, s)
	patient := s.Replica(permissions.Spec(permissions.Config{}))
	ready(t, patient)
	status := func(s *testkit.Service, path string, body any) int { return in(s, "acme").Post(path, body).Status }
	s.NATS.Stop()
	for path, body := range map[string]any{
		"/v1/auth-check": reading("20"), "/v1/batch/auth-check": object{"checks": []object{reading("20")}},
		"/access/v1/evaluation": evaluation("alice", "read", "1"),
	} {
		wait.Until(t, func() bool { return status(s, path, body) == http.StatusServiceUnavailable })
		require.Equal(t, http.StatusOK, status(patient, path, body))
	}
	s.NATS.Start()
	ready(t, s)
}
