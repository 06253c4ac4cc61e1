package permissions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	c := client(t)
	ledger := addResource(t, c, "ledger")
	c.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": "orders",
		"uri": "/orders/{id}", "actions": []object{{"code": "GET"}, {"code": "PUT"}}}).OK(nil)
	give(t, c, "node/11", data("ledger", "read"), object{"type": "api", "code": "orders", "actions": []string{"GET"}},
		object{"type": "app"})
	check := func(changes object) object {
		t.Helper()
		body := reading("20")
		for name, value := range changes {
			if body[name] = value; value == nil {
				delete(body, name)
			}
		}
		return c.Post("/v1/auth-check", body).Object()
	}
	got := check(nil)
	require.Equal(t, true, got["allowed"])
	require.Equal(t, "affect", got["affect"])
	require.Equal(t, []any{
		object{"type": "user", "id": "20", "name": "alice"}, object{"type": "node", "id": "12", "name": "Payroll"},
		object{"type": "node", "id": "11", "name": "Finance"},
	}, got["via"])
	require.NotContains(t, got, "considered")
	for name, row := range map[string]struct {
		changes object
		reason  string
	}{
		"by id": {object{"object_code": nil, "object_id": ledger}, "granted"},
		"by path": {object{"object_code": nil, "object_type": "api", "uri": "/orders/7", "method": "GET",
			"action": nil}, "granted"},
		"by another method": {object{"object_code": nil, "object_type": "api", "uri": "/orders/7", "method": "PUT",
			"action": nil}, "not_granted"},
		"an application": {object{"object_code": nil, "object_type": "app", "action": nil}, "granted"},
		"another application": {object{"object_code": nil, "object_type": "app", "application_id": "8"},
			"not_granted"},
		"a node":                {object{"identity_type": "node", "identity_id": "12"}, "granted"},
		"a node above":          {object{"identity_type": "node", "identity_id": "10"}, "not_granted"},
		"who belongs nowhere":   {object{"identity_id": "21"}, "not_granted"},
		"who has resigned":      {object{"identity_id": "22"}, "identity_disabled"},
		"nobody":                {object{"identity_id": "99"}, "unknown_identity"},
		"nothing":               {object{"object_code": "nothing"}, "unknown_object"},
		"an unknown action":     {object{"action": "burn"}, "unknown_action"},
		"an action not granted": {object{"action": "write"}, "not_granted"},
	} {
		require.Equal(t, row.reason, check(row.changes)["reason"], name)
	}
	for location, changes := range map[string]object{
		"object_code": {"object_id": "1"}, "action": {"action": nil}, "uri": {"object_code": nil, "uri": "/a"},
		"method":        {"method": "GET"},
		"identity_type": {"identity_type": "robot"}, "context": {"context": "text"},
	} {
		body := reading("20")
		for name, value := range changes {
			if body[name] = value; value == nil {
				delete(body, name)
			}
		}
		c.Post("/v1/auth-check", body).Problem(400, "invalid_parameters", "body."+location)
	}
}

func TestCheckBatch(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	give(t, c, "node/11", data("ledger", "read"))
	var got struct {
		Results []struct{ Allowed bool }
	}
	c.Post("/v1/batch/auth-check", object{"checks": []object{reading("21"), reading("20"), reading("99")}}).OK(&got)
	require.Equal(t, []struct{ Allowed bool }{{false}, {true}, {false}}, got.Results)
	c.Post("/v1/batch/auth-check", object{"checks": []object{}}).Problem(400, "invalid_parameters", "body.checks")
	bad := reading("20")
	delete(bad, "action")
	c.Post("/v1/batch/auth-check", object{"checks": []object{reading("20"), bad}}).Problem(400, "invalid_parameters",
		"body.checks[1].action")
}

