package permissions_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPrivileges(t *testing.T) {
	t.Parallel()
	c := client(t)
	ledger, journal := addResource(t, c, "ledger"), addResource(t, c, "journal")
	set := addSet(t, c, "books", journal)
	c.Post("/v1/resource-sets/"+set+"/members", object{"resource_id": ledger, "actions": []string{"read"}}).OK(nil)
	give(t, c, "user/20", data("ledger", "write"))
	give(t, c, "node/11", object{"type": "res_set", "code": "books", "actions": []string{"*"}})
	denied := data("ledger", "read")
	denied["affect"] = "deny"
	give(t, c, "user/21", denied)
	lines := func(query string) (list []string) {
		t.Helper()
		for token := ""; ; {
			page := c.Get("/v1/privileges?application_id=9&page_size=1&page_token=" + token + query).Object()
			for _, item := range page["items"].([]any) {
				p := item.(object)
				line := p["identity_type"].(string) + " " + p["object_type"].(string) + " " + p["object_code"].(string)
				for _, action := range p["actions"].([]any) {
					line += " " + action.(string)
				}
				if p["inherited_from"] != "" {
					line += " inherited"
				}
				list = append(list, line)
			}
			if token, _ = page["next_page_token"].(string); token == "" {
				return list
			}
		}
	}
	require.Equal(t, []string{"user data ledger write", "node res_set books *", "user data ledger read"}, lines(""))
	require.Equal(t, []string{"user data ledger write", "user res_set books * inherited"},
		lines("&identity_id=20&identity_type=user"))
	require.Equal(t, []string{"user data ledger write", "user data ledger read inherited",
		"user data journal * inherited"},
		lines("&identity_id=20&identity_type=user&expand=true"))
	require.Equal(t, []string{"user data ledger read"}, lines("&affect=deny"))
	require.Equal(t, []string{"node res_set books *"}, lines("&object_type=res_set"))
	require.Equal(t, []string{"node res_set books *"}, lines("&identity_type=node"))
	require.Len(t, lines("&object_code=ledger"), 2)
	c.Get("/v1/privileges").Problem(400, "invalid_parameters", "query.application_id")
	require.Equal(t, []string{"user data ledger write", "user res_set books * inherited"}, lines("&identity_id=20"))
	require.Equal(t, []string{"user data ledger write"}, lines("&identity_name=alice"))
	require.Equal(t, []string{"node res_set books *"}, lines("&identity_name=Finance"))
	require.Equal(t, []string{"node res_set books *", "user data ledger write", "user data ledger read"},
		lines("&page_sort=identity_type,affect"))
	for _, member := range []string{"identity_id", "identity_type", "identity_name", "application_id", "object_type",
		"object_id", "object_code", "object_name", "affect", "rule_id", "auth_unit_id", "inherited_from"} {
		require.Len(t, lines("&page_sort="+member+"[desc]"), 3, member)
	}
	token := c.Get("/v1/privileges?application_id=9&page_size=1").Object()["next_page_token"].(string)
	c.Get("/v1/privileges?application_id=9&page_size=1&page_sort=affect&page_token="+token).Problem(400,
		"invalid_parameters", "query.page_token")
	c.Get("/v1/privileges?application_id=9&page_sort=actions").Problem(400, "invalid_parameters", "query.page_sort")
}

// Privileges are what holds now.
func TestPrivilegesHoldNow(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	addResource(t, c, "ledger")
	for action, at := range map[string][2]any{"read": {nil, s.Clock.Now().Add(20 * time.Minute)},
		"write": {s.Clock.Now().Add(40 * time.Minute), nil}} {
		rule := data("ledger", action)
		rule["valid_from"], rule["valid_to"] = at[0], at[1]
		give(t, c, "user/20", rule)
	}
	listed := func() (actions []any) {
		for _, query := range []string{"", "&identity_id=20", "&object_code=ledger", "&page_sort=object_id"} {
			actions = nil
			page := c.Get("/v1/privileges?application_id=9" + query).Object()
			for _, item := range page["items"].([]any) {
				actions = append(actions, item.(object)["actions"].([]any)...)
			}
			require.EqualValues(t, len(actions), page["total"])
		}
		return actions
	}
	require.Equal(t, []any{"read"}, listed())
	s.Clock.Advance(20 * time.Minute)
	require.Empty(t, listed())
	s.Clock.Advance(20 * time.Minute)
	require.Equal(t, []any{"write"}, listed())
}

func TestApplicationAuthorizations(t *testing.T) {
	t.Parallel()
	c := client(t)
	authorizations := func(affect string, who string, applications ...string) object {
		return object{"application_ids": applications, "affect": affect,
			"identities": []object{{"identity_id": who, "identity_type": "node"}}}
	}
	list := func() (ids []string) {
		page := c.Get("/v1/authorized-applications?identity_id=20&identity_type=user").Object()
		for _, item := range page["items"].([]any) {
			ids = append(ids, item.(object)["application_id"].(string))
		}
		return ids
	}
	c.Post("/v1/application-authorizations", authorizations("affect", "11", "7", "8", "9")).OK(nil)
	require.Equal(t, []string{"7", "8", "9"}, list())
	c.Get("/v1/authorized-applications?identity_id=20&identity_type=user&page_num=999999999999999999").
		Problem(http.StatusBadRequest, "invalid_parameters", "query.page_num")
	c.Post("/v1/application-authorizations", authorizations("deny", "12", "8")).OK(nil)
	require.Equal(t, []string{"7", "9"}, list())
	c.Delete("/v1/application-authorizations", authorizations("affect", "11", "7", "6")).OK(nil)
	c.Delete("/v1/application-authorizations", authorizations("deny", "12", "8")).OK(nil)
	require.Equal(t, []string{"8", "9"}, list())
	c.Post("/v1/batch/auth-unit-rules", object{
		"identities": []object{{"identity_id": "11", "identity_type": "node"}},
		"rules": []object{
			{"application_id": "5", "type": "app", "condition": "true"},
			{"application_id": "5", "type": "app", "valid_to": "2099-01-01T00:00:00Z"},
			{"application_id": "5", "type": "app", "affect": "deny", "condition": "false"},
		},
	}).OK(nil)
	require.Equal(t, []string{"5", "8", "9"}, list())
	c.Delete("/v1/application-authorizations", authorizations("affect", "11", "5")).OK(nil)
	require.Equal(t, []string{"8", "9"}, list(), "whatever the condition and the time")
	require.Equal(t, 1.0, c.Get("/v1/auth-rules?application_id=5").Object()["total"], "that of the other affect stays")
	c.Post("/v1/application-authorizations", authorizations("affect", "11", "7", "")).Problem(400, "invalid_parameters",
		"body.application_ids[1]")
	c.Get("/v1/authorized-applications").Problem(400, "invalid_parameters", "query.identity_id", "query.identity_type")
}
