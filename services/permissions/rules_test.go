package permissions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestGrantAndRevoke(t *testing.T) {
	t.Parallel()
	c := client(t)
	orders := addResource(t, c, "orders")
	addSet(t, c, "sales", orders)
	body := object{
		"identities": []object{{"identity_id": "20", "identity_type": "user", "identity_name": "alice"},
			{"identity_id": "11", "identity_type": "node"}},
		"rules": []object{
			{"application_id": "9", "type": "data", "code": "orders", "actions": []string{"read"}},
			{"application_id": "9", "type": "data", "resource_id": orders, "actions": []string{"read"},
				"description": "the same"},
			{"application_id": "9", "type": "res_set", "code": "sales", "resource_match_all_actions": "1"},
			{"application_id": "9", "type": "res", "resource_match_all_resources": "1", "actions": []string{"*"},
				"affect": "deny"},
			{"application_id": "9", "type": "res", "code": "or*", "actions": []string{"read"}},
			{"application_id": "9", "type": "app"},
		},
	}
	require.JSONEq(t, "{}", string(c.Post("/v1/batch/auth-unit-rules", body).OK(nil).Body))
	c.Post("/v1/batch/auth-unit-rules", body).OK(nil)
	require.Equal(t, 10, total(t, c, "/v1/auth-rules"), "exact repeats are merged")
	alice := unitOf(t, c, "user/20")
	require.EqualValues(t, 5, alice["rule_count"])
	require.Equal(t, "alice", alice["identity_name"])
	for path, want := range map[string]int{
		"?type=res": 4, "?affect=deny": 2, "?identity_id=20": 5, "?identity_type=node&type=data": 1, "?code=orders": 2,
		"?application_id=8": 0, "?identity_name=alice": 5,
	} {
		require.Equal(t, want, total(t, c, "/v1/auth-rules"+path), path)
	}
	unit := "/v1/auth-units/" + alice["id"].(string)
	var own []object
	c.Get(unit + "/rules?self_only=true&type=data").OK(&own)
	require.Len(t, own, 1)
	require.Equal(t, orders, own[0]["resource_id"])
	c.Delete("/v1/batch/auth-unit-rules", object{"rule_ids": []any{own[0]["id"], "1"}}).OK(nil)
	c.Delete("/v1/batch/auth-unit-rules", object{"auth_unit_id": alice["id"], "type": "res",
		"codes": []string{"or*"}}).OK(nil)
	require.EqualValues(t, 3, c.Get(unit).Object()["rule_count"])
	c.Delete("/v1/batch/auth-unit-rules", object{"type": "res"}).Problem(400, "invalid_parameters", "body.rule_ids",
		"body.type")
	c.Delete("/v1/batch/auth-unit-rules", object{"rule_ids": []string{"1"}, "application_id": "9", "type": "res",
		"codes": []string{"a"}}).Problem(400, "invalid_parameters", "body.application_id", "body.type", "body.codes")
	c.Delete(unit, nil).OK(nil)
	require.Equal(t, 5, total(t, c, "/v1/auth-rules"), "rules go with their unit")
}

func TestRulesAreRefused(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "orders")
	c.Post("/v1/resources", object{"application_id": "8", "type": "data", "code": "foreign"}).OK(nil)
	for name, row := range map[string]struct {
		rule      object
		locations []string
	}{
		"no type": {object{}, []string{"rules[0].type"}},
		"no such resource": {object{"type": "data", "code": "nothing", "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"another application's": {object{"type": "data", "code": "foreign", "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"of another type": {object{"type": "ui", "code": "orders", "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"no such set": {object{"type": "res_set", "code": "nothing", "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"no such action": {object{"type": "data", "code": "orders", "actions": []string{"read", "burn"}},
			[]string{"rules[0].actions[1]"}},
		"no actions": {object{"type": "data", "code": "orders"}, []string{"rules[0].actions"}},
		"many stars": {object{"type": "res", "code": strings.Repeat("a*", 9), "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"a class of characters": {object{"type": "res", "code": "[ab]*", "actions": []string{"read"}},
			[]string{"rules[0].code"}},
		"all and a pattern": {object{"type": "res", "code": "a*", "resource_match_all_resources": "1",
			"actions": []string{"read"}}, []string{"rules[0].code"}},
		"names of other types": {object{"type": "app", "resource_id": "1", "resource_set_id": "2"},
			[]string{"rules[0].resource_id", "rules[0].resource_set_id"}},
		"not a condition": {
			object{"type": "data", "code": "orders", "actions": []string{"read"}, "condition": "context."},
			[]string{"rules[0].condition"},
		},
		"an unknown variable": {
			object{"type": "data", "code": "orders", "actions": []string{"read"}, "condition": "user.name == 'a'"},
			[]string{"rules[0].condition"},
		},
		"a condition that costs too much": {
			object{"type": "data", "code": "orders", "actions": []string{"read"},
				"condition": "context.a.all(x, context.a.all(y, context.a.all(z, context.a.all(w, w == x))))"},
			[]string{"rules[0].condition"},
		},
		"an end before the start": {
			object{"type": "data", "code": "orders", "actions": []string{"read"}, "valid_from": "2026-01-02T00:00:00Z",
				"valid_to": "2026-01-01T00:00:00Z"}, []string{"rules[0].valid_to"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			row.rule["application_id"] = "9"
			answer := c.Post("/v1/batch/auth-unit-rules",
				object{"identities": []object{{"identity_id": "20", "identity_type": "user"}},
					"rules": []object{row.rule}})
			for i := range row.locations {
				row.locations[i] = "body." + row.locations[i]
			}
			answer.Problem(400, "invalid_parameters", row.locations...)
		})
	}
	require.Equal(t, 0, total(t, c, "/v1/auth-units"), "nothing was made")
	many := make([]object, 40)
	for i := range many {
		many[i] = object{"identity_id": "u", "identity_type": "user"}
	}
	rules := make([]object, 40)
	for i := range rules {
		rules[i] = object{"application_id": "9", "type": "app"}
	}
	c.Post("/v1/batch/auth-unit-rules", object{"identities": many, "rules": rules}).Problem(400, "invalid_parameters",
		"body.rules")
}

func TestReplaceRule(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "orders")
	give(t, c, "user/20", data("orders", "read"), data("orders", "write"))
	unit := "/v1/auth-units/" + unitOf(t, c, "user/20")["id"].(string)
	var rules []object
	c.Get(unit + "/rules").OK(&rules)
	at := unit + "/rules/" + rules[0]["id"].(string)
	put(c, at, object{"application_id": "9", "type": "data", "code": "orders",
		"actions": []string{"write"}}).Problem(409, "already_exists", "body.code")
	put(c.With("If-Match", `"9"`), at, object{"application_id": "9", "type": "app"}).Problem(412, "version_mismatch")
	put(c, at, object{"application_id": "9", "type": "data", "code": "orders",
		"actions": []string{"burn"}}).Problem(400, "invalid_parameters", "body.actions[0]")
	require.JSONEq(t, "{}", string(put(c, at, object{"application_id": "9", "type": "app"}).OK(nil).Body))
	got := c.Get(at).Object()
	require.Equal(t, "app", got["type"])
	put(c, at, got).OK(nil)
	require.Equal(t, got, c.Get(at).Object(), "what was read may be sent back")
	c.Get("/v1/auth-units/1/rules/"+rules[0]["id"].(string)).Problem(404, "not_found")
	put(c, unit+"/rules/1", object{"application_id": "9", "type": "app"}).Problem(404, "not_found")
}

