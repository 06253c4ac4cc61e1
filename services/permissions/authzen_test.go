package permissions_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// scenario is the one of OpenID's certification for the Authorization API 1.0: alice and bob, who has the role admin,
// and records that are active or archived. Everyone may view records; alice may edit record 101; admins may edit what
// is active, and delete softly.
func scenario(t testing.TB) *testkit.Client {
	s := testkit.Start(t, spec)
	people := acme
	people.users = []object{
		{"id": "20", "username": "alice", "status": "1", "free_ext_props": object{"role": "member"}},
		{"id": "21", "username": "bob", "status": "1", "free_ext_props": object{"role": "admin"}},
	}
	answer(t, s, func() company { return people })
	ready(t, s)
	c := in(s, "acme")
	for i, status := range []string{"active", "active", "archived"} {
		c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": "record/" + strconv.Itoa(101+i),
			"actions":        []object{{"code": "view"}, {"code": "edit"}, {"code": "delete"}},
			"free_ext_props": object{"status": status}}).OK(nil)
	}
	all := func(action, condition string) object {
		return object{"type": "res", "code": "record/*", "actions": []string{action}, "condition": condition}
	}
	give(t, c, "everyone/*", all("view", ""),
		all("edit", "subject.properties.role == 'admin' && resource.properties.status == 'active'"),
		all("delete", "subject.properties.role == 'admin' && action.properties.soft == true"))
	give(t, c, "user/20", data("record/101", "edit"))
	return c
}

func evaluation(subject, action, record string) object {
	return object{
		"subject": object{"type": "user", "id": subject}, "action": object{"name": action},
		"resource": object{"type": "record", "id": record, "properties": object{"application_id": "9"}},
	}
}

func TestAuthZENBasic(t *testing.T) {
	t.Parallel()
	c := scenario(t)
	decide := func(body any) any { return c.Post("/access/v1/evaluation", body).Object()["decision"] }
	t.Run("core", func(t *testing.T) {
		for _, row := range []struct {
			subject, action, record string
			want                    bool
		}{
			{"alice", "view", "101", true}, {"alice", "edit", "101", true}, {"alice", "edit", "102", false},
			{"ALICE", "edit", "101", true},
			{"20", "edit", "101", true}, {"nobody", "view", "101", false}, {"alice", "view", "999", false},
			{"alice", "burn", "101", false},
		} {
			require.Equal(t, row.want, decide(evaluation(row.subject, row.action, row.record)), "%+v", row)
		}
		unknown := evaluation("alice", "edit", "101")
		unknown["nobody_knows"] = object{"a": 1}
		require.Equal(t, true, decide(unknown), "unknown members are ignored")
		for _, member := range []string{"subject", "action", "resource"} {
			lacking := evaluation("alice", "edit", "101")
			delete(lacking, member)
			require.Equal(t, 400, c.Post("/access/v1/evaluation", lacking).Status, member)
		}
		require.Equal(t, 400, c.With("Content-Type", "text/plain").Post("/access/v1/evaluation",
			evaluation("alice", "edit", "101")).Status)
		require.Equal(t, "r1", c.With("X-Request-Id", "r1").Post("/access/v1/evaluation",
			evaluation("alice", "edit", "101")).Header.Get("X-Request-Id"))
	})
	t.Run("properties", func(t *testing.T) {
		require.Equal(t, true, decide(evaluation("bob", "edit", "102")), "the stored properties of both")
		require.Equal(t, false, decide(evaluation("bob", "edit", "103")), "archived")
		require.Equal(t, false, decide(evaluation("bob", "delete", "103")))
		soft := evaluation("bob", "delete", "103")
		soft["action"].(object)["properties"] = object{"soft": true}
		require.Equal(t, true, decide(soft))
		promoted := evaluation("alice", "edit", "102")
		promoted["subject"].(object)["properties"] = object{"role": "admin"}
		require.Equal(t, true, decide(promoted), "the request's properties override stored ones")
		archived := evaluation("bob", "edit", "102")
		archived["resource"].(object)["properties"] = object{"application_id": "9", "status": "archived"}
		require.Equal(t, false, decide(archived))
	})
}

