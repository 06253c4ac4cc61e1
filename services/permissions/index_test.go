package permissions_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/permissions"
	"github.com/idplatform/idplatform/services/questions"
)

var spec = permissions.Spec()

// tell publishes an event as another service would. sequence must grow for each record.
func tell(t testing.TB, s *testkit.Service, kind, id, sequence string, data object) {
	t.Helper()
	payload, err := json.Marshal(object{
		"specversion": "1.0", "id": kind + "/" + id + "/" + sequence, "source": "/test", "type": "idp." + kind,
		"subject": id,
		"time":    "2026-01-31T09:30:00.000Z", "datacontenttype": "application/json", "tenantid": "acme",
		"sequence": sequence, "data": data,
	})
	require.NoError(t, err)
	message := docstore.Message{ID: kind + "/" + id + "/" + sequence, Subject: "idp.events.acme." + kind,
		Payload: payload}
	for _, err := range s.Deps.Bus.Publish(t.Context(), []docstore.Message{message}) {
		require.NoError(t, err)
	}
}

func eventually(t testing.TB, want bool, is func() bool) {
	t.Helper()
	require.Eventually(t, func() bool { return is() == want }, waitFor, tick)
}

// Memberships come from what the services had when this one started, and from their events since.
func TestPeopleComeFromEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	may := func(user string) func() bool { return func() bool { return allowed(t, c, user) } }
	require.True(t, may("20")())
	require.False(t, may("21")())
	tell(t, s, "membership.created", "31", "10", object{"record": object{"id": "31", "node_id": "12", "user_id": "21"}})
	eventually(t, true, may("21"))
	tell(t, s, "node.moved", "12", "20",
		object{"record": object{"id": "12", "name": "Payroll", "parent_id": "10", "object_code": "company"}})
	eventually(t, false, may("21"))
	tell(t, s, "node.moved", "12", "30",
		object{"record": object{"id": "12", "name": "Payroll", "parent_id": "11", "object_code": "company"}})
	eventually(t, true, may("21"))
	tell(t, s, "membership.deleted", "31", "20", object{"record": object{"id": "31"},
		"memberships": []object{{"id": "31", "node_id": "12", "user_id": "21", "sequence": "20"}}})
	eventually(t, false, may("21"))
	require.True(t, may("20")())
	tell(t, s, "user.resigned", "20", "20",
		object{"record": object{"id": "20", "username": "alice", "status": "resigned"}})
	eventually(t, false, may("20"))
	tell(t, s, "user.reinstated", "20", "30", object{"record": object{"id": "20", "username": "alice", "status": "1"}})
	eventually(t, true, may("20"))
}

// A poisoned event is counted and does not keep out those that follow.
func TestAPoisonedEventIsParked(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	tell(t, s, "membership.created", "31", "10", object{"record": []string{"no record"}})
	tell(t, s, "membership.created", "32", "10", object{"record": object{"id": "32", "node_id": "12", "user_id": "21"}})
	eventually(t, true, func() bool { return allowed(t, c, "21") })
	families, err := s.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "idp_permissions_parked_events_total" {
			require.EqualValues(t, 1, family.GetMetric()[0].GetCounter().GetValue())
			return
		}
	}
	t.Fatal("it is not counted")
}