func TestRulesThatReachAnIdentity(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	give(t, c, "user/20", data("ledger", "read"))
	give(t, c, "node/11", data("ledger", "write"))
	give(t, c, "core_object/1", object{"type": "app"})
	give(t, c, "everyone/*", object{"type": "res", "resource_match_all_resources": "1",
		"resource_match_all_actions": "1", "affect": "deny"})
	give(t, c, "user/21", data("ledger", "read"))
	unit := "/v1/auth-units/" + unitOf(t, c, "user/20")["id"].(string) + "/rules"
	from := func(query string) (list []string) {
		var rules []object
		c.Get(unit + query).OK(&rules)
		for _, r := range rules {
			name := "own"
			if unit, ok := r["inherited_from"].(object); ok {
				name = unit["identity_type"].(string)
			}
			list = append(list, name)
		}
		return list
	}
	require.Equal(t, []string{"own", "node", "core_object", "everyone"}, from(""))
	require.Equal(t, []string{"own"}, from("?self_only=true"))
	require.Equal(t, []string{"own", "node"}, from("?type=data"))
	require.Equal(t, []string{"everyone"}, from("?type=res&resource_match_all_resources=true"))
	require.Empty(t, from("?type=res&resource_match_all_actions=false"))
	for _, query := range []string{
		"?type=res&resource_id=1", "?type=data&resource_match_all_resources=1",
		"?type=app&resource_match_all_actions=1", "?type=data&resource_set_id=1",
	} {
		_, name, _ := strings.Cut(query, "&")
		name, _, _ = strings.Cut(name, "=")
		c.Get(unit+query).Problem(400, "invalid_parameters", "query."+name)
	}
	c.Get("/v1/auth-units/1/rules").Problem(404, "not_found")
}

// A list of rules is complete or refused, also where few of the many rules match.
func TestTooManyRulesToList(t *testing.T) {
	t.Parallel()
	c := client(t)
	for i := range 3 {
		var rules []object
		for j := range 700 {
			code := fmt.Sprint("r", i, "-", j)
			rules = append(rules, object{"type": "res", "code": code, "actions": []string{"read"}})
		}
		give(t, c, "user/20", rules...)
	}
	give(t, c, "user/20", object{"type": "res", "resource_match_all_resources": "1", "actions": []string{"read"}})
	rules := "/v1/auth-units/" + unitOf(t, c, "user/20")["id"].(string) + "/rules?self_only=true"
	c.Get(rules).Problem(400, "invalid_parameters")
	c.Get(rules+"&resource_match_all_resources=true").Problem(400, "invalid_parameters")
	var found []object
	c.Get(rules + "&code=r1-7").OK(&found)
	require.Len(t, found, 1)
}

// The number of different conditions is bounded. Those of revoked rules do not count.
func TestConditionsOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	c := client(t)
	conditional := func(from, n int) (rules []object) {
		for i := range n {
			rules = append(rules, object{
				"application_id": "9", "type": "res", "resource_match_all_resources": "1", "actions": []string{"read"},
				"condition": fmt.Sprint("context.n == ", from+i),
			})
		}
		return rules
	}
	give(t, c, "user/20", conditional(0, 1000)...)
	give(t, c, "user/21", conditional(0, 10)...)
	one := object{"identities": []object{{"identity_id": "20", "identity_type": "user"}}, "rules": conditional(1000, 1)}
	c.Post("/v1/batch/auth-unit-rules", one).Problem(409, "invalid_state")
	c.Delete("/v1/auth-units/"+unitOf(t, c, "user/20")["id"].(string), nil).OK(nil)
	c.Post("/v1/batch/auth-unit-rules", one).OK(nil)
}

// allowed asks whether a user may read the ledger.
func allowed(t testing.TB, c *testkit.Client, user string) bool {
	t.Helper()
	return c.Post("/v1/auth-check", reading(user)).Object()["allowed"].(bool)
}