// The explanations of a batch are held until they are sent, so their size has a bound; those of one check do not.
func TestExplanationsOfABatch(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	rules := make([]object, 100)
	for n := range rules {
		rules[n] = data("ledger", "read")
		rules[n]["condition"] = fmt.Sprintf("context.number == %d", n)
	}
	give(t, c, "user/20", rules...)
	checks := make([]object, 1000)
	for n := range checks {
		checks[n] = reading("20")
	}
	batch := object{"checks": checks}
	c.Post("/v1/batch/auth-check", batch).OK(nil)
	c.Post("/v1/batch/auth-check?explain=true", batch).Problem(400, "invalid_parameters", "query.explain")
	few := c.Post("/v1/batch/auth-check?explain=true", object{"checks": checks[:10]}).Object()
	require.Len(t, few["results"].([]any)[9].(object)["considered"], 100)
}

func TestDenyBeatsAllowWhereverItComesFrom(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	give(t, c, "user/20", data("ledger", "read"))
	require.True(t, allowed(t, c, "20"))
	denied := data("ledger", "read")
	denied["affect"] = "deny"
	give(t, c, "core_object/1", denied)
	got := c.Post("/v1/auth-check?explain=true", reading("20")).Object()
	require.Equal(t, "denied", got["reason"])
	require.Equal(t, "deny", got["affect"])
	miss := got["nearest_miss"].(object)
	require.Equal(t, "deny", miss["kind"])
	require.Contains(t, miss["text"], `denies "read" of data ledger to core object "Company" (1)`)
	require.Len(t, got["considered"], 2)
}

func TestConditions(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	rule := data("ledger", "read")
	rule["condition"] = "subject.properties.level >= 3 && context.ip.startsWith('10.')"
	give(t, c, "user/20", rule)
	body := reading("20")
	got := c.Post("/v1/auth-check?explain=true", body).Object()
	require.Equal(t, false, got["allowed"])
	require.Equal(t, "context", got["nearest_miss"].(object)["kind"])
	require.Contains(t, got["nearest_miss"].(object)["text"], "there is no member ip")
	body["context"] = object{"ip": "10.0.0.1"}
	require.Equal(t, true, c.Post("/v1/auth-check", body).Object()["allowed"])
	body["subject_properties"] = object{"level": 2}
	require.Equal(t, false, c.Post("/v1/auth-check", body).Object()["allowed"],
		"the request's properties override the user's")
}

// Conditions see every member of properties, up to the 64 KiB that they can have, of the user and of the resource, and
// whatever the request gives beside them.
func TestLargeProperties(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, spec)
	large := strings.Repeat("x", 60<<10)
	people := acme
	people.users = []object{{"id": "20", "username": "alice", "status": "1",
		"free_ext_props": object{"more": large, "level": 3}}}
	answer(t, s, func() company { return people })
	ready(t, s)
	c := in(s, "acme")
	c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": "ledger",
		"actions": []object{{"code": "read"}}, "sys_ext_props": object{"a": large, "owner": "x"},
		"free_ext_props": object{"b": large, "owner": "alice"}}).OK(nil)
	rule := data("ledger", "read")
	rule["condition"] = "subject.properties.level == 3 && size(subject.properties.more) > 60000 && context.here &&" +
		" resource.properties.owner == subject.name && resource.properties.a == resource.properties.b"
	give(t, c, "everyone/*", rule)
	body := reading("20")
	body["context"] = object{"here": true}
	got := c.Post("/v1/auth-check?explain=true", body).Object()
	require.Equal(t, true, got["allowed"], got)
	body["subject_properties"] = object{"level": 4}
	require.Equal(t, false, c.Post("/v1/auth-check", body).Object()["allowed"])
}

