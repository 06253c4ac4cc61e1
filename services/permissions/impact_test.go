package permissions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
	"github.com/idplatform/idplatform/services/questions"
)

// impact is an answer about changes.
type impact struct {
	Gained, Lost, Undecided int
	Gaining                 int                `json:"identities_gaining"`
	ByType                  map[string]reached `json:"by_type"`
	Losing                  int                `json:"identities_losing"`
	Complete, More          bool
	Items                   []struct {
		IdentityID    string `json:"identity_id"`
		IdentityType  string `json:"identity_type"`
		IdentityName  string `json:"identity_name"`
		ApplicationID string `json:"application_id"`
		ObjectType    string `json:"object_type"`
		ObjectCode    string `json:"object_code"`
		Action        string
		Change        string
		Conditional   bool
	}
}

type reached struct{ Gaining, Losing int }

func impactOf(c *testkit.Client, changes object) (got impact) {
	c.Post("/v1/auth-impact", changes).OK(&got)
	return got
}

// lines are the items in short.
func (i *impact) lines() []string {
	lines := []string{}
	for _, item := range i.Items {
		line := strings.Join([]string{item.IdentityName, item.Change, item.ObjectType, item.ObjectCode,
			item.Action}, " ")
		if item.Conditional {
			line += "?"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// granting is a change that grants a rule of application 9 to an identity, like node/11.
func granting(identity string, rule object) object {
	kind, id, _ := strings.Cut(identity, "/")
	rule["application_id"] = "9"
	return object{"identity": object{"identity_id": id, "identity_type": kind}, "rule": rule}
}

// with adds members to a rule.
func with(rule object, members object) object {
	for name, value := range members {
		rule[name] = value
	}
	return rule
}

// ruleOf is the id of the only rule of an identity.
func ruleOf(t testing.TB, c *testkit.Client, identity string) string {
	t.Helper()
	var rules []object
	c.Get("/v1/auth-units/" + id(unitOf(t, c, identity)) + "/rules?self_only=true").OK(&rules)
	require.Len(t, rules, 1)
	return id(rules[0])
}

func TestImpact(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	sales, books := addResource(t, c, "ledger"), addResource(t, c, "books")
	addSet(t, c, "all", sales, books)
	give(t, c, "node/11", data("ledger", "read"))
	give(t, c, "user/21", data("books", "*"))
	give(t, c, "group/g", with(data("books", "read"), object{"affect": "deny"}))
	c.Post("/v1/auth-units/"+id(unitOf(t, c, "group/g"))+"/members", object{"user_ids": []string{"24"}}).OK(nil)
	give(t, c, "core_object/1", with(data("books", "read"), object{"condition": "subject.properties.level > 2"}))
	deny, needs := object{"affect": "deny"}, object{"condition": "context.office"}
	for name, row := range map[string]struct {
		changes   object
		want      []string
		undecided int
	}{
		"nothing": {object{}, []string{}, 0},
		"a grant to a node above": {object{"grant": []object{granting("node/10", data("ledger", "write"))}},
			[]string{"alice gained data ledger write"}, 0},
		"what another rule grants": {object{"grant": []object{granting("user/20", data("ledger", "read"))}},
			[]string{}, 0},
		"a deny": {object{"grant": []object{granting("node/12", with(data("ledger", "read"), deny))}},
			[]string{"alice lost data ledger read"}, 0},
		"a grant that a deny beats": {object{"grant": []object{granting("user/24", data("books", "read"))}},
			[]string{}, 0},
		"a set for everyone": {object{"grant": []object{granting("everyone/*", with(data("all", "read"),
			object{"type": "res_set"}))}}, []string{"bob gained data ledger read", "erin gained data ledger read",
			"Shop gained data books read", "Shop gained data ledger read"}, 0},
		"a pattern": {object{"grant": []object{granting("user/24", with(data("l*", "*"), object{"type": "res"}))}},
			[]string{"erin gained data ledger read", "erin gained data ledger write"}, 0},
		"the use of an application": {object{"grant": []object{granting("user/21", object{"type": "app"})}},
			[]string{"bob gained app"}, 0},
		"an application unknown so far": {object{"grant": []object{granting("application/7", data("books", "read")),
			granting("everyone/*", data("ledger", "read"))}}, []string{"bob gained data ledger read",
			"erin gained data ledger read", " gained data books read", " gained data ledger read",
			"Shop gained data ledger read"}, 0},
		"who is disabled": {object{"grant": []object{granting("user/23", data("books", "read"))}}, []string{}, 0},
		"a rule less": {object{"revoke": []string{ruleOf(t, c, "node/11")}},
			[]string{"alice lost data ledger read"}, 0},
		"a deny less":      {object{"revoke": []string{ruleOf(t, c, "group/g")}}, []string{}, 0},
		"a move up":        {object{"moves": []object{moving("12", "10")}}, []string{"alice lost data ledger read"}, 0},
		"a move to itself": {object{"moves": []object{moving("12", "11")}}, []string{}, 0},
		"a move, and the rule with it": {object{"moves": []object{moving("12", "10")},
			"grant": []object{granting("node/12", data("ledger", "read"))}}, []string{}, 0},
		"a node disabled": {object{"statuses": []object{switching("11", "0")}},
			[]string{"alice lost data ledger read", "alice lost data books read?"}, 0},
		"nodes that are disabled": {object{"statuses": []object{switching("11", "0")},
			"identity_types": []string{"node"}}, []string{"Finance lost data ledger read",
			"Payroll lost data ledger read"}, 2},
		"a node that is enabled already": {object{"statuses": []object{switching("11", "1")}}, []string{}, 0},
		"the last status counts": {object{"statuses": []object{switching("11", "0"), switching("11", "1")}},
			[]string{}, 0},
		"a move out of a disabled node": {object{"moves": []object{moving("12", "10")},
			"statuses": []object{switching("11", "0")}}, []string{"alice lost data ledger read"}, 0},
		"a condition that needs a context": {object{"grant": []object{
			granting("user/21", with(data("ledger", "read"), needs))}}, []string{}, 1},
		"a deny that needs a context": {object{"grant": []object{
			granting("user/20", with(with(data("ledger", "read"), needs), deny))}},
			[]string{"alice lost data ledger read?"}, 0},
		"a condition that stored properties meet": {object{"revoke": []string{ruleOf(t, c, "core_object/1")}},
			[]string{"alice lost data books read?"}, 0},
		"a rule that is not valid yet": {object{"grant": []object{granting("user/21",
			with(data("ledger", "read"), object{"valid_from": "2999-01-01T00:00:00Z"}))}}, []string{}, 0},
		"other identities": {object{"identity_types": []string{"node", "group"},
			"grant": []object{granting("node/11", data("ledger", "write"))}},
			[]string{"Finance gained data ledger write", "Payroll gained data ledger write"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := impactOf(c, row.changes)
			slices.Sort(row.want)
			lines := got.lines()
			require.True(t, got.Complete)
			require.False(t, got.More)
			require.Len(t, lines, got.Gained+got.Lost)
			for i := range row.want {
				row.want[i] = strings.TrimSpace(row.want[i])
			}
			slices.Sort(row.want)
			slices.Sort(lines)
			require.Equal(t, row.want, lines)
			require.Equal(t, row.undecided, got.Undecided)
		})
	}
	both := object{"grant": []object{granting("node/10", data("ledger", "write")),
		granting("user/21", data("ledger", "*"))}, "revoke": []string{ruleOf(t, c, "node/11")}}
	got := impactOf(c, both)
	require.Equal(t, []string{"alice lost data ledger read", "alice gained data ledger write",
		"bob gained data ledger read", "bob gained data ledger write"}, got.lines())
	require.Equal(t, []int{3, 1, 2, 1}, []int{got.Gained, got.Lost, got.Gaining, got.Losing})
	require.Equal(t, map[string]reached{"user": {2, 1}, "application": {}}, got.ByType)
	var few impact
	c.Post("/v1/auth-impact?limit=2", both).OK(&few)
	require.True(t, few.More)
	require.Equal(t, got.Items[:2], few.Items)
	require.Equal(t, []int{3, 1, 2, 1}, []int{few.Gained, few.Lost, few.Gaining, few.Losing})
	require.Equal(t, got, impactOf(c, both), "nothing was changed")
	require.Equal(t, 5-1, total(t, c, "/v1/auth-units"), "no unit was made")
}

func switching(node, status string) object { return object{"node_id": node, "status": status} }

func moving(node, parent string) object { return object{"node_id": node, "parent_id": parent} }

// Changes are refused as the writes refuse them that would make them, all faults at once.
func TestImpactIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	tell(t, s, "core_object.created", "2", "11", object{"record": object{"id": "2", "code": "other", "name": "Other"}})
	tell(t, s, "node.created", "50", "12", object{"record": object{"id": "50", "name": "Other", "object_code": "other"}})
	wait.Until(t, func() bool {
		check := with(reading("50"), object{"identity_type": "node"})
		return c.Post("/v1/auth-check", check).Object()["reason"] != "unknown_identity"
	})
	good := granting("user/20", data("ledger", "read"))
	for name, row := range map[string]struct {
		changes   object
		locations []string
	}{
		"no type": {object{"grant": []object{granting("user/20", object{})}}, []string{"body.grant[0].rule.type"}},
		"no such resource": {object{"grant": []object{good, granting("user/20", data("x", "read"))}},
			[]string{"body.grant[1].rule.code"}},
		"no such action": {object{"grant": []object{granting("user/20", data("ledger", "read", "burn"))}},
			[]string{"body.grant[0].rule.actions[1]"}},
		"a bad condition": {object{"grant": []object{granting("user/20",
			with(data("ledger", "read"), object{"condition": "context."}))}}, []string{"body.grant[0].rule.condition"}},
		"a bad identity": {object{"grant": []object{granting("user/*", data("ledger", "read"))}},
			[]string{"body.grant[0].identity.identity_id"}},
		"not a rule":   {object{"revoke": []string{"7"}}, []string{"body.revoke[0]"}},
		"not a node":   {object{"moves": []object{moving("99", "10")}}, []string{"body.moves[0].node_id"}},
		"not a parent": {object{"moves": []object{moving("12", "99")}}, []string{"body.moves[0].parent_id"}},
		"a root":       {object{"moves": []object{moving("12", "")}}, []string{"body.moves[0].parent_id"}},
		"another tree": {object{"moves": []object{moving("12", "50")}}, []string{"body.moves[0].parent_id"}},
		"below itself": {object{"moves": []object{moving("11", "12")}}, []string{"body.moves[0].parent_id"}},
		"to itself":    {object{"moves": []object{moving("11", "11")}}, []string{"body.moves[0].parent_id"}},
		"a later circle": {object{"moves": []object{moving("12", "10"), moving("11", "12"), moving("12", "11")}},
			[]string{"body.moves[2].parent_id"}},
		"no such node": {object{"statuses": []object{switching("11", "0"), switching("99", "0")}},
			[]string{"body.statuses[1].node_id"}},
		"not a status": {object{"statuses": []object{switching("11", "2")}}, []string{"body.statuses[0].status"}},
		"no status":    {object{"statuses": []object{{"node_id": "11"}}}, []string{"body.statuses[0].status"}},
		"too many statuses": {object{"statuses": slices.Repeat([]object{switching("11", "0")}, 1001)},
			[]string{"body.statuses"}},
		"all at once": {object{"grant": []object{granting("robot/20", object{"type": "app", "resource_id": "1"})},
			"revoke": []string{"7"}, "moves": []object{moving("12", "50")},
			"statuses": []object{switching("99", "1")}},
			[]string{"body.grant[0].identity.identity_type", "body.grant[0].rule.resource_id", "body.revoke[0]",
				"body.moves[0].parent_id", "body.statuses[0].node_id"}},
		"an unknown member": {object{"grants": []object{}}, []string{"body.grants"}},
		"too many":          {object{"revoke": slices.Repeat([]string{"7"}, 5001)}, []string{"body.revoke"}},
		"not a type":        {object{"identity_types": []string{"robot"}}, []string{"body.identity_types[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Post("/v1/auth-impact", row.changes).Problem(400, "invalid_parameters", row.locations...)
		})
	}
	c.Post("/v1/auth-impact?limit=1001", object{}).Problem(400, "invalid_parameters", "query.limit")
	s.As("acme", auth.PermissionsCheck).Post("/v1/auth-impact", object{}).Problem(403, "forbidden")
	conditional := func(from, n int) (rules []object) {
		for i := range n {
			condition := fmt.Sprint("context.n == ", from+i)
			rules = append(rules, with(data("ledger", "read"), object{"condition": condition}))
		}
		return rules
	}
	give(t, c, "user/20", conditional(0, 1000)...)
	c.Post("/v1/auth-impact", object{"grant": []object{granting("user/20", conditional(1000, 1)[0])}}).
		Problem(409, "invalid_state")
}

// What another tenant has neither counts nor can be named, and a token makes the answer wait.
func TestImpactOfATenantAndAToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(spec)
	ready(t, other)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	written := c.Post("/v1/batch/auth-unit-rules", grantTo("21", "ledger"))
	token := written.Header.Get(request.ConsistencyToken)
	require.NotEmpty(t, token)
	rule := ruleOf(t, c, "user/21")
	got := impactOf(in(other, "acme").With(request.ConsistencyToken, token), object{"revoke": []string{rule}})
	require.Equal(t, []string{"bob lost data ledger read"}, got.lines())
	c.With(request.ConsistencyToken, "?").Post("/v1/auth-impact", object{}).Problem(400, "invalid_parameters",
		"header."+request.ConsistencyToken)
	globex := in(s, "globex")
	globex.Post("/v1/auth-impact", object{"revoke": []string{rule}, "moves": []object{moving("12", "10")}}).
		Problem(400, "invalid_parameters", "body.revoke[0]", "body.moves[0].node_id")
	globex.Post("/v1/auth-impact", object{"statuses": []object{switching("12", "0")}}).
		Problem(400, "invalid_parameters", "body.statuses[0].node_id")
	addResource(t, globex, "ledger")
	everyone := object{"grant": []object{granting("everyone/*", data("ledger", "read"))}}
	require.Empty(t, impactOf(globex, everyone).Items)
	require.NotEmpty(t, impactOf(c, everyone).Items)
}

// all are the checks of everything, without a context.
func (l *life) all() (checks []object) {
	who := []object{{"identity_type": "group", "identity_id": "g1"}, {"identity_type": "group", "identity_id": "g2"},
		{"identity_type": "everyone", "identity_id": "*"}, {"identity_type": "core_object", "identity_id": "1"},
		{"identity_type": "application", "identity_id": "7001"}}
	for _, u := range l.company.users {
		who = append(who, object{"identity_type": "user", "identity_id": u["id"]})
	}
	for _, n := range l.company.nodes {
		who = append(who, object{"identity_type": "node", "identity_id": n.ID})
	}
	var objects []object
	for _, app := range someApps {
		objects = append(objects, object{"application_id": app, "object_type": "app"})
		for _, r := range l.c.Get("/v1/resources?page_size=200&application_id=" + app).Object()["items"].([]any) {
			for _, action := range someActions {
				objects = append(objects, object{"application_id": app, "object_type": "data",
					"object_code": r.(object)["code"], "action": action})
			}
		}
	}
	for _, w := range who {
		for _, o := range objects {
			checks = append(checks, with(with(object{}, w), o))
		}
	}
	return checks
}

// answers are the answers to checks: the allowed ones.
func (l *life) answers(checks []object) map[string]bool {
	allowed := map[string]bool{}
	for part := range slices.Chunk(checks, 1000) {
		var got struct{ Results []struct{ Allowed bool } }
		l.c.Post("/v1/batch/auth-check", object{"checks": part}).OK(&got)
		for i, check := range part {
			if got.Results[i].Allowed {
				allowed[checkText(check)] = true
			}
		}
	}
	return allowed
}

// expected are the answers of the naive evaluator.
func (l *life) expected(checks []object) map[string]bool {
	w, allowed := l.world(), map[string]bool{}
	for _, check := range checks {
		text := func(name string) string { s, _ := check[name].(string); return s }
		if w.Check(&engine.Question{
			Identity:      engine.Identity{Type: text("identity_type"), ID: text("identity_id")},
			ApplicationID: text("application_id"), ObjectType: text("object_type"), ObjectCode: text("object_code"),
			Action: text("action"), Now: l.s.Clock.Now().Millis(),
		}) {
			allowed[checkText(check)] = true
		}
	}
	return allowed
}

func checkText(check object) string {
	text := func(name string) string { s, _ := check[name].(string); return s }
	return strings.Join([]string{text("identity_type"), text("identity_id"), text("application_id"),
		text("object_type"), text("object_code"), text("action")}, " ")
}

// Once the changes are made, checks answer what the impact said.
func TestImpactComesTrue(t *testing.T) {
	t.Parallel()
	l := newLife(t, 7)
	changed := 0
	for rounds := 0; rounds < 8 || changed <= 20; rounds++ { // disabled nodes make many rounds without a change
		require.Less(t, rounds, 60)
		for range 40 {
			l.step()
		}
		checks := l.all()
		var want map[string]bool
		wait.Until(t, func() bool { // events and cascades of the steps take a moment
			want = l.answers(checks)
			return fmt.Sprint(want) == fmt.Sprint(l.expected(checks))
		})
		node := pickOf(l, l.company.nodes[1:])
		move := moving(node.ID, pickOf(l, l.company.nodes).ID)
		who, rule := l.identity(), l.rule()
		changes := object{"grant": []object{{"identity": who, "rule": rule}},
			"identity_types": []string{"user", "node", "core_object", "application", "group", "everyone"}}
		if id := l.any("/v1/auth-rules"); id != "0" {
			changes["revoke"] = []string{id}
		}
		switched := pickOf(l, l.company.nodes)
		status := map[string]string{"1": "0", "0": "1"}[switched.Status]
		changes["moves"], changes["statuses"] = []object{move}, []object{switching(switched.ID, status)}
		answer := l.c.Post("/v1/auth-impact?limit=1000", changes)
		if answer.Status != 200 { // a rule or a move that cannot be made
			continue
		}
		var got impact
		answer.OK(&got)
		require.False(t, got.More)
		for _, item := range got.Items {
			text := strings.Join([]string{item.IdentityType, item.IdentityID, item.ApplicationID, item.ObjectType,
				item.ObjectCode, item.Action}, " ")
			if item.Change == "gained" {
				require.False(t, want[text], text)
				want[text] = true
			} else {
				require.True(t, want[text], text)
				delete(want, text)
			}
			changed++
		}
		l.c.Post("/v1/batch/auth-unit-rules", object{"identities": []object{who}, "rules": []object{rule}}).OK(nil)
		l.c.Delete("/v1/batch/auth-unit-rules", object{"rule_ids": changes["revoke"]})
		l.alter(node.ID, "node.moved", func(n *questions.Node) { n.ParentID = move["parent_id"].(string) })
		l.alter(switched.ID, "node.updated", func(n *questions.Node) { n.Status = status })
		differs := ""
		wait.Until(t, func() bool {
			differs = fmt.Sprint(changes, "\n", want, "\n", l.answers(checks), "\n", l.expected(checks))
			return fmt.Sprint(l.answers(checks)) == fmt.Sprint(want)
		}, "%s", &differs)
	}
}

// alter changes a node, and publishes the event.
func (l *life) alter(id, event string, change func(*questions.Node)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range l.company.nodes {
		if n.ID == id {
			change(&n)
			l.tell(event, id, object{"record": object{"id": id, "name": n.Name, "parent_id": n.ParentID,
				"object_code": n.ObjectCode, "status": n.Status}})
			n.Sequence = int64(l.sequence)
			l.company.nodes[i] = n
		}
	}
}