func TestAuthZENBatch(t *testing.T) {
	t.Parallel()
	c := scenario(t)
	decisions := func(body object) (list []any) {
		t.Helper()
		for _, e := range c.Post("/access/v1/evaluations", body).Object()["evaluations"].([]any) {
			list = append(list, e.(object)["decision"])
		}
		return list
	}
	record := func(id string) object {
		return object{"resource": object{"type": "record", "id": id, "properties": object{"application_id": "9"}}}
	}
	many := func(semantic string, ids ...string) object {
		body := evaluation("alice", "edit", "")
		delete(body, "resource")
		body["options"] = object{"evaluations_semantic": semantic}
		var list []object
		for _, id := range ids {
			list = append(list, record(id))
		}
		body["evaluations"] = list
		return body
	}
	t.Run("core", func(t *testing.T) {
		require.Equal(t, []any{true, false, true}, decisions(many("execute_all", "101", "102", "101")))
		require.Equal(t, []any{true, false}, decisions(many("deny_on_first_deny", "101", "102", "101")))
		require.Equal(t, []any{false, true}, decisions(many("permit_on_first_permit", "102", "101", "101")))
		require.Equal(t, true, c.Post("/access/v1/evaluations",
			evaluation("alice", "edit", "101")).Object()["decision"], "without evaluations the request is one")
		require.Equal(t, 400, c.Post("/access/v1/evaluations", many("some_day", "101")).Status)
		require.Equal(t, 400, c.Post("/access/v1/evaluations", object{"options": object{}}).Status)
	})
	t.Run("an item that lacks a member", func(t *testing.T) {
		body := many("execute_all", "101", "102", "101")
		items := body["evaluations"].([]object)
		items[1]["resource"] = object{"type": "record"}
		got := c.Post("/access/v1/evaluations", body).Object()["evaluations"].([]any)
		require.Equal(t, object{"decision": false, "context": object{"reason": "invalid_parameters",
			"errors": []any{object{"location": "resource.id", "message": "must be given"}}}}, got[1])
		require.Equal(t, []any{true, false, true}, decisions(body))
		body["options"] = object{"evaluations_semantic": "deny_on_first_deny"}
		require.Equal(t, []any{true, false}, decisions(body))
		require.Equal(t, []any{false}, decisions(object{"evaluations": []object{record("101")}}))
	})
	t.Run("properties", func(t *testing.T) {
		body := many("execute_all", "101", "102", "103")
		body["subject"] = object{"type": "user", "id": "bob"}
		require.Equal(t, []any{true, true, false}, decisions(body))
	})
}

func TestAuthZENSearch(t *testing.T) {
	t.Parallel()
	c := scenario(t)
	search := func(of string, body object) (list []any) {
		t.Helper()
		for token := ""; ; {
			body["page"] = object{"token": token, "limit": 2}
			answer := c.Post("/access/v1/search/"+of, body).Object()
			for _, r := range answer["results"].([]any) {
				entry := r.(object)
				if list = append(list, entry["id"]); entry["name"] != nil {
					list[len(list)-1] = entry["name"]
				}
			}
			if token = answer["page"].(object)["next_token"].(string); token == "" {
				return list
			}
		}
	}
	without := func(body object, member, inner string) object {
		delete(body[member].(object), inner)
		return body
	}
	t.Run("core", func(t *testing.T) {
		require.Equal(t, []any{"alice", "bob"}, search("subject",
			without(evaluation("", "view", "101"), "subject", "id")))
		require.Equal(t, []any{"101", "102", "103"}, search("resource",
			without(evaluation("alice", "view", ""), "resource", "id")))
		actions := evaluation("alice", "", "101")
		delete(actions, "action")
		require.Equal(t, []any{"edit", "view"}, search("action", actions))
		require.Empty(t, search("resource", without(evaluation("nobody", "view", ""), "resource", "id")))
		require.Equal(t, 400, c.Post("/access/v1/search/subject", object{}).Status)
	})
	t.Run("what an evaluation is about", func(t *testing.T) {
		own := addResource(t, c, "record/own") // of application 9, and granted to nobody
		for _, application := range []string{"7", "8"} {
			for _, code := range []string{"record/own", "record/two"} {
				c.Post("/v1/resources", object{"application_id": application, "type": "data", "code": code, "is_global": "1",
					"actions": []object{{"code": "view"}}}).OK(nil)
			}
		}
		c.Post("/v1/batch/auth-unit-rules", object{"identities": []object{{"identity_id": "21", "identity_type": "user"}},
			"rules": []object{
				{"application_id": "7", "type": "res", "resource_match_all_resources": "1", "actions": []string{"*"}},
				{"application_id": "8", "type": "res", "resource_match_all_resources": "1", "actions": []string{"*"}},
			}}).OK(nil)
		listed := search("resource", without(evaluation("bob", "view", ""), "resource", "id"))
		require.NotContains(t, listed, "own", "the application's own has that code")
		require.NotContains(t, listed, "two", "two have that code, so it names none")
		c.Delete("/v1/resources/"+own, nil).OK(nil)
	})
	t.Run("page tokens", func(t *testing.T) {
		view := without(evaluation("", "view", "101"), "subject", "id")
		view["page"] = object{"limit": 1}
		token := c.Post("/access/v1/search/subject", view).Object()["page"].(object)["next_token"]
		view["page"] = object{"limit": 1, "token": token}
		require.Equal(t, []any{object{"type": "user", "id": "bob"}},
			c.Post("/access/v1/search/subject", view).Object()["results"])
		view["page"] = object{"token": "***"}
		c.Post("/access/v1/search/subject", view).Problem(400, "invalid_parameters", "body.page.token")
		edit := without(evaluation("", "edit", "101"), "subject", "id")
		edit["page"] = object{"limit": 1, "token": token}
		c.Post("/access/v1/search/subject", edit).Problem(400, "invalid_parameters", "body.page.token")
	})
	t.Run("properties", func(t *testing.T) {
		require.Equal(t, []any{"bob"}, search("subject", without(evaluation("", "edit", "102"), "subject", "id")))
		require.Equal(t, []any{"101", "102"}, search("resource",
			without(evaluation("bob", "edit", ""), "resource", "id")))
		actions := evaluation("bob", "", "103")
		delete(actions, "action")
		require.Equal(t, []any{"view"}, search("action", actions), "without the property a deletion is not soft")
	})
}

