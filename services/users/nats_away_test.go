package users_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/pkg/auth"
)

// TestNATSAway: writes continue while NATS is away. Their events come when it is back, once each, in order for each
// record.
func TestNATSAway(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.OrganizationWrite)
	first := c.Post("/v1/users", map[string]any{"username": "before"}).ID()
	s.Events(1)
	s.NATS.Stop()
	ids := []string{first}
	for n := range 50 {
		id := c.Post("/v1/users", map[string]any{"username": fmt.Sprint("away-", n)}).ID()
		c.Patch("/v1/users/"+id, map[string]any{"display_name": "李伟"}).OK(nil)
		ids = append(ids, id)
	}
	c.Post("/v1/users/"+first+"/change-organization", map[string]any{"object_code": "company", "to_node_id": "1"}).
		Problem(503, "unavailable")
	s.NATS.Start()
	sequences := map[string]string{}
	for _, e := range s.Events(101) {
		sequences[e.Subject] += fmt.Sprint(e.Sequence, ".")
	}
	assert.Equal(t, "10.", sequences[first])
	for _, id := range ids[1:] {
		assert.Equal(t, "10.20.", sequences[id])
	}
}