// A user who is disabled may do nothing and is found by no search, whoever is granted something. A lock concerns
// sign-in alone.
func TestDisabledUsersMayDoNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "everyone/*", data("ledger", "read"), object{"type": "app"})
	give(t, c, "user/23", data("ledger", "read"))
	reason := func(user, query string) any { return c.Post("/v1/auth-check"+query, reading(user)).Object()["reason"] }
	require.Equal(t, "identity_disabled", reason("23", ""))
	require.Equal(t, "identity_disabled", reason("23", "?explain=true"))
	require.Equal(t, "granted", reason("24", ""), "a locked user")
	require.Equal(t, 0, total(t, c, "/v1/auth-check/objects?identity_id=23&identity_type=user&application_id=9"+
		"&object_type=data"))
	require.Equal(t, 0, total(t, c, "/v1/authorized-applications?identity_id=23&identity_type=user"))
	who := "/v1/auth-check/identities?application_id=9&object_type=data&object_code=ledger&action=read"
	require.Equal(t, 3, total(t, c, who))
	actions := evaluation("dave", "", "")
	actions["resource"] = object{"type": "data", "id": "ledger", "properties": object{"application_id": "9"}}
	require.Empty(t, c.Post("/access/v1/search/action", actions).Object()["results"])
	tell(t, s, "user.updated", "24", "20", object{"record": object{"id": "24", "username": "erin", "status": "0"}})
	tell(t, s, "user.updated", "23", "20", object{"record": object{"id": "23", "username": "dave", "status": "1"}})
	eventually(t, true, func() bool {
		return reason("24", "") == "identity_disabled" && reason("23", "") == "granted"
	})
}

// What everyone is granted reaches the applications of the tenant too, and no others.
func TestEveryoneReachesApplications(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	give(t, c, "everyone/*", data("ledger", "read"))
	reason := func(id string) any {
		body := reading(id)
		body["identity_type"] = "application"
		return c.Post("/v1/auth-check", body).Object()["reason"]
	}
	require.Equal(t, "granted", reason("2002"))
	require.Equal(t, "unknown_identity", reason("2003"))
	who := "/v1/auth-check/identities?application_id=9&object_type=data&object_code=ledger&action=read&identity_type="
	require.Equal(t, []any{object{"identity_id": "2002", "identity_type": "application", "identity_name": "Shop"}},
		c.Get(who + "application").Object()["items"])
	give(t, c, "application/2002", data("ledger", "write"))
	require.Equal(t, 1, total(t, c, who+"application"), "once, though it has a unit too")
	tell(t, s, "application.created", "2003", "10", object{"record": object{"id": "2003", "name": "Bank"}})
	eventually(t, true, func() bool { return reason("2003") == "granted" })
	tell(t, s, "application.deleted", "2003", "20", object{})
	eventually(t, true, func() bool { return reason("2003") == "unknown_identity" })
}

// An action that a resource does not list is refused, also where it lists none: in checks, rules and sets.
func TestActionsThatAResourceDoesNotList(t *testing.T) {
	t.Parallel()
	c := client(t)
	c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": "ledger"}).OK(nil)
	grants := func(action string) *testkit.Answer {
		return c.Post("/v1/batch/auth-unit-rules", object{
			"identities": []object{{"identity_id": "20", "identity_type": "user"}},
			"rules": []object{
				{"application_id": "9", "type": "data", "code": "ledger", "actions": []string{action}},
			},
		})
	}
	grants("fly").Problem(400, "invalid_parameters", "body.rules[0].actions[0]")
	grants("*").OK(nil)
	set := c.Post("/v1/resource-sets", object{"application_id": "9", "code": "books"}).ID()
	c.Post("/v1/resource-sets/"+set+"/members", object{"resource_code": "ledger", "resource_type": "data",
		"actions": []string{"fly"}}).Problem(400, "invalid_parameters", "body.actions[0]")
	body := reading("20")
	body["action"] = "fly"
	require.Equal(t, "unknown_action", c.Post("/v1/auth-check", body).Object()["reason"])
	require.Equal(t, 0, total(t, c, "/v1/auth-check/objects?identity_id=20&identity_type=user&application_id=9"+
		"&object_type=data"))
}