func TestAuthZENDiscovery(t *testing.T) {
	t.Parallel()
	s := start(t)
	got := s.Stranger().With("X-Forwarded-Proto", "https").With("X-Forwarded-Host",
		"id.acme.test").Get("/.well-known/authzen-configuration").Object()
	require.Equal(t, object{
		"policy_decision_point":       "https://id.acme.test",
		"access_evaluation_endpoint":  "https://id.acme.test/access/v1/evaluation",
		"access_evaluations_endpoint": "https://id.acme.test/access/v1/evaluations",
		"search_subject_endpoint":     "https://id.acme.test/access/v1/search/subject",
		"search_resource_endpoint":    "https://id.acme.test/access/v1/search/resource",
		"search_action_endpoint":      "https://id.acme.test/access/v1/search/action",
	}, got)
}

// Resources are those of the caller's own application, unless the evaluation names another one.
func TestAuthZENApplications(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	for _, application := range []string{"8", "9"} {
		c.Post("/v1/resources", object{"application_id": application, "type": "data", "code": "record/1",
			"actions": []object{{"code": "view8"}, {"code": "view9"}}}).OK(nil)
		c.Post("/v1/batch/auth-unit-rules", object{
			"identities": []object{{"identity_type": "user", "identity_id": "20"}},
			"rules": []object{{"application_id": application, "type": "data", "code": "record/1",
				"resource_match_all_actions": "1",
				"condition":                  "action.name == 'view" + application + "'"}},
		}).OK(nil)
	}
	own := func(application string) *testkit.Client {
		token, err := s.Signer.Mint(auth.Claims{Subject: "client", ClientID: "client", ApplicationID: application,
			Tenant: "acme", Scopes: auth.NewScopes(auth.PermissionsCheck), TTL: time.Hour})
		require.NoError(t, err)
		return s.Stranger().With("Authorization", "Bearer "+token)
	}
	about := func(action string, properties any) object {
		return object{"subject": object{"type": "user", "id": "alice"}, "action": object{"name": action},
			"resource": object{"type": "record", "id": "1", "properties": properties}}
	}
	for _, row := range []struct {
		own, action string
		properties  any
		want        bool
	}{
		{"8", "view8", object{}, true}, {"8", "view9", object{}, false}, {"9", "view9", object{}, true},
		{"8", "view9", object{"application_id": "9"}, true}, {"8", "view8", object{"application_id": "9"}, false},
		{"", "view8", object{}, false}, {"8", "view8", object{"application_id": 8}, false},
		{"8", "view8", object{"application_id": ""}, false},
	} {
		require.Equal(t, row.want, own(row.own).Post("/access/v1/evaluation",
			about(row.action, row.properties)).Object()["decision"], "%+v", row)
	}
	got := own("8").Post("/access/v1/evaluations", object{"evaluations": []object{
		about("view8", nil), about("view9", object{"application_id": "9"}), about("view9", nil),
	}}).Object()["evaluations"].([]any)
	for i, want := range []bool{true, true, false} {
		require.Equal(t, want, got[i].(object)["decision"], i)
	}
}
