package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
	"github.com/idplatform/idplatform/services/questions"
)

func TestMain(m *testing.M) { basic.Main(m) }

// A deletion is remembered only until its event arrives, whichever of the two comes first.
func TestDeletionsAreForgotten(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	event := stream.Event{Type: "idp.auth_rule.deleted", Subject: "60", Tenant: "acme", Sequence: 2}
	own := grant.Change{Entity: "auth_rule", ID: "60", Deleted: true}
	for name, order := range map[string][]func(*Index){
		"own write first": {
			func(x *Index) { x.Apply(ctx, []grant.Change{own}) },
			func(x *Index) { require.NoError(t, x.handleGrant(ctx, event)) },
		},
		"event first": {
			func(x *Index) { require.NoError(t, x.handleGrant(ctx, event)) },
			func(x *Index) { x.Apply(ctx, []grant.Change{own}) },
		},
	} {
		x := New(Deps{Log: basic.Log(t), Metrics: prometheus.NewRegistry()})
		done := x.Writing()
		for _, step := range order {
			step(x)
		}
		done()
		require.Empty(t, x.grants.deleted, name)
		require.Empty(t, x.grants.writes.gone, name)
		require.Empty(t, x.grants.writes.order, name)
		require.Empty(t, x.grants.writes.running, name)
	}
}

// Memberships that end together are one event. Older events about them that come after it do not bring them back; a
// snapshot does, since it is what there is.
func TestEndedMembershipsStayEnded(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	x := New(Deps{Log: basic.Log(t), Metrics: prometheus.NewRegistry()})
	tell := func(kind, subject string, sequence int64, data string) {
		t.Helper()
		require.NoError(t, x.handlePeople(ctx, stream.Event{Type: "idp." + kind, Subject: subject, Tenant: "acme",
			Sequence: sequence, Data: json.RawMessage(data)}))
	}
	user := `{"record":{"id":"7","username":"li","status":"1"}}`
	node := `{"record":{"id":"5","object_code":"company"}}`
	member := `{"record":{"node_id":"5","user_id":"7"}}`
	tell("user.created", "7", 10, user)
	tell("node.created", "5", 10, node)
	require.NoError(t, x.handleGrant(ctx, stream.Event{Type: "idp.auth_unit.created", Subject: "50", Tenant: "acme",
		Sequence: 10, Data: json.RawMessage(`{"record":{"identity_type":"node","identity_id":"5"}}`)}))
	holds := func() int {
		units, err := x.State(ctx).Reaching(engine.Identity{Type: engine.User, ID: "7"})
		require.NoError(t, err)
		return len(units)
	}
	tell("membership.created", "2", 10, member)
	require.Equal(t, 1, holds())
	tell("membership.deleted", "1", 30, `{"memberships":[{"id":"1","node_id":"5"},{"id":"2","node_id":"5"}]}`)
	tell("membership.updated", "2", 20, member)
	tell("membership.created", "1", 10, member)
	require.Zero(t, holds())
	x.apply(&x.people, "acme", fromSnapshot, update{entity: "membership", id: "2",
		apply: putMembership(questions.Membership{ID: "2", NodeID: "5", UserID: "7", Sequence: 40})})
	require.Equal(t, 1, holds())
}

// replica is an index with what it has not yet been told: events, and its own committed writes.
type replica struct {
	*Index
	events int // how many of all it has handled
	late   []lateWrite
}

type lateWrite struct {
	change grant.Change
	done   func()
}

// Two replicas change, delete and make the same rules. Their own writes are applied late and in any order, events come
// in their order and sometimes again. When all has arrived both know what a naive model knows; and what a replica has
// done itself it knows as soon as its write is applied.
func TestTwoReplicasEndAlike(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
		replicas := make([]*replica, 2)
		for i := range replicas {
			replicas[i] = &replica{Index: New(Deps{Log: basic.Log(t), Metrics: prometheus.NewRegistry()})}
		}
		model := map[string]int64{} // rule → sequence
		var all []stream.Event
		ids, sequence := 0, int64(0)
		write := func(on *replica) {
			sequence++
			change := grant.Change{Entity: "auth_rule", Sequence: sequence}
			action := "updated"
			known := slices.Sorted(maps.Keys(model))
			switch n := r.IntN(4); {
			case n == 0 || len(known) == 0:
				ids++
				change.ID, action = strconv.Itoa(ids), "created"
			case n == 1:
				change.ID, change.Deleted, action = known[r.IntN(len(known))], true, "deleted"
			default:
				change.ID = known[r.IntN(len(known))]
			}
			record := fmt.Sprintf(`{"id":%q,"auth_unit_id":"1","application_id":"9","type":"app"}`, change.ID)
			change.Record = json.RawMessage(record)
			if model[change.ID] = sequence; change.Deleted {
				delete(model, change.ID)
			}
			all = append(all, stream.Event{Type: "idp.auth_rule." + action, Subject: change.ID, Tenant: "acme",
				Sequence: sequence, Data: json.RawMessage(`{"record":` + record + `}`)})
			on.late = append(on.late, lateWrite{change, on.Writing()})
		}
		hear := func(on *replica) {
			if on.events < len(all) {
				require.NoError(t, on.handleGrant(ctx, all[on.events]))
				on.events++
			}
		}
		apply := func(on *replica) {
			if len(on.late) == 0 {
				return
			}
			at := r.IntN(len(on.late))
			own := on.late[at]
			on.late = slices.Delete(on.late, at, at+1)
			on.Apply(ctx, []grant.Change{own.change})
			own.done()
			known := on.State(ctx).Sequence("auth_rule", own.change.ID)
			require.True(t, own.change.Deleted == (known == 0) || model[own.change.ID] == 0 ||
				known >= own.change.Sequence, "seed %d", seed)
		}
		for range 60 {
			on := replicas[r.IntN(2)]
			switch r.IntN(4) {
			case 0:
				write(on)
			case 1:
				apply(on)
			default:
				hear(on)
			}
		}
		for _, on := range replicas {
			for on.events < len(all) || len(on.late) > 0 {
				if r.IntN(2) == 0 {
					hear(on)
				} else {
					apply(on)
				}
			}
			for id := range ids {
				id := strconv.Itoa(id + 1)
				require.Equal(t, model[id], on.State(ctx).Sequence("auth_rule", id), "seed %d, rule %s", seed, id)
			}
			require.Empty(t, on.grants.deleted)
			require.Empty(t, on.grants.writes.gone)
		}
	}
}