// Decisions with and without an explanation are encoded by different code, and must agree.
func TestDecisionsAgreeWithExplanations(t *testing.T) {
	t.Parallel()
	c := client(t)
	addResource(t, c, "ledger")
	addResource(t, c, "secrets")
	c.Post("/v1/batch/auth-unit-rules", object{
		"identities": []object{{"identity_type": "group", "identity_id": "a", "identity_name": "\"A\" <b> \\ 组"}},
		"rules":      []object{{"application_id": "9", "type": "data", "code": "ledger", "actions": []string{"read"}}},
	}).OK(nil)
	give(t, c, "node/11", data("ledger", "write"), object{"type": "data", "code": "secrets", "affect": "deny",
		"actions": []string{"*"}})
	group := unitOf(t, c, "group/a")["id"].(string)
	c.Post("/v1/auth-units/"+group+"/members", object{"user_ids": []string{"21"}}).OK(nil)
	for _, change := range []object{
		{}, {"identity_id": "21"}, {"identity_id": "99"}, {"action": "write"}, {"object_code": "secrets"},
		{"object_code": "nothing"}, {"action": "burn"},
	} {
		body := reading("20")
		for name, value := range change {
			body[name] = value
		}
		short := c.Post("/v1/auth-check", body).Object()
		explained := c.Post("/v1/auth-check?explain=true", body).Object()
		delete(explained, "considered")
		delete(explained, "nearest_miss")
		require.Equal(t, explained, short)
		batch := c.Post("/v1/batch/auth-check", object{"checks": []object{body, body}}).Object()
		require.Equal(t, object{"results": []any{short, short}}, batch)
	}
}

func TestSearches(t *testing.T) {
	t.Parallel()
	c := client(t)
	for _, code := range []string{"ledger", "b", "a", "c"} {
		addResource(t, c, code)
	}
	give(t, c, "node/11", object{"type": "res", "resource_match_all_resources": "1", "actions": []string{"read"}},
		object{"type": "app"})
	give(t, c, "user/20", object{"type": "data", "code": "c", "actions": []string{"read"}, "affect": "deny"},
		data("a", "write"))
	codes := func(query string) (list []string) {
		for token := ""; ; {
			page := c.Get("/v1/auth-check/objects?identity_id=20&identity_type=user&application_id=9&page_size=2&" +
				query + "&page_token=" + token).Object()
			for _, item := range page["items"].([]any) {
				o := item.(object)
				entry := o["object_code"].(string)
				for _, action := range o["actions"].([]any) {
					entry += " " + action.(string)
				}
				list = append(list, entry)
			}
			if token, _ = page["next_page_token"].(string); token == "" {
				return list
			}
		}
	}
	require.Equal(t, []string{"a read", "b read", "ledger read"}, codes("object_type=data&action=read"))
	require.Equal(t, []string{"a read write", "b read", "ledger read"}, codes("object_type=data"))
	require.Equal(t, 1, total(t, c, "/v1/auth-check/objects?identity_id=20&identity_type=user&object_type=app"))
	c.Get("/v1/auth-check/objects?identity_id=20&identity_type=user&object_type=data").Problem(400,
		"invalid_parameters", "query.application_id")
	c.Get("/v1/auth-check/objects?identity_id=20&identity_type=user&object_type=app&page_sort=name").Problem(400,
		"invalid_parameters", "query.page_sort")
	c.Get("/v1/auth-check/objects?identity_id=20&identity_type=user&object_type=app&page_token=***").Problem(400,
		"invalid_parameters", "query.page_token")

	objects := "/v1/auth-check/objects?identity_id=20&identity_type=user&application_id=9&object_type=data&page_size=2"
	token := "&page_token=" + c.Get(objects).Object()["next_page_token"].(string)
	c.Get(objects + token).OK(nil)
	c.Get(objects+"&action=read"+token).Problem(400, "invalid_parameters", "query.page_token")
	c.Get("/v1/auth-check/identities?application_id=9&object_type=data&object_code=ledger&action=read"+token).
		Problem(400, "invalid_parameters", "query.page_token")

	who := "/v1/auth-check/identities?application_id=9&object_type=data&object_code=ledger&action=read"
	got := c.Get(who).Object()
	require.Equal(t, []any{object{"identity_id": "20", "identity_type": "user", "identity_name": "alice"}},
		got["items"])
	require.Equal(t, 2, total(t, c, who+"&identity_type=node"), "the node and the one below")
	c.Get(strings.Replace(who, "&action=read", "", 1)).Problem(400, "invalid_parameters", "query.action")
}