// What happens while the first snapshot is taken is neither lost nor counted twice, also where the stream no longer
// keeps the first events.
func TestChangesDuringTheFirstSnapshot(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, spec)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	c.Post("/v1/auth-check", reading("20")).Problem(503, "unavailable")

	// History that the stream has lost: a membership that has ended since.
	tell(t, s, "membership.created", "29", "10", object{"record": object{"id": "29", "node_id": "12", "user_id": "21"}})
	stream, err := s.Deps.Bus.JetStream().Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))

	// While the snapshot, which still has both, is under way, bob's membership ends and alice's node is renamed.
	people, told := acme, new(atomic.Bool)
	people.memberships = []questions.Membership{
		{ID: "30", NodeID: "12", UserID: "20", Sequence: 10}, {ID: "33", NodeID: "12", UserID: "21", Sequence: 10},
	}
	answer(t, s, func() company {
		if told.CompareAndSwap(false, true) {
			tell(t, s, "membership.deleted", "33", "20", object{"record": object{"id": "33"}, "memberships": []object{
				{"id": "33", "node_id": "12", "user_id": "21", "sequence": "20"},
			}})
			tell(t, s, "node.updated", "12", "20", object{"record": object{
				"id": "12", "name": "Salaries", "parent_id": "11", "object_code": "company",
			}})
		}
		return people
	})
	ready(t, s)
	eventually(t, false, func() bool { return allowed(t, c, "21") })
	require.True(t, allowed(t, c, "20"))
	eventually(t, true, func() bool {
		via := c.Post("/v1/auth-check", reading("20")).Object()["via"].([]any)
		return via[1].(object)["name"] == "Salaries"
	})
}

// A stream that was made anew has not what happened meanwhile: another snapshot finds it, and what is gone.
func TestALostStreamMeansANewSnapshot(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, spec)
	var people atomic.Pointer[company]
	people.Store(&acme)
	answer(t, s, func() company { return *people.Load() })
	ready(t, s)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	require.True(t, allowed(t, c, "20"))
	later := acme
	later.memberships = []questions.Membership{{ID: "34", NodeID: "12", UserID: "21", Sequence: 10}}
	people.Store(&later)
	js := s.Deps.Bus.JetStream()
	stream, err := js.Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.NoError(t, js.DeleteStream(t.Context(), bus.EventStream))
	_, err = js.CreateStream(t.Context(), config)
	require.NoError(t, err)
	eventually(t, true, func() bool { return allowed(t, c, "21") })
	eventually(t, false, func() bool { return allowed(t, c, "20") })
}

// After a restart the index is what the store says.
func TestTheIndexAfterARestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	set := addSet(t, c, "books", addResource(t, c, "ledger"))
	group := c.Post("/v1/auth-units", object{"identity_id": "auditors", "identity_type": "group"}).ID()
	c.Post("/v1/auth-units/"+group+"/members", object{"user_ids": []string{"21"}}).OK(nil)
	give(t, c, "group/auditors", object{"type": "res_set", "resource_set_id": set, "actions": []string{"read"}})
	require.True(t, allowed(t, c, "21"))
	again := s.Replica(spec)
	ready(t, again)
	require.True(t, allowed(t, in(again, "acme"), "21"))
	require.False(t, allowed(t, in(again, "acme"), "20"))
	require.False(t, allowed(t, in(again, "globex").With("X-Tenant-Id", ""), "21"), "another tenant")
}

// What refers to a record goes with it.
func TestCascades(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addSet(t, c, "books", addResource(t, c, "ledger"))
	count := func(path string, want int) {
		t.Helper()
		require.Eventually(t, func() bool { return total(t, c, path) == want }, waitFor, tick, path)
	}
	for _, who := range []string{"user/20", "node/12", "core_object/1", "application/9"} {
		give(t, c, who, data("ledger", "read"))
	}
	group := "/v1/auth-units/" + c.Post("/v1/auth-units",
		object{"identity_id": "auditors", "identity_type": "group"}).ID()
	c.Post(group+"/members", object{"user_ids": []string{"20", "21"}}).OK(nil)
	tell(t, s, "user.deleted", "20", "20", object{"record": object{"id": "20"}})
	count("/v1/auth-rules", 3)
	count(group+"/members", 1)
	tell(t, s, "node.deleted", "12", "20", object{"record": object{"id": "12"}})
	count("/v1/auth-rules", 2)
	tell(t, s, "core_object.deleted", "1", "20", object{"record": object{"id": "1"}})
	count("/v1/auth-rules", 1)
	tell(t, s, "application.deleted", "9", "20", object{"record": object{"id": "9"}})
	count("/v1/auth-rules", 0)
	count("/v1/resources?application_id=9", 0)
	count("/v1/resource-sets?application_id=9", 0)
	count("/v1/auth-units", 1)
}
