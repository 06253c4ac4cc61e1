package permissions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/permissions"
	"github.com/idplatform/idplatform/services/questions"
)

var spec = permissions.Spec(permissions.DefaultConfig())

// tell publishes an event as another service would. sequence must grow for each record.
func tell(t testing.TB, s *testkit.Service, kind, id, sequence string, data object) {
	t.Helper()
	publish(t, s, kind, id, sequence, kind+"/"+id+"/"+sequence, data)
}

// publish is tell with the id of the event, by which NATS recognizes duplicates.
func publish(t testing.TB, s *testkit.Service, kind, id, sequence, eventID string, data object) {
	t.Helper()
	payload, err := json.Marshal(object{
		"specversion": "1.0", "id": eventID, "source": "/test", "type": "idp." + kind, "subject": id,
		"time": "2026-01-31T09:30:00.000Z", "datacontenttype": "application/json", "tenantid": "acme",
		"sequence": sequence, "data": data,
	})
	require.NoError(t, err)
	message := docstore.Message{ID: eventID, Subject: "idp.events.acme." + kind, Payload: payload}
	for _, err := range s.Deps.Bus.Publish(t.Context(), []docstore.Message{message}) {
		require.NoError(t, err)
	}
}

// parked is how many events and records the index of a replica has left out.
func parked(t testing.TB, s *testkit.Service) float64 {
	t.Helper()
	families, err := s.Deps.Metrics.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "idp_permissions_parked_events_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("there is no idp_permissions_parked_events_total")
	return 0
}

func eventually(t testing.TB, want bool, is func() bool) {
	t.Helper()
	wait.Until(t, func() bool { return is() == want })
}

// Users, nodes and memberships come from the other services at the start, and then from their events.
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
	node := func(action, id, name, parent, status, sequence string) {
		tell(t, s, "node."+action, id, sequence, object{"record": object{"id": id, "name": name, "parent_id": parent,
			"object_code": "company", "status": status}})
	}
	node("disabled", "12", "Payroll", "11", "0", "40")
	eventually(t, false, may("21"))
	node("enabled", "12", "Payroll", "11", "1", "50")
	eventually(t, true, may("21"))
	node("disabled", "11", "Finance", "10", "0", "40")
	eventually(t, false, may("21")) // nor through what is below it
	node("enabled", "11", "Finance", "10", "1", "50")
	eventually(t, true, may("21"))
	tell(t, s, "node.created", "77", "10", object{"record": object{"id": "77", "name": "Readers", "parent_id": "10",
		"object_code": "company", "is_pointer": "1", "pointer_id": "12"}})
	addResource(t, c, "readers")
	give(t, c, "node/77", data("readers", "read"))
	reads := func() bool {
		return c.Post("/v1/auth-check", object{"identity_type": "user", "identity_id": "21", "application_id": "9",
			"object_type": "data",
			"object_code": "readers", "action": "read"}).Object()["allowed"] == true
	}
	eventually(t, true, reads) // rules on a pointer reach the members of its target
	tell(t, s, "node.updated", "77", "20", object{"record": object{"id": "77", "name": "Readers", "parent_id": "10",
		"object_code": "company", "is_pointer": "0", "pointer_id": ""}})
	eventually(t, false, reads)
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

// An event that cannot be read is counted, and the following events are applied.
func TestAnUnreadableEventIsParked(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	tell(t, s, "membership.created", "31", "10", object{"record": []string{"no record"}})
	tell(t, s, "membership.created", "32", "10", object{"record": object{"id": "32", "node_id": "12", "user_id": "21"}})
	eventually(t, true, func() bool { return allowed(t, c, "21") })
	require.EqualValues(t, 1, parked(t, s))
	require.Len(t, s.Warnings(), 1)
	require.Contains(t, s.Warnings()[0], "cannot read: 1;")
}

// An event without a required member is parked. Of a deletion only the id is needed.
func TestEventsWithoutRequiredMembers(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, event := range []struct{ kind, data string }{
		{"user.created", `{"record":{"id":"40"}}`}, {"user.created", `{"record":null}`}, {"user.created", `{}`},
		{"node.created", `{"record":{"name":"x"}}`}, {"core_object.created", `{"record":{"name":"x"}}`},
		{"membership.created", `{"record":{"node_id":"12"}}`}, {"membership.deleted", `{"memberships":7}`},
		{"auth_rule.created", `{"record":{"type":"data"}}`}, {"resource.created", `{"record":{"actions":{}}}`},
		{"auth_unit.created", `{"record":[]}`}, {"auth_unit_member.created", `{"record":{}}`},
		{"resource_set.created", `{"record":{}}`}, {"resource_set_member.created", `{"record":{}}`},
	} {
		var content object
		require.NoError(t, json.Unmarshal([]byte(event.data), &content))
		tell(t, s, event.kind, "900", strconv.Itoa(10+i), content)
	}
	tell(t, s, "user.deleted", "20", "50", object{"record": 7})
	eventually(t, true, func() bool { return parked(t, s) == 13 })
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "everyone/*", data("ledger", "read"))
	eventually(t, false, func() bool { return allowed(t, c, "20") })
	require.True(t, allowed(t, c, "21"))
}

// spoiling makes one stored record unreadable.
type spoiling struct {
	docstore.Engine
	id *atomic.Pointer[string]
}

func (e spoiling) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	rows, err := e.Engine.Find(ctx, def, tenant, q)
	for i := range rows {
		if id := e.id.Load(); id != nil && rows[i].ID == *id {
			rows[i].Data = []byte("\x01 no record")
		}
	}
	return rows, err
}