// The checks of this replica know a rule when its write is answered; those of another replica with the write's token.
func TestChecksSeeWrites(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(spec)
	ready(t, other)
	c, there := in(s, "acme"), in(other, "acme")
	addResource(t, c, "ledger")
	for range 20 {
		body := object{"identities": []object{{"identity_id": "21", "identity_type": "user"}},
			"rules": []object{{"application_id": "9", "type": "data", "code": "ledger", "actions": []string{"read"}}}}
		token := c.Post("/v1/batch/auth-unit-rules", body).OK(nil).Header.Get("X-Consistency-Token")
		require.NotEmpty(t, token)
		require.True(t, allowed(t, c, "21"))
		require.Equal(t, true, there.With("X-Consistency-Token", token).Post("/v1/auth-check",
			reading("21")).Object()["allowed"])
		token = c.Delete("/v1/auth-units/"+unitOf(t, c, "user/21")["id"].(string),
			nil).OK(nil).Header.Get("X-Consistency-Token")
		require.False(t, allowed(t, c, "21"))
		require.Equal(t, false, there.With("X-Consistency-Token", token).Post("/v1/auth-check",
			reading("21")).Object()["allowed"])
	}
	require.Empty(t, c.Post("/v1/auth-units?dry_run=true", object{"identity_id": "21",
		"identity_type": "user"}).OK(nil).Header.Get("X-Consistency-Token"))
}

// However a client writes a path, the resource that the path leads to decides. What programs read in different ways
// is not allowed.
func TestCheckNormalisesURIs(t *testing.T) {
	t.Parallel()
	c := client(t)
	get := []object{{"code": "GET"}}
	for code, uri := range map[string]string{"files": "/files/**", "admin": "/admin", "secret": "/files/secret"} {
		c.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": code, "uri": uri,
			"actions": get}).OK(nil)
	}
	give(t, c, "user/20", object{"type": "api", "code": "files", "actions": []string{"GET"}},
		object{"type": "api", "code": "secret", "actions": []string{"GET"}, "affect": "deny"})
	for uri, want := range map[string]string{
		"/files/a": "granted", "/files/a%20b?c=/../d#e": "granted", "/x/../files/./a": "granted",
		"/%66iles/a":      "granted",
		"/files/../admin": "not_granted", "/files/%2e%2E/admin": "not_granted", "/admin?a": "not_granted",
		"/files/%73ecret": "denied", "/files/secret#": "denied", "/files/secret/": "unknown_object",
		"/files//secret": "invalid_uri", "/files/..%2fadmin": "invalid_uri", `/files/..\admin`: "invalid_uri",
		"/files/%5c": "invalid_uri", "/files/..;/admin": "invalid_uri", "/files/secret;a": "invalid_uri",
		"/files/%c0%ae": "invalid_uri", "/files/a%0": "invalid_uri", "files/a": "invalid_uri",
	} {
		body := object{"identity_id": "20", "identity_type": "user", "application_id": "9", "object_type": "api",
			"uri": uri, "method": "GET"}
		for _, query := range []string{"", "?explain=true"} {
			got := c.Post("/v1/auth-check"+query, body).Object()
			require.Equal(t, want, got["reason"], uri)
			require.Equal(t, want == "granted", got["allowed"], uri)
		}
	}
	c.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": "x", "uri": "/a/../b"}).Problem(400,
		"invalid_parameters", "body.uri")
}
