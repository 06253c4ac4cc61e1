package mongostore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A transaction is abandoned when it has run no command for some time, on any of the shards that it has reached; they
// are told in any order.
func TestAbandonedOfShards(t *testing.T) {
	t.Parallel()
	on := func(id string, number, active int64) (s idleSession) {
		s.Session.ID = bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte(id)}
		s.Transaction.Parameters.Number, s.Transaction.Active = number, active
		return s
	}
	var a abandoned
	now := time.Now()
	look := func(later time.Duration, idle ...idleSession) []string {
		now = now.Add(later)
		ids := []string{}
		for _, session := range a.note(idle, now) {
			ids = append(ids, string(session.(bson.D)[0].Value.(bson.Binary).Data))
		}
		return ids
	}
	require.Empty(t, look(0, on("dead", 1, 10), on("dead", 1, 30), on("alive", 1, 5), on("next", 1, 5)))
	require.Empty(t, look(abandonedAfter/2, on("dead", 1, 30), on("dead", 1, 10), on("alive", 1, 6), on("next", 2, 5)))
	require.Equal(t, []string{"dead"},
		look(abandonedAfter/2, on("dead", 1, 10), on("dead", 1, 30), on("alive", 1, 6), on("next", 2, 5)))
	require.ElementsMatch(t, []string{"alive", "next"}, look(abandonedAfter/2, on("alive", 1, 6), on("next", 2, 5)))
}