// A stored rule that cannot be read is counted, and a replica starts with all other rules.
func TestAnUnreadableStoredRuleIsParked(t *testing.T) {
	t.Parallel()
	var poisoned atomic.Pointer[string]
	s := testkit.Start(t, spec, testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return spoiling{e, &poisoned} },
	})
	answer(t, s, func() company { return acme })
	ready(t, s)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	give(t, c, "user/21", data("ledger", "read"))
	var rules []struct{ ID string }
	c.Get("/v1/auth-units/" + unitOf(t, c, "user/21")["id"].(string) + "/rules?self_only=true").OK(&rules)
	// Later, its event would bring the rule to the replica.
	s.EventsUntil(func(e stream.Event) bool { return e.Subject == rules[0].ID })
	poisoned.Store(&rules[0].ID)
	again := s.Replica(spec)
	ready(t, again)
	require.EqualValues(t, 1, parked(t, again))
	require.True(t, allowed(t, in(again, "acme"), "20"))
	require.False(t, allowed(t, in(again, "acme"), "21"))
}

// After a snapshot that failed, the next one removes what has been deleted meanwhile.
func TestASnapshotAfterOneThatFailed(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, spec)
	var people atomic.Pointer[company]
	first, later := acme, acme
	later.users = acme.users[:1]
	first.fail = func() error {
		people.Store(&later)
		return errors.New("out of order")
	}
	people.Store(&first)
	answer(t, s, func() company { return *people.Load() })
	ready(t, s)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "everyone/*", data("ledger", "read"))
	require.True(t, allowed(t, c, "20"))
	require.Equal(t, "unknown_identity", c.Post("/v1/auth-check", reading("21")).Object()["reason"])
}

// Changes during the first snapshot are neither lost nor undone, although the stream no longer has the oldest events.
func TestChangesDuringTheFirstSnapshot(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, spec)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	c.Post("/v1/auth-check", reading("20")).Problem(503, "unavailable")

	// The stream has lost the event of a membership that ended later.
	tell(t, s, "membership.created", "29", "10", object{"record": object{"id": "29", "node_id": "12", "user_id": "21"}})
	stream, err := s.Deps.Bus.JetStream().Stream(t.Context(), bus.EventStream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))

	// While a snapshot is taken, which has the old records, bob's membership ends and alice's node is renamed. That is
	// told during each, because the first may fail: not all services answer yet.
	people, calls := acme, new(atomic.Int64)
	people.memberships = []questions.Membership{
		{ID: "30", NodeID: "12", UserID: "20", Sequence: 10}, {ID: "33", NodeID: "12", UserID: "21", Sequence: 10},
	}
	answer(t, s, func() company {
		call := fmt.Sprint(calls.Add(1)) // NATS would take a second event with the same id for a repetition
		publish(t, s, "membership.deleted", "33", "20", "ended/"+call, object{
			"record":      object{"id": "33"},
			"memberships": []object{{"id": "33", "node_id": "12", "user_id": "21", "sequence": "20"}},
		})
		publish(t, s, "node.updated", "12", "20", "renamed/"+call, object{"record": object{
			"id": "12", "name": "Salaries", "parent_id": "11", "object_code": "company",
		}})
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

// A new stream does not have the events between: another snapshot finds what is new and what is gone.
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

// After a restart the index is that of the stored records.
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

// What refers to a deleted record is deleted, too.
func TestCascades(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addSet(t, c, "books", addResource(t, c, "ledger"))
	count := func(path string, want int) {
		t.Helper()
		wait.Until(t, func() bool { return total(t, c, path) == want }, path)
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

// Rules that do not fit into the transaction that deletes their resource are deleted soon after, and have no effect
// until then.
func TestCascadesOfManyRules(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	ledger := addResource(t, c, "ledger")
	var identities []object
	for i := range 3000 {
		identities = append(identities, object{"identity_type": "user", "identity_id": strconv.Itoa(100_000 + i)})
	}
	identities[2999]["identity_id"] = "20"
	for i := 0; i < 3000; i += 1000 {
		c.Post("/v1/batch/auth-unit-rules", object{"identities": identities[i : i+1000],
			"rules": []object{{"application_id": "9", "type": "data", "code": "ledger", "actions": []string{"read"}}},
		}).OK(nil)
	}
	require.True(t, allowed(t, c, "20"))
	require.Equal(t, 3000, total(t, c, "/v1/auth-rules?code=ledger"))
	c.Delete("/v1/resources/"+ledger+"?application_id=9", nil).OK(nil)
	require.False(t, allowed(t, c, "20"))
	addResource(t, c, "ledger")
	require.False(t, allowed(t, c, "20"), "a new resource with the same code is another resource")
	eventually(t, true, func() bool { return total(t, c, "/v1/auth-rules") == 0 })
	require.EqualValues(t, 0, unitOf(t, c, "user/20")["rule_count"])
}

// The organization service asks for the grants of a node before it deletes it. Those of a root include its tree's.
func TestGrantsOfNodes(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	count := func(node string) int64 {
		answer, err := testkit.Ask[questions.Count](request.System(t.Context(), "acme"), s.Deps.Bus, "permissions",
			"grants-of-node", questions.GrantedNode{ObjectCode: "company", NodeID: node})
		require.NoError(t, err)
		return answer.Count
	}
	give(t, c, "core_object/1", data("ledger", "read"), data("ledger", "write"))
	give(t, c, "node/12", data("ledger", "read"))
	give(t, c, "node/10", data("ledger", "read"))
	require.EqualValues(t, 3, count("10"), "the root: its own, and those of the tree")
	require.EqualValues(t, 0, count("11"))
	require.EqualValues(t, 1, count("12"))
}
